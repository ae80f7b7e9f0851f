/**
 * Generates ontology files of any size. Every term of a file has the same number of bytes, so the content at an offset
 * can be computed without the content before it. A file of gigabytes is generated while it is sent, from any offset.
 */
import type { StreamedBody } from "./exchange.ts";

/** The extension of a simulated ontology file. */
export type OntologyFormat = "owl" | "obo" | "json" | "ttl" | "ofn" | "owx";

export interface OntologyPlan {
  /** Such as `reed`, whose terms are REED_0000001 and so on. */
  readonly id: string;
  readonly title: string;
  /** A date, as in OBO ontologies: `2026-07-31`. */
  readonly version: string;
  /** The IRI of the ontology. */
  readonly iri: string;
  /** The IRI of this version. */
  readonly versionIri: string;
  /** The beginning of the IRIs of its terms. */
  readonly termBase: string;
  /** The number of terms, 2 to 9,999,999, because their numbers have seven digits. Number 0 is the root. */
  readonly terms: number;
}

/** `count` texts with the same number of bytes, `width`. */
interface TextRun {
  readonly count: number;
  readonly width: number;
  readonly at: (index: number) => string;
}

const BLOCK_BYTES = 65_536;

export function ontologyFile(plan: OntologyPlan, format: OntologyFormat): StreamedBody {
  const runs = WRITERS[format](plan);
  const length = runs.reduce((sum, { count, width }) => sum + count * width, 0);
  return { length, from: (start, end) => blocks(runs, start, end) };
}

/** The plan with as many terms as fit into `bytes`. */
export function filledTo(plan: OntologyPlan, format: OntologyFormat, bytes: number): OntologyPlan {
  const lengthWith = (terms: number) => ontologyFile({ ...plan, terms }, format).length;
  const perTerm = lengthWith(4) - lengthWith(3);
  return { ...plan, terms: Math.max(2, Math.min(9_999_999, 2 + Math.floor((bytes - lengthWith(2)) / perTerm))) };
}

/** The complete file in memory; only for small files. */
export function completeFile(pieces: StreamedBody): Buffer {
  return Buffer.concat([...pieces.from(0, pieces.length)]);
}

function* blocks(runs: readonly TextRun[], start: number, end: number): Iterable<Uint8Array> {
  let runStart = 0;
  for (const { count, width, at } of runs) {
    const runEnd = runStart + count * width;
    const perBlock = Math.max(1, Math.floor(BLOCK_BYTES / width));
    let index = Math.max(0, Math.floor((start - runStart) / width));
    while (index < count && runStart + index * width < end && start < runEnd) {
      const blockCount = Math.min(perBlock, count - index);
      const block = Buffer.from(Array.from({ length: blockCount }, (_, offset) => at(index + offset)).join(""));
      const blockStart = runStart + index * width;
      yield block.subarray(Math.max(0, start - blockStart), Math.max(0, Math.min(block.length, end - blockStart)));
      index += blockCount;
    }
    runStart = runEnd;
  }
}

function fixed(text: string): TextRun {
  return { count: 1, width: Buffer.byteLength(text), at: () => text };
}

/** The terms from `first` on. Each is a child of a term with a smaller number. */
function termRun({ terms }: OntologyPlan, write: (number: string, parent: string) => string, first = 1): TextRun {
  const at = (index: number) => write(digits(index + first), digits(Math.floor((index + first) / 3)));
  return { count: Math.max(0, terms - first), width: Buffer.byteLength(at(0)), at };
}

function digits(number: number): string {
  return String(number).padStart(7, "0");
}

type Writer = (plan: OntologyPlan) => readonly TextRun[];

const LICENCE = "https://creativecommons.org/licenses/by/4.0/";

const owl: Writer = plan => {
  const { iri, versionIri, version, title, termBase } = plan;
  return [
    fixed(`<?xml version="1.0"?>
<rdf:RDF xmlns="${iri}#"
     xml:base="${iri}"
     xmlns:obo="http://purl.obolibrary.org/obo/"
     xmlns:owl="http://www.w3.org/2002/07/owl#"
     xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
     xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"
     xmlns:terms="http://purl.org/dc/terms/">
    <owl:Ontology rdf:about="${iri}">
        <owl:versionIRI rdf:resource="${versionIri}"/>
        <terms:license rdf:resource="${LICENCE}"/>
        <terms:title>${title}</terms:title>
        <owl:versionInfo>${version}</owl:versionInfo>
    </owl:Ontology>
    <owl:Class rdf:about="${termBase}${digits(0)}">
        <rdfs:label>${plan.id} root</rdfs:label>
    </owl:Class>
`),
    termRun(
      plan,
      (number, parent) => `    <owl:Class rdf:about="${termBase}${number}">
        <rdfs:subClassOf rdf:resource="${termBase}${parent}"/>
        <obo:IAO_0000115>A kind of ${plan.id} that is numbered ${number}.</obo:IAO_0000115>
        <rdfs:label>${plan.id} ${number}</rdfs:label>
    </owl:Class>
`,
    ),
    fixed("</rdf:RDF>\n"),
  ];
};

const obo: Writer = plan => {
  const prefix = prefixOf(plan);
  return [
    fixed(`format-version: 1.2
data-version: ${plan.id}/releases/${plan.version}
default-namespace: ${plan.id}
ontology: ${plan.id}
property_value: http://purl.org/dc/terms/license ${LICENCE}
property_value: http://purl.org/dc/terms/title "${plan.title}" xsd:string

[Term]
id: ${prefix}:${digits(0)}
name: ${plan.id} root
`),
    termRun(
      plan,
      (number, parent) => `
[Term]
id: ${prefix}:${number}
name: ${plan.id} ${number}
def: "A kind of ${plan.id} that is numbered ${number}." []
is_a: ${prefix}:${parent} ! ${plan.id}
`,
    ),
  ];
};

const json: Writer = plan => {
  const { iri, versionIri, version, termBase } = plan;
  const meta = {
    version: versionIri,
    basicPropertyValues: [{ pred: "http://www.w3.org/2002/07/owl#versionInfo", val: version }],
  };
  const root = JSON.stringify({ id: `${termBase}${digits(0)}`, lbl: `${plan.id} root`, type: "CLASS" });
  const edge = (sub: string, obj: string) =>
    JSON.stringify({ sub: `${termBase}${sub}`, pred: "is_a", obj: `${termBase}${obj}` });
  return [
    fixed(`{"graphs":[{"id":${JSON.stringify(iri)},"meta":${JSON.stringify(meta)},\n"nodes":[\n${root}`),
    termRun(
      plan,
      number => `,\n${JSON.stringify({ id: `${termBase}${number}`, lbl: `${plan.id} ${number}`, type: "CLASS" })}`,
    ),
    // The first edge is separate, because it has no comma before it.
    fixed(`\n],\n"edges":[\n${edge(digits(1), digits(0))}`),
    termRun(plan, (number, parent) => `,\n${edge(number, parent)}`, 2),
    fixed("\n]}]}\n"),
  ];
};

const ttl: Writer = plan => {
  const { iri, versionIri, version, title, termBase } = plan;
  return [
    fixed(`@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix dct: <http://purl.org/dc/terms/> .

<${iri}> a owl:Ontology ;
    owl:versionIRI <${versionIri}> ;
    owl:versionInfo "${version}" ;
    dct:title "${title}" ;
    dct:license <${LICENCE}> .

<${termBase}${digits(0)}> a owl:Class ; rdfs:label "${plan.id} root" .
`),
    termRun(
      plan,
      (number, parent) =>
        `<${termBase}${number}> a owl:Class ; rdfs:subClassOf <${termBase}${parent}> ; rdfs:label "${plan.id} ${number}" .\n`,
    ),
  ];
};

const ofn: Writer = plan => {
  const { iri, versionIri, version, termBase } = plan;
  return [
    fixed(`Prefix(owl:=<http://www.w3.org/2002/07/owl#>)
Prefix(rdfs:=<http://www.w3.org/2000/01/rdf-schema#>)

Ontology(<${iri}>
<${versionIri}>
Annotation(owl:versionInfo "${version}")

Declaration(Class(<${termBase}${digits(0)}>))
`),
    termRun(
      plan,
      (number, parent) => `Declaration(Class(<${termBase}${number}>))
AnnotationAssertion(rdfs:label <${termBase}${number}> "${plan.id} ${number}")
SubClassOf(<${termBase}${number}> <${termBase}${parent}>)
`,
    ),
    fixed(")\n"),
  ];
};

const owx: Writer = plan => {
  const { iri, versionIri, version, termBase } = plan;
  return [
    fixed(`<?xml version="1.0"?>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" xml:base="${iri}" ontologyIRI="${iri}" versionIRI="${versionIri}">
    <Prefix name="owl" IRI="http://www.w3.org/2002/07/owl#"/>
    <Annotation><AnnotationProperty abbreviatedIRI="owl:versionInfo"/><Literal>${version}</Literal></Annotation>
    <Declaration><Class IRI="${termBase}${digits(0)}"/></Declaration>
`),
    termRun(
      plan,
      (number, parent) => `    <Declaration><Class IRI="${termBase}${number}"/></Declaration>
    <SubClassOf><Class IRI="${termBase}${number}"/><Class IRI="${termBase}${parent}"/></SubClassOf>
`,
    ),
    fixed("</Ontology>\n"),
  ];
};

const WRITERS: Readonly<Record<OntologyFormat, Writer>> = { owl, obo, json, ttl, ofn, owx };

function prefixOf({ id }: Pick<OntologyPlan, "id">): string {
  return id.toUpperCase();
}
