import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "n3";
import { parseWith } from "../../../test/ontology/parse-text.ts";
import type { ParserName } from "./parser-choice.ts";

const RESTRICTION = "http://www.w3.org/2002/07/owl#Restriction";

/** The subjects of the statements whose object contains the text. */
async function subjectsOf(parser: ParserName, text: string, object: string): Promise<readonly string[]> {
  const parsed = await parseWith(parser, [text]);
  assert.ok("lines" in parsed, JSON.stringify(parsed));
  return parsed.lines.filter(line => line.includes(object)).map(line => line.slice(0, line.indexOf(" ")));
}

test("a node without an id is not joined with a node of the file that has its generated label", async () => {
  for (const label of ["_:b1", "_:j1", "_:nb1"]) {
    const document = [{ "@id": label, "urn:p": "first" }, { "urn:p": "unnamed" }, { "@id": label, "urn:p": "again" }];
    const subjects = await subjectsOf("json", JSON.stringify(document), '"');
    const [first, unnamed, again] = subjects;
    assert.ok(subjects.every(subject => subject.startsWith("_:")));
    assert.equal(first, again);
    assert.notEqual(first, unnamed);
  }
});

test("a restriction is not joined with a blank node of the file, however the file writes the blank node", async () => {
  const owl = 'xmlns="http://www.w3.org/2002/07/owl#"';
  const some = '<ObjectSomeValuesFrom><ObjectProperty IRI="urn:p"/><Class IRI="urn:c"/></ObjectSomeValuesFrom>';
  const xml = (name: string) => `<Ontology ${owl}><Prefix name="a" IRI="_:"/><SubClassOf><Class ${name}/>${some}
    </SubClassOf><SubClassOf><Class ${name}/><Class IRI="urn:file"/></SubClassOf></Ontology>`;
  const files: readonly (readonly [ParserName, string])[] = [
    [
      "json",
      JSON.stringify({
        graphs: [
          {
            nodes: [{ id: "_:b1" }],
            edges: [
              { sub: "_:b1", pred: "urn:p", obj: "urn:c" },
              { sub: "_:b1", pred: "is_a", obj: "urn:file" },
            ],
          },
        ],
      }),
    ],
    ["xml", xml('abbreviatedIRI="_:b1"')],
    ["xml", xml('abbreviatedIRI="a:b1"')],
    ["xml", xml('nodeID="b1"')],
    ["functional", functional("_:b1")],
    ["functional", functional("a:b1")],
    ["manchester", manchester("_:b1")],
    ["manchester", manchester("a:b1")],
    ["obo", "idspace: a _:\n\n[Term]\nid: a:b1\nrelationship: part_of X:1\nis_a: urn:file\n"],
  ];
  for (const [parser, text] of files) {
    const restrictions = await subjectsOf(parser, text, RESTRICTION);
    const [named] = await subjectsOf(parser, text, "<urn:file>");
    assert.equal(restrictions.length, 1, text);
    assert.match(named ?? "", /^_:/, text);
    assert.notEqual(restrictions[0], named, text);
  }
});

test("labels of a file are exported as valid N-Triples, and different labels stay different", async () => {
  const labels = [
    "a",
    "a b",
    "a.",
    "a/b",
    "a\n",
    "a> <b",
    "",
    "_61_",
    "a_20_b",
    "é",
    "\u{1f600}",
    "\ud800",
    "a:b",
    "-",
  ];
  const document = labels.map((label, index) => ({ "@id": `_:${label}`, "urn:p": `${index}` }));
  const graph = { graphs: [{ nodes: labels.map((label, index) => ({ id: `_:${label}`, lbl: `${index}` })) }] };
  for (const text of [JSON.stringify(document), JSON.stringify(graph)]) {
    const parsed = await parseWith("json", [text]);
    assert.ok("lines" in parsed);
    const quads = new Parser({ format: "N-Triples" }).parse(parsed.lines.join("\n"));
    assert.deepEqual(new Set(quads.map(({ subject }) => subject.termType)), new Set(["BlankNode"]));
    assert.equal(new Set(quads.map(({ subject }) => subject.value)).size, labels.length);
  }
});

function functional(name: string): string {
  return `Prefix(a:=<_:>) Ontology(<urn:o> SubClassOf(${name} ObjectSomeValuesFrom(<urn:p> <urn:c>))
    SubClassOf(${name} <urn:file>))`;
}

function manchester(name: string): string {
  return `Prefix: a: <_:> Ontology: <urn:o> Class: ${name} SubClassOf: <urn:p> some <urn:c>, <urn:file>`;
}
