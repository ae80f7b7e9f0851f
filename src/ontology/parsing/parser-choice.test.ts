import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { inspect } from "../../../test/ontology/inspect-text.ts";
import { parseText, parseWith } from "../../../test/ontology/parse-text.ts";
import { SAMPLES, type SampleFormat } from "../../../test/ontology/sample-files.ts";
import { type ParserName, parsersFor } from "./parser-choice.ts";

const PARSERS: Readonly<Record<SampleFormat, ParserName>> = {
  "rdf-xml": "xml",
  "owl-xml": "xml",
  obographs: "json",
  "json-ld": "json",
  obo: "obo",
  functional: "functional",
  manchester: "manchester",
  turtle: "turtle",
  trig: "trig",
  "n-triples": "n-triples",
  "n-quads": "n-quads",
};

for (const [format, text] of SAMPLES) {
  const claim = format === "n-triples" ? format : undefined;

  test(`${format}: a file truncated at any character is refused by every parser`, async () => {
    const complete = text.trimEnd();
    for (let length = 1; length < complete.length; length += 1) {
      const cut = text.slice(0, length);
      if (isComplete(format, cut)) continue;
      assert.ok("problem" in (await parseText(cut, claim)), JSON.stringify(cut.slice(-40)));
    }
  });

  test(`${format}: the statements do not depend on how the text is divided into chunks`, async () => {
    const name = PARSERS[format];
    const expected = await parseWith(name, [text]);
    assert.ok("lines" in expected && expected.lines.length > 0, JSON.stringify(expected));
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(text.length), { maxLength: 12 }), async positions => {
        const ends = [...positions, text.length].sort((a, b) => a - b);
        const pieces = ends.map((end, index) => text.slice(ends[index - 1] ?? 0, end));
        assert.deepEqual(withoutBlankNames(await parseWith(name, pieces)), withoutBlankNames(expected));
      }),
      { numRuns: 50 },
    );
    assert.deepEqual(withoutBlankNames(await parseWith(name, [...text])), withoutBlankNames(expected));
  });
}

/** A missing line of these formats cannot be detected: what is left is a complete file. */
function isComplete(format: string, cut: string): boolean {
  if (format === "obo" || format === "manchester") return true;
  return ["turtle", "n-triples", "n-quads", "trig"].includes(format) && /[.}]\s*$|#[^\n]*$/.test(cut);
}

/** n3 numbers its blank nodes over all files. */
function withoutBlankNames(parsed: object): string {
  return JSON.stringify(parsed).replaceAll(/_:[^\s)]+/g, "_:");
}

test("whatever a file contains, parsers are tried and none throws anything but a syntax problem", async () => {
  const fragment = fc.constantFrom(
    ...["<", ">", "</", "/>", '"', "'", "{", "}", "[", "]", "(", ")", ":", ";", ",", ".", "^^", "@en", "\\", "\n", " "],
    ...["<?xml ", "<!--", "-->", "<!DOCTYPE x [", "<!ENTITY a 'b'>", "&a;", "rdf:RDF", "xmlns:rdf=", "[Term]", "id: a"],
    ...[
      "Ontology(",
      "Prefix(",
      "Class:",
      "SubClassOf:",
      '"graphs":',
      '"@context":',
      '"@graph":',
      "@prefix a: <b> .",
      "<<(",
    ],
    ...["true", "1e5", "_:a", "a:b", "\0", "\ufeff", "\u{1f600}", "\ud800", "http://www.w3.org/2002/07/owl#"],
  );
  await fc.assert(
    fc.asyncProperty(fc.array(fragment, { maxLength: 40 }), async fragments => {
      const text = fragments.join("");
      for (const name of new Set(Object.values(PARSERS))) await parseWith(name, [text]);
      assert.ok(parsersFor(text, undefined).length > 0);
    }),
    { numRuns: 500 },
  );
});

test("JSON-LD with an unknown context and a status is a file, and an object without an id is an error message", async () => {
  const context = "https://unknown.example/context.jsonld";
  const kindOf = async (content: object) => (await inspect(JSON.stringify({ "@context": context, ...content }))).kind;
  assert.equal(await kindOf({ "@id": "urn:x", status: "final" }), "valid");
  assert.notEqual(await kindOf({ status: 500, message: "failed" }), "valid");
});
