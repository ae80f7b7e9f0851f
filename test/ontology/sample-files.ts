import type { OntologyFileFormat } from "../../src/ontology/format.ts";

export const RDF = `<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:owl="http://www.w3.org/2002/07/owl#">
  <owl:Ontology rdf:about="http://a/x.owl"><owl:versionIRI rdf:resource="http://a/x/releases/2026-11-01/x.owl"/></owl:Ontology>
  <owl:Class rdf:about="http://a/X_1"/>
</rdf:RDF>
`;
export const OWX = `<?xml version="1.0"?>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="http://a/x" versionIRI="http://a/x/2.0">
  <Prefix name="x" IRI="http://a/x#"/>
  <Declaration><Class IRI="http://a/X_1"/></Declaration>
  <SubClassOf><Class IRI="http://a/X_1"/><Class abbreviatedIRI="owl:Thing"/></SubClassOf>
</Ontology>
`;
export const OBO = `format-version: 1.2
data-version: hp/releases/2020-08-11
! a comment

[Term]
id: HP:1
name: "a: b"
def: "x" [PMID:1]

[Typedef]
id: part_of
`;
export const GRAPHS = `{"graphs":[{"id":"x","meta":{"basicPropertyValues":[{"pred":"p","val":"v"}],"version":"http://a/x/releases/2026-02-03/x.json"},"nodes":[{"id":"a","meta":{"version":"no"}}]}]}\n`;
export const TTL = `@prefix owl: <http://www.w3.org/2002/07/owl#> .
<http://a/x> a owl:Ontology ; owl:versionInfo "v3.93.0" .
# the end
`;
export const OFN = `Prefix(:=<http://a/x#>)
Ontology(<http://a/x> <http://a/x/1.4>
# a comment (with a parenthesis
Declaration(Class(:a))
AnnotationAssertion(rdfs:label :a "a \\" ( quote")
)
`;
export const JSON_LD = `{"@context": {"owl": "http://www.w3.org/2002/07/owl#"},
 "@graph": [{"@id": "http://a/x", "@type": "owl:Ontology", "owl:versionInfo": "4.5"}, {"@id": "http://a/X_1", "@type": "owl:Class"}]}
`;
export const OMN = `Prefix: : <http://a/x#>
Ontology: <http://a/x> <http://a/x/2026-03-04>
Annotations: rdfs:label "x"@en
Class: :a
    Annotations: rdfs:label "a, b"
    SubClassOf: :b, :p some (:c and not :d)
Class: :b
`;
const NT = `<http://a/x> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/2002/07/owl#Ontology> .
<http://a/x> <http://www.w3.org/2002/07/owl#versionInfo> "7" .
`;
const NQ = NT.replaceAll(" .\n", " <http://a/g> .\n");
const TRIG = `@prefix owl: <http://www.w3.org/2002/07/owl#> .
<http://a/g> { <http://a/x> a owl:Ontology ; owl:versionInfo "8" . }
`;
/** The formats that are text. */
export type SampleFormat = Exclude<OntologyFileFormat, "xbrl-package">;

/** Formats, each with a complete file and the label of its version. */
export const SAMPLES: readonly (readonly [SampleFormat, string, label: string])[] = [
  ["rdf-xml", RDF, "2026-11-01"],
  ["owl-xml", OWX, "2.0"],
  ["obo", OBO, "2020-08-11"],
  ["obographs", GRAPHS, "2026-02-03"],
  ["turtle", TTL, "v3.93.0"],
  ["functional", OFN, "1.4"],
  ["json-ld", JSON_LD, "4.5"],
  ["manchester", OMN, "2026-03-04"],
  ["n-triples", NT, "7"],
  ["n-quads", NQ, "7"],
  ["trig", TRIG, "8"],
];
