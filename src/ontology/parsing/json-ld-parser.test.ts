import assert from "node:assert/strict";
import { test } from "node:test";
import { parseWith } from "../../../test/ontology/parse-text.ts";

const RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const XSD = "http://www.w3.org/2001/XMLSchema#";

async function statements(document: unknown): Promise<readonly string[] | string> {
  const parsed = await parseWith("json", [JSON.stringify(document)]);
  return "lines" in parsed ? [...parsed.lines].sort() : parsed.problem;
}

test("terms, prefixes, types, languages and lists are expanded", async () => {
  const document = {
    "@context": {
      "@vocab": "urn:v:",
      "@language": "en",
      ex: "http://ex/",
      id: "@id",
      knows: { "@id": "ex:knows", "@type": "@id" },
      age: { "@id": "ex:age", "@type": `${XSD}integer` },
      label: { "@id": "ex:label", "@container": "@language" },
      plain: { "@id": "ex:plain", "@language": null },
      items: { "@id": "ex:items", "@container": "@list" },
      partOf: { "@reverse": "ex:hasPart" },
      hidden: null,
    },
    id: "ex:a",
    "@type": ["ex:T", "U"],
    knows: "b",
    age: "3",
    label: { de: "Haus", en: ["house"] },
    plain: "x",
    text: "y",
    items: [1, true],
    partOf: { id: "ex:c" },
    hidden: "z",
    nested: { "@value": "1.5", "@type": `${XSD}decimal` },
  };
  assert.deepEqual(
    await statements(document),
    [
      '<http://ex/a> <http://ex/age> "3"^^<http://www.w3.org/2001/XMLSchema#integer> .',
      "<http://ex/a> <http://ex/items> _:b1 .",
      "<http://ex/a> <http://ex/knows> <http://base.example/b> .",
      '<http://ex/a> <http://ex/label> "Haus"@de .',
      '<http://ex/a> <http://ex/label> "house"@en .',
      '<http://ex/a> <http://ex/plain> "x" .',
      `<http://ex/a> <${RDF}type> <http://ex/T> .`,
      `<http://ex/a> <${RDF}type> <urn:v:U> .`,
      `<http://ex/a> <urn:v:nested> "1.5"^^<${XSD}decimal> .`,
      '<http://ex/a> <urn:v:text> "y"@en .',
      "<http://ex/c> <http://ex/hasPart> <http://ex/a> .",
      `_:b1 <${RDF}first> "1"^^<${XSD}integer> .`,
      `_:b1 <${RDF}rest> _:b2 .`,
      `_:b2 <${RDF}first> "true"^^<${XSD}boolean> .`,
      `_:b2 <${RDF}rest> <${RDF}nil> .`,
    ].sort(),
  );
});

test("contexts of properties and types apply where they are scoped", async () => {
  const document = {
    "@context": {
      "@vocab": "urn:v:",
      T: { "@id": "urn:T", "@context": { name: "urn:typed" } },
      p: { "@id": "urn:p", "@context": { name: "urn:inside" } },
    },
    "@id": "urn:a",
    "@type": "T",
    name: "1",
    p: { "@id": "urn:b", name: "2" },
    q: { "@id": "urn:c", name: "3" },
  };
  assert.deepEqual(await statements(document), [
    `<urn:a> <${RDF}type> <urn:T> .`,
    "<urn:a> <urn:p> <urn:b> .",
    '<urn:a> <urn:typed> "1" .',
    "<urn:a> <urn:v:q> <urn:c> .",
    '<urn:b> <urn:inside> "2" .',
    '<urn:c> <urn:v:name> "3" .',
  ]);
});

/** Terms that are each defined by the next one. */
function chainedTerms(count: number): readonly (readonly [name: string, iri: string])[] {
  return Array.from({ length: count }, (_, n) => [`t${n}`, `t${n + 1}:x`] as const);
}

/** The IRI `t1:x` of a term is a term too, which has no `@id`. */
function throughCompactName([name, iri]: readonly [string, string]): readonly (readonly [string, unknown])[] {
  return [
    [name, { "@id": iri }],
    [iri, {}],
  ];
}

test("invalid documents are refused with the reason", async () => {
  const node = { "@id": "urn:a" };
  for (const [document, problem] of [
    [{ "@context": 5, ...node }, /@context is not/],
    [{ "@context": { a: "b:x", b: "a:x" }, ...node, a: 1 }, /defined by itself/],
    [
      { "@context": Object.fromEntries(chainedTerms(40)), ...node },
      /a chain of more than 32 terms leads to term "t33"/,
    ],
    [
      { "@context": Object.fromEntries(chainedTerms(5000).flatMap(throughCompactName)), ...node },
      /a chain of more than 32 terms/,
    ],
    [{ "@id": 5, "urn:p": 1 }, /@id is not a string/],
    [{ ...node, "@type": 5 }, /@type is not a string/],
    [{ ...node, "urn:p": { "@value": "x", "@type": "urn:t", "@language": "en" } }, /@type and @language/],
    [{ ...node, "urn:p": { "@value": {} } }, /@value is an object/],
  ] as const) {
    assert.match(String(await statements(document)), problem);
  }
});

test("a value of type @json is one literal, and a double has its canonical form", async () => {
  const document = {
    "@context": {
      "@vocab": "urn:v:",
      json: { "@type": "@json" },
      double: { "@type": `${XSD}double` },
      decimal: { "@type": `${XSD}decimal` },
    },
    "@id": "urn:a",
    json: [{ "@id": "b" }, 1],
    double: 5,
    decimal: 1.5,
    number: [1.5, 1e21, -7, 1e20],
    text: { "@value": "t", "@type": "@json" },
    "@later": "x",
  };
  assert.deepEqual(
    await statements(document),
    [
      `<urn:a> <urn:v:json> "[{\\"@id\\":\\"b\\"},1]"^^<${RDF}JSON> .`,
      `<urn:a> <urn:v:text> "\\"t\\""^^<${RDF}JSON> .`,
      `<urn:a> <urn:v:double> "5.0E0"^^<${XSD}double> .`,
      `<urn:a> <urn:v:decimal> "1.5"^^<${XSD}decimal> .`,
      `<urn:a> <urn:v:number> "1.5E0"^^<${XSD}double> .`,
      `<urn:a> <urn:v:number> "1.0E21"^^<${XSD}double> .`,
      `<urn:a> <urn:v:number> "-7"^^<${XSD}integer> .`,
      `<urn:a> <urn:v:number> "100000000000000000000"^^<${XSD}integer> .`,
    ].sort(),
  );
});
