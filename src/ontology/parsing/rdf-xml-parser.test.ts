import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWith } from "../../../test/ontology/parse-text.ts";

const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

function parse(content: string) {
  return parseWith("xml", [`<rdf:RDF xmlns:rdf="${RDF}" xmlns="http://a/">${content}</rdf:RDF>`]);
}

test("the attributes that RDF/XML permits without a prefix are read as those with it", async () => {
  const content = (rdf: string) => `<Thing ${rdf}about="http://a/x" ${rdf}type="http://a/T">
    <p ${rdf}resource="http://a/y" ${rdf}ID="s"/>
    <q ${rdf}parseType="Resource"><r>1</r></q>
    <u ${rdf}parseType="Literal"><b about="z"/></u>
  </Thing><Thing ${rdf}ID="t"/>`;
  const unqualified = await parse(content(""));
  assert.ok("lines" in unqualified, JSON.stringify(unqualified));
  assert.deepEqual(unqualified, await parse(content("rdf:")));
  assert.ok(unqualified.lines.includes("<http://a/x> <http://a/p> <http://a/y> ."));
  assert.ok(
    unqualified.lines.some(line => line.includes('"<b xmlns=\\"http://a/\\" about=\\"z\\"></b>"')),
    unqualified.lines.join("\n"),
  );
});

test("one attribute with and without its prefix is a problem", async () => {
  const about = await parse('<Thing about="http://a/x" rdf:about="http://a/y"/>');
  assert.match("problem" in about ? about.problem : "", /only one of rdf:about, rdf:ID and rdf:nodeID is permitted$/);
  const resource = await parse('<Thing><p resource="http://a/x" rdf:resource="http://a/y"/></Thing>');
  assert.match("problem" in resource ? resource.problem : "", /rdf:resource and rdf:nodeID on one property$/);
});

test("other attributes without a prefix give no statement", async () => {
  const parsed = await parse(
    '<Thing rdf:about="http://a/x" nodeID="n" lang="en"><p datatype="http://a/d">1</p></Thing>',
  );
  assert.deepEqual(parsed, {
    lines: [`<http://a/x> <${RDF}type> <http://a/Thing> .`, '<http://a/x> <http://a/p> "1" .'],
  });
});

test("an XML literal keeps the namespaces of its names, sorts attributes and escapes text", async () => {
  const literal = `<b xmlns:x="http://x/"><x:c z="1" a="&quot;&gt;&#9;"/><d xmlns=""/>&gt;&amp;</b><x:e xmlns:x="http://y/" xml:lang="en" x:f=""/>`;
  const parsed = await parse(
    `<rdf:Description rdf:about="http://a/x"><p rdf:parseType="Literal">${literal}</p></rdf:Description>`,
  );
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  const expected =
    '<b xmlns="http://a/"><x:c xmlns:x="http://x/" a="&quot;>&#x9;" z="1"></x:c><d xmlns=""></d>&gt;&amp;</b>' +
    '<x:e xmlns:x="http://y/" xml:lang="en" x:f=""></x:e>';
  assert.deepEqual(parsed.lines, [`<http://a/x> <http://a/p> ${JSON.stringify(expected)}^^<${RDF}XMLLiteral> .`]);
});
