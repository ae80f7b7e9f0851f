import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "../../../test/ontology/inspect-text.ts";
import { OWL } from "./rdf-vocabulary.ts";

test("facts count distinct terms, deprecated terms, languages and imports", async () => {
  const found = await inspect(`@prefix owl: <${OWL}> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
    @prefix skos: <http://www.w3.org/2004/02/skos/core#> . @prefix : <http://a/> . @prefix dct: <http://purl.org/dc/terms/> .
    <http://a/x> a owl:Ontology ; owl:imports <http://b/y>, <http://b/z> ; dct:license <http://l/> ; dct:title "X"@en .
    :A a owl:Class ; rdfs:label "a"@en, "ah"@de-AT . :A a rdfs:Class .
    :B owl:deprecated true . :B a owl:Class . :p a owl:ObjectProperty, owl:FunctionalProperty .
    :i a :A . :C a skos:Concept . [] a owl:Class . _:r a owl:Restriction .`);
  assert.ok(found.kind === "valid", JSON.stringify(found));
  assert.deepEqual(found.facts, {
    ontology_iri: "http://a/x",
    version_iri: null,
    version_info: null,
    date: null,
    title: "X",
    licence: "http://l/",
    imports: ["http://b/y", "http://b/z"],
    classes: 2,
    properties: 1,
    individuals: 1,
    concepts: 1,
    terms: 5,
    deprecated_terms: 1,
    languages: { "de-at": 1, en: 2 },
  });
});
