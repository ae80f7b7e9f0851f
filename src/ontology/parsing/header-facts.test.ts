import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "../../../test/ontology/inspect-text.ts";
import { OWL } from "./rdf-vocabulary.ts";

test("a version comes from the ontology, not from comments or from terms", async () => {
  const version = async (text: string) => {
    const found = await inspect(text);
    return found.kind === "valid" ? found.version?.raw : found.problem;
  };
  const rdf = (inside: string) =>
    `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:o='${OWL}' xmlns:d="http://purl.org/dc/terms/">${inside}</r:RDF>`;
  assert.equal(
    await version(
      rdf(
        "<!-- <o:versionInfo>no</o:versionInfo> --><o:Ontology r:about='x'><o:versionInfo>yes</o:versionInfo></o:Ontology>",
      ),
    ),
    "yes",
  );
  assert.equal(
    await version(
      rdf(
        "<o:Class r:about='http://a/c'><o:versionInfo>no</o:versionInfo></o:Class><o:Ontology r:about='x' o:versionInfo='yes'/>",
      ),
    ),
    "yes",
  );
  assert.equal(
    await version(
      rdf("<o:Ontology r:about='x'><d:created>2020-01-02</d:created><d:modified>2021-03-04</d:modified></o:Ontology>"),
    ),
    "2021-03-04",
  );
  assert.equal(await version("data-version:\nontology: x\n[Term]\nid: X:1\n"), undefined);
  assert.equal(await version("date: 21:12:2015 10:30\n[Term]\nid: X:1\n"), "2015-12-21");
  assert.equal(
    await version(
      `<http://a/c> <${OWL}versionInfo> "no" . <http://a/x> <${OWL}versionInfo> 'yes' ; a <${OWL}Ontology> .`,
    ),
    "yes",
  );
});

const PREFIXES =
  "@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . " +
  "@prefix dct: <http://purl.org/dc/terms/> . ";

async function factsOf(text: string) {
  const found = await inspect(PREFIXES + text);
  assert.ok(found.kind === "valid", JSON.stringify(found));
  return found.facts;
}

test("a licence that is a blank node is no licence, and only IRIs are imports", async () => {
  const facts = await factsOf(
    '<urn:o> a owl:Ontology ; dct:license [ rdfs:label "CC BY" ] ; owl:imports [ a owl:Ontology ], "hello", <urn:i> .',
  );
  assert.deepEqual([facts?.licence, facts?.imports], [null, ["urn:i"]]);
});

test("a label that comes before the type of the ontology is its title", async () => {
  const facts = await factsOf('<urn:c> rdfs:label "A class" . <urn:o> rdfs:label "My ontology" ; a owl:Ontology .');
  assert.equal(facts?.title, "My ontology");
});

test("of several dates, one that begins with its year takes precedence over a text", async () => {
  const dateOf = async (...dates: readonly string[]) => {
    const values = dates.map(date => JSON.stringify(date)).join(", ");
    const found = await inspect(`<http://a/x> a <${OWL}Ontology> ; <http://purl.org/dc/terms/date> ${values} .`);
    return found.kind === "valid" ? found.facts?.date : found.problem;
  };
  assert.equal(await dateOf("May 2012", "2024-05-01"), "2024-05-01");
  assert.equal(await dateOf("2024-05-01", "May 2012", "$Date$"), "2024-05-01");
  assert.equal(await dateOf("2024-05-01", "2023-12-24", "2024-06"), "2024-06");
  assert.equal(await dateOf("May 2012", "18.03.2020"), "May 2012");
});

test("a version IRI that is the IRI of the ontology names no version", async () => {
  const versionOf = async (version: string) => {
    const found = await inspect(
      `<http://a/x.owl> a <${OWL}Ontology> ; <${OWL}versionIRI> <http://a/x.owl> ${version} .`,
    );
    return found.kind === "valid" ? found.version?.raw : found.problem;
  };
  assert.equal(await versionOf(""), undefined);
  assert.equal(await versionOf(`; <${OWL}versionInfo> "1.2"`), "1.2");
});
