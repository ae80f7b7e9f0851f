import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { inspect, verdict } from "../../test/ontology/inspect-text.ts";
import { GRAPHS, JSON_LD, OBO, OFN, OMN, OWX, RDF, SAMPLES, TTL } from "../../test/ontology/sample-files.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";

import { type InspectionOptions, inspectFile } from "./file-inspection.ts";
import { targetFormatOf } from "./format.ts";

const OWL = "http://www.w3.org/2002/07/owl#";

test("a file that disappears while its parsers are tried is an error that the caller receives", async t => {
  const path = join(temporaryFolder("ontofetch"), "x");
  await writeFile(path, `${"# comment\n".repeat(20_000)}no statement`);
  const unhandled: unknown[] = [];
  const record = (error: unknown) => void unhandled.push(error);
  process.on("uncaughtException", record);
  t.after(() => process.off("uncaughtException", record));
  await assert.rejects(
    inspectFile(path, "full", { claim: "turtle", onChunk: () => rm(path, { force: true }) }),
    (error: NodeJS.ErrnoException) => error.code === "ENOENT",
  );
  assert.deepEqual(unhandled, []);
});

for (const [format, text, label] of SAMPLES) {
  // Only the name of a file distinguishes N-Triples from Turtle.
  const options = format === "n-triples" ? { claim: format } : {};

  test(`${format}: a complete file is valid, with its format, version and facts`, async () => {
    const found = await inspect(text, options);
    assert.ok(found.kind === "valid", JSON.stringify(found));
    assert.deepEqual([found.format, found.version?.label, found.checks.depth], [format, label, "full"]);
    assert.ok((found.checks.statements ?? 0) > 0);
    assert.ok(found.facts !== null);
  });

  test(`${format}: with check none and end, the beginning decides the format and the version`, async () => {
    for (const depth of ["none", "end"] as const) {
      const found = await inspect(text, { ...options, depth });
      assert.ok(found.kind === "valid", JSON.stringify(found));
      assert.deepEqual([found.format, found.version?.label, found.facts], [format, label, null]);
    }
  });
}

test("with check none and end, the version of a small file is found wherever it is", async () => {
  const turtle =
    '<http://a/x> a <http://www.w3.org/2002/07/owl#Ontology> ; <http://www.w3.org/2002/07/owl#versionInfo> "7" .';
  const jsonLd = { "@context": { owl: OWL }, "@id": "urn:x", "@type": "owl:Ontology", "owl:versionInfo": "7" };
  for (const text of [turtle, JSON.stringify(jsonLd)]) {
    for (const depth of ["none", "end"] as const) {
      const found = await inspect(text, { depth });
      assert.equal(found.kind === "valid" ? found.version?.label : found.problem, "7");
    }
  }
});

test("UTF-16: the end of a file is checked in its own encoding", async () => {
  const rdf = RDF.replace('version="1.0"', 'version="1.0" encoding="UTF-16"');
  const littleEndian = Buffer.from(`\ufeff${rdf}`, "utf16le");
  for (const content of [littleEndian, Buffer.from(littleEndian).swap16()]) {
    const found = await inspect(content, { depth: "end" });
    assert.equal(found.kind, "valid", JSON.stringify(found));
    const cut = await inspect(content.subarray(0, -8), { depth: "end" });
    assert.equal(cut.kind, "broken", JSON.stringify(cut));
  }
});

for (const [format, text] of [
  [
    "functional",
    "Prefix(:=<http://a/>)\nOntology(<http://a/x>\nSubClassOf(:A ObjectSomeValuesFrom(:p :B))\nClassAssertion(:C _:b1)\n)\n",
  ],
  ["manchester", "Prefix: : <http://a/>\nClass: A\n  SubClassOf: p some B\nIndividual: _:b1\n  Types: C\n"],
] as const) {
  test(`${format}: a blank node of the file is not the blank node of a restriction`, async () => {
    const nodes: string[] = [];
    const found = await inspect(text, {
      onStatement: (subject, _predicate, object) => {
        if (object === `${OWL}Restriction` || object === "http://a/C") nodes.push(subject);
      },
    });
    assert.equal(found.kind === "valid" && found.format, format, JSON.stringify(found));
    assert.deepEqual(nodes, ["_:b1", "_:nb1"]);
  });
}

test("obographs: an id that begins with _: is a blank node, also as an object", async () => {
  const kinds: string[] = [];
  const edges = ["is_a", "http://a/p"].map(pred => ({ sub: "http://a/X_1", pred, obj: "_:genid1" }));
  const text = JSON.stringify({ graphs: [{ id: "http://a/x", nodes: [{ id: "http://a/X_1" }], edges }] });
  const found = await inspect(text, {
    onStatement: (_subject, _predicate, object, kind) => {
      if (object === "_:ngenid1") kinds.push(kind);
    },
  });
  assert.equal(found.kind, "valid", JSON.stringify(found));
  assert.deepEqual(kinds, ["blank", "blank"]);
});

/** Files that a parser reads in part, before another parser accepts them. */
const AMBIGUOUS = [
  ["n-quads", '<http://a/x> <http://a/p> "1" .\n<http://a/x> <http://a/p> "2" <http://a/g> .\n'],
  ["obo", "Ontology: <http://a/x>\n\n[Term]\nid: X:1\nname: one\n"],
] as const;

test("statements of a parser that fails are not passed on if another parser accepts the file", async () => {
  for (const [format, text] of AMBIGUOUS) {
    const collected = async (options: InspectionOptions) => {
      const lines: string[] = [];
      const found = await inspect(text, { ...options, onStatement: (...statement) => lines.push(statement.join(" ")) });
      assert.equal(found.kind === "valid" && found.format, format, JSON.stringify(found));
      return lines;
    };
    const lines = await collected({});
    assert.equal(new Set(lines).size, lines.length, lines.join("\n"));
    assert.deepEqual(lines.filter(line => line.includes("owl#Ontology")).length, format === "obo" ? 1 : 0);
    assert.deepEqual(lines, await collected({ storedFormat: format }));
  }
});

test("the parser of the stored format reads every valid file of that format", async () => {
  const unusual = [["turtle", "{ <http://a/x> <http://a/p> 1 }"]] as const;
  for (const [format, text] of [...SAMPLES, ...unusual]) {
    const found = await inspect(text, { storedFormat: format });
    assert.equal(found.kind === "valid" && targetFormatOf(found.format), targetFormatOf(format), JSON.stringify(found));
  }
  const cut = await inspect(OBO.slice(0, -40), { storedFormat: "obo" });
  assert.match("problem" in cut ? cut.problem : "", /^invalid obo: line \d+: /);
  const other = await inspect(OBO, { storedFormat: "turtle" });
  assert.match("problem" in other ? other.problem : "", /^invalid turtle: line 1: /);
});

test("OWL/XML: an anonymous individual has a blank node, with and without _: in its nodeID", async () => {
  const assertion = (nodeId: string) =>
    `<ClassAssertion><Class IRI="http://a/X_1"/><AnonymousIndividual nodeID="${nodeId}"/></ClassAssertion>`;
  const subjects: string[] = [];
  const found = await inspect(OWX.replace("</Ontology>", `${assertion("genid1")}${assertion("_:b2")}</Ontology>`), {
    onStatement: (subject, _predicate, object) => {
      if (object === "http://a/X_1") subjects.push(subject);
    },
  });
  assert.equal(found.kind, "valid", JSON.stringify(found));
  assert.deepEqual(subjects, ["_:ngenid1", "_:nb2"]);
});

test("valid files that begin in an unusual way are accepted", async () => {
  const cases: readonly (readonly [string, string | Uint8Array])[] = [
    ["manchester", OMN],
    ["manchester", `# comment\n\n${OMN}`],
    [
      "owl-xml",
      `<?xml version="1.0"?>\n<!DOCTYPE Ontology [\n <!ENTITY owl "${OWL}" >\n <!ENTITY x 'http://a/x#'>\n]>\n<Ontology xmlns="${OWL}" ontologyIRI="http://a/x"><Declaration><Class IRI="&x;A"/></Declaration></Ontology>`,
    ],
    [
      "rdf-xml",
      RDF.replace(
        "<rdf:RDF",
        `<!DOCTYPE rdf:RDF [<!ENTITY a "http://a/"> <!-- <!ENTITY b "no"> -->]>\n<rdf:RDF`,
      ).replace("http://a/X_1", "&a;X_1"),
    ],
    ["obo", OBO.trimEnd()],
    ["obo", "[Term]\nid: X:1\nname: one"],
    ["obo", "date: 21:12:2015 10:30\n[Term]\nid: X:1\n"],
    ["obo", "remark: a remark\n[Term]\nid: X:1\n"],
    ["obo", "default-namespace: x\r\n\r\n[Term]\r\nid: X:1\r\n"],
    ["obo", "format-version: 1.4\n[Term]\nid: X:1 ! one\nname: a very\\\n long name\n"],
    ["turtle", "[] a <http://a/C> .\n"],
    ["turtle", "[ a <http://a/C> ] .\n"],
    ["turtle", "(1 2) <http://a/p> 3 ."],
    ["turtle", `${TTL.trimEnd()} without a line break`],
    ["turtle", "@base <http://a/> .\n<#x> <p> 'y' . # c#d"],
    ["turtle", "<http://a/x> <http://a/p> <http://a/y> ."],
    ["turtle", "prefix : <http://a/>\n:a :b :c ."],
    ["trig", "{ <http://a/x> <http://a/p> 1 } <http://a/g> { <http://a/x> <http://a/p> 2 }"],
    ["n-quads", '_:a <http://a/p> "x"@en <http://a/g> .\n'],
    ["rdf-xml", Buffer.from(`\ufeff${RDF.replace('version="1.0"', 'version="1.0" encoding="UTF-16"')}`, "utf16le")],
    [
      "rdf-xml",
      Buffer.from(
        RDF.replace('version="1.0"', 'version="1.0" encoding="ISO-8859-1"').replace("X_1", "X_\u00e9"),
        "latin1",
      ),
    ],
    ["rdf-xml", RDF.replace("<rdf:RDF", `<!-- ${"a long comment ".repeat(20_000)}-->\n<rdf:RDF`)],
    ["rdf-xml", `${RDF}<!-- ${"a long comment ".repeat(20_000)}-->\n`],
    ["rdf-xml", `\ufeff${RDF}`],
    ["functional", `# ${"comment ".repeat(20_000)}\n${OFN}`],
    ["json-ld", `[{"@id":"http://a/x","@type":["${OWL}Class"]}]`],
    ["json-ld", JSON_LD.replace(/^\{("@context": \{[^}]*\}),\n ("@graph".*)\}\n$/s, "{$2,$1}")],
    ["obographs", GRAPHS.replace('{"graphs"', '{"meta":{},"graphs"')],
  ];
  for (const [format, content] of cases) {
    assert.equal(await verdict(content), format, String(content).slice(0, 200));
  }
});

test("names of a prototype in a file are ordinary names", async () => {
  for (const name of ["constructor", "__proto__", "toString"]) {
    const found = await inspect(
      `{"graphs":[{"id":"x","nodes":[{"id":"a","type":"${name}"}],"edges":[{"sub":"a","pred":"${name}","obj":"b"}]}]}`,
    );
    assert.ok(found.kind === "valid", JSON.stringify(found));
    assert.equal(found.facts?.classes, 1);
    assert.equal(await verdict(RDF.replace("<rdf:RDF", `<!DOCTYPE r [<!ENTITY a "&${name};">]><rdf:RDF`)), "rdf-xml");
    assert.equal(await verdict(`{"@context":{"${name}":"urn:x"},"@id":"urn:a","${name}":1}`), "json-ld");
  }
});

test("damaged files are refused, and the message names the line", async () => {
  const invalidUtf8 = (text: string, mark: string) => {
    const at = text.indexOf(mark);
    return Buffer.concat([Buffer.from(text.slice(0, at)), Buffer.from([0xff, 0xfe]), Buffer.from(text.slice(at))]);
  };
  const cases: readonly (readonly [string, string | Uint8Array, RegExp])[] = [
    ["bytes that are not UTF-8 in RDF/XML", invalidUtf8(RDF, "X_1"), /not UTF-8 after line 1$/],
    ["bytes that are not UTF-8 in Turtle", invalidUtf8(TTL, "v3"), /not UTF-8/],
    ["zero bytes in RDF/XML", RDF.replace("X_1", "\0".repeat(512)), /zero bytes/],
    ["zero bytes in Turtle", TTL.replace("# the end", `# ${"\0".repeat(512)}`), /zero bytes/],
    ["zero bytes in OBO", OBO.replace("PMID", "\0".repeat(512)), /zero bytes/],
    ["no graphs", '{"graphs":[]}', /contains no nodes/],
    ["graphs without nodes", '{"graphs":[{"id":"x","nodes":[]}]}', /contains no nodes/],
    ["a node without an id", '{"graphs":[{"nodes":[{"lbl":"x"}]}]}', /a node has no id/],
    ["a JSON error as JSON-LD", '{"@context":"https://schema.org/errors","error":"x"}', /a JSON error message/],
    ["a JSON error", '{"error":{"message":"not found"},"status":404}', /a JSON error message/],
    ["JSON-LD without statements", '{"@context":{},"message":"not found"}', /contains no triples/],
    ["JSON after the end", `${GRAPHS}{}`, /line 2: text after the end of JSON/],
    ["an unclosed quotation mark in OBO", OBO.replace('def: "x"', 'def: "x'), /line 8: def with an unclosed/],
    ["an empty id in OBO", OBO.replace("id: HP:1", "id:"), /line 6: empty id/],
    ["an id that is a comment", OBO.replace("id: HP:1", "id: ! HP:1"), /line 6: empty id/],
    ["a stanza without id", OBO.replace("id: HP:1\n", ""), /line 6: stanza \[Term\] does not begin with an id/],
    ["an unknown stanza in OBO", OBO.replace("[Typedef]", "[Tpedef]"), /line 10: unknown stanza \[Tpedef\]/],
    [
      "an HTML line in OBO",
      OBO.replace("[Typedef]", "<p>502 Bad Gateway</p>\n[Typedef]"),
      /line 10: expected "tag: value"/,
    ],
    ["OWL/XML in a wrong namespace", OWX.replace("2002/07/owl#", "2003/07/owl#"), /neither rdf:RDF nor Ontology/],
    ["an unknown axiom in OWL/XML", OWX.replaceAll("SubClassOf", "SubKlassOf"), /line 5: unknown axiom SubKlassOf/],
    [
      "an axiom without operands",
      OWX.replace(/<Class abbr[^>]*>/, ""),
      /SubClassOf has 1 operands, expected at least 2/,
    ],
    ["an undeclared prefix in OWL/XML", OWX.replace("owl:Thing", "ovl:Thing"), /undeclared prefix/],
    ["a wrong closing tag", RDF.replace("</owl:Ontology>", "</owl:Ontolog>"), /line 3: /],
    ["text between elements", RDF.replace("<owl:Class", "lost<owl:Class"), /line 4: text between elements/],
    ["an undeclared namespace", RDF.replace("<owl:Class", "<ovl:Class"), /line 4: undeclared namespace prefix "ovl"/],
    ["a superfluous parenthesis", OFN.replace("(:a))", "(:a)))"), /line 5: /],
    ["an unknown axiom", OFN.replace("AnnotationAssertion", "AnnotationAsertion"), /line 5: unknown axiom/],
    ["an undeclared prefix", OFN.replace(":a ", "b:a "), /line 5: undeclared prefix in "b:a"/],
    ["two names in Manchester syntax", OMN.replace(":b, :p", ":b :p"), /line 6: unexpected .* after a name/],
    ["an unclosed bracket in Manchester syntax", OMN.replace(":d)", ":d"), /line 7: unclosed "\("/],
    ["two predicates in Turtle", TTL.replace("a owl:Ontology", "a owl:Ontology owl:Class"), /line 2: /],
    ["a missing value in JSON", GRAPHS.replace('"nodes":[', '"nodes":[,'), /line 1: unexpected ","|invalid JSON/],
  ];
  for (const [name, content, problem] of cases) {
    const found = await inspect(content);
    assert.notEqual(found.kind, "valid", name);
    assert.match("problem" in found ? found.problem : "", problem, name);
  }
});

test("a file whose name claims N-Triples or N-Quads must be that, not only Turtle", async () => {
  assert.match(await verdict(TTL, { claim: "n-triples" }), /^broken: invalid n-triples: line 1: /);
  assert.match(
    await verdict("<http://a/x> <http://a/p> 1 .\n", { claim: "n-quads" }),
    /^broken: invalid n-quads: line 1: /,
  );
  assert.match(
    await verdict("<http://a/g> { <http://a/x> <http://a/p> 1 }", { claim: "turtle" }),
    /^broken: invalid turtle: line 1: /,
  );
  // Cut off in its first statement, it is broken, and fetched again, for each claim of the family.
  for (const claim of ["turtle", "trig", "n-triples", "n-quads"] as const)
    assert.match(await verdict("<http://a/x> <http://a/p", { claim }), /^broken: /, claim);
  // The claim says nothing about other families of formats.
  assert.equal(await verdict(RDF, { claim: "turtle" }), "rdf-xml");
});

test("content that is not an ontology is named, and is not fetched again", async () => {
  const cases: readonly (readonly [string, string | Uint8Array])[] = [
    ["file is an HTML page", "<!doctype html><title>Sign in</title>"],
    [
      "file is an HTML page",
      '<?xml version="1.0"?>\n<!-- x -->\n<html xmlns="http://www.w3.org/1999/xhtml"><body/></html>',
    ],
    [
      "file is an XML listing or error of a file server",
      '<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/"/>',
    ],
    ["file is empty", " \n"],
    ["file is binary data of unknown format", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 13])],
    ["file contains no stanzas", "format-version: 1.2\n"],
    ["file contains no triples", "# nothing\n@prefix : <http://a/> .\n"],
  ];
  for (const [problem, content] of cases) assert.equal(await verdict(content), `wrong-content: ${problem}`);
  assert.match(await verdict("404: Not Found"), /^wrong-content: file is text of unknown format \(/);
});

test("a JSON-LD file with an unknown context is valid, but has no facts", async () => {
  const found = await inspect('{"@context":"https://a.example/context.jsonld","name":"x"}');
  assert.ok(found.kind === "valid");
  assert.equal(found.checks.note, "not expanded: context https://a.example/context.jsonld is not available offline");
  assert.equal(found.facts, null);
  assert.equal(
    await verdict('{"@context":"https://a.example/c","name":"x"'),
    "broken: invalid json-ld: line 1: unexpected end of JSON",
  );
});

test("an aborted check rejects with the signal's reason", async () => {
  await assert.rejects(inspect(OBO, { signal: AbortSignal.abort(new Error("enough")) }), { message: "enough" });
});
