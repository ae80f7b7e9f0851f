import assert from "node:assert/strict";
import { parseManifest } from "../../src/ontology/ontology-manifest.ts";
import { openParser, type ParserName, parsersFor, wrongContentOf } from "../../src/ontology/parsing/parser-choice.ts";
import { SyntaxProblem } from "../../src/ontology/parsing/syntax-problem.ts";
import type { FuzzTarget } from "../target.ts";

interface Sample {
  readonly seeds: readonly string[];
  readonly words: readonly string[];
}

const TURTLE_WORDS = [
  "@prefix ",
  "@base ",
  "<a>",
  ".\n",
  ";",
  ",",
  "[",
  "]",
  "(",
  ")",
  '"""',
  "^^",
  "@en",
  "_:b",
  "<<",
  ">>",
  "a ",
  "\\u0041",
  "{",
  "}",
];
const SAMPLES: Readonly<Record<ParserName, Sample>> = {
  xml: {
    seeds: [
      '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xml:base="http://a.example/"><rdf:Description rdf:about="#x"><rdf:type rdf:resource="y"/></rdf:Description></rdf:RDF>',
      '<?xml version="1.0"?><!DOCTYPE Ontology [<!ENTITY a "b">]><Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://a.example/"><Declaration><Class IRI="#&a;"/></Declaration></Ontology>',
    ],
    words: [
      "<rdf:li>",
      "rdf:ID=",
      "rdf:nodeID=",
      'rdf:parseType="Collection"',
      "xml:lang=",
      "<![CDATA[",
      "]]>",
      "<!--",
      "-->",
      "<?",
      "?>",
      "&#x41;",
      "<!ENTITY ",
      "xmlns:a=",
    ],
  },
  json: {
    seeds: [
      '{"@context":{"a":"http://a.example/","b":{"@id":"a:b","@type":"@id"}},"@id":"a:x","b":["a:y"],"@type":"a:T"}',
      '{"graphs":[{"id":"http://a.example/o","nodes":[{"id":"a:x","lbl":"x","type":"CLASS"}],"edges":[{"sub":"a:x","pred":"is_a","obj":"a:y"}]}]}',
    ],
    words: [
      '"@graph":',
      '"@list":',
      '"@set":',
      '"@reverse":',
      '"@language":',
      '"@value":',
      '"@base":',
      '"@vocab":',
      '"@import":',
      "null",
      "[",
      "{",
      "}",
      "]",
      "\\u",
    ],
  },
  trig: { seeds: ["@prefix a: <http://a.example/> .\na:g { a:x a:p 'y'@en, 1.5e3 ; a a:T . }"], words: TURTLE_WORDS },
  turtle: { seeds: ['@prefix a: <http://a.example/> .\na:x a [ a:p (1 true "z"^^a:t) ] .'], words: TURTLE_WORDS },
  "n-triples": {
    seeds: ['<http://a.example/x> <http://a.example/p> "y\\n"@en .\n_:a <http://a.example/p> _:b .'],
    words: TURTLE_WORDS,
  },
  "n-quads": { seeds: ["<http://a.example/x> <http://a.example/p> _:b <http://a.example/g> ."], words: TURTLE_WORDS },
  obo: {
    seeds: [
      'format-version: 1.2\nontology: a\n\n[Term]\nid: A:1\nname: x ! y\ndef: "d \\"e\\"" [PMID:1]\nis_a: A:2 {c="d"} ! z\nsynonym: "s" EXACT []\n',
    ],
    words: [
      "[Term]\n",
      "[Typedef]\n",
      "id: ",
      "is_a: ",
      "xref: ",
      "relationship: ",
      "\\\n",
      "!",
      "{",
      "}",
      '"',
      "intersection_of: ",
      "property_value: ",
    ],
  },
  functional: {
    seeds: [
      'Prefix(:=<http://a.example/>)\nOntology(<http://a.example/>\nDeclaration(Class(:A))\nSubClassOf(:A ObjectSomeValuesFrom(:p :B))\nAnnotationAssertion(rdfs:label :A "x"@en)\n)',
    ],
    words: [
      "(",
      ")",
      "<",
      ">",
      "SubClassOf(",
      "Annotation(",
      "^^xsd:int",
      '"',
      "\\",
      "EquivalentClasses(",
      "_:a ",
      "#",
    ],
  },
  manchester: {
    seeds: [
      'Prefix: : <http://a.example/>\nOntology: <http://a.example/>\nClass: A\n  Annotations: rdfs:label "x"@en\n  SubClassOf: p some B, not (C or D)\n',
    ],
    words: [
      "Class: ",
      "SubClassOf: ",
      "Individual: ",
      "Facts: ",
      " some ",
      " only ",
      "{",
      "}",
      "[",
      "]",
      "(",
      ")",
      ",",
      "inverse ",
    ],
  },
};

export const ontologyTargets: readonly FuzzTarget[] = [
  ...Object.entries(SAMPLES).map(([name, sample]) => ({
    name: `ontology-${name}`,
    ...sample,
    run: async (input: Buffer) => {
      const text = input.toString();
      parsersFor(text, undefined);
      wrongContentOf(text);
      const whole = await statementsOf(name as ParserName, [text]);
      // In pieces of seven characters, so that most words are cut.
      assert.deepEqual(
        await statementsOf(name as ParserName, text.match(/.{1,7}/gs) ?? []),
        whole,
        "the same in pieces",
      );
    },
  })),
  {
    name: "ontology-manifest",
    seeds: ['{"manifest_version":1,"id":"a","checks":{"depth":"full"}}'],
    words: ['"sha256":', '"bytes":', "null", "{", "}", "[", "]"],
    run: input => {
      parseManifest(input.toString());
    },
  },
];

/** The statements that the parser emits. Undefined if it refuses the text; then pieces may have emitted more or fewer. */
async function statementsOf(name: ParserName, texts: readonly string[]): Promise<readonly string[] | undefined> {
  const statements: string[] = [];
  // The parsers number blank nodes over all files.
  const labels = new Map<string, string>();
  const labelOf = (part: string) => {
    if (!part.startsWith("_:")) return part;
    const label = labels.get(part) ?? `_:${labels.size}`;
    labels.set(part, label);
    return label;
  };
  const parser = await openParser(
    name,
    (...parts) => void statements.push(JSON.stringify(parts.map(labelOf))),
    "http://base.example/",
  );
  try {
    for (const text of texts) parser.write(text);
    parser.end();
    return statements;
  } catch (error) {
    if (error instanceof SyntaxProblem) return undefined;
    throw error;
  }
}
