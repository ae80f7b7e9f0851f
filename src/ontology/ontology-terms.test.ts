import assert from "node:assert/strict";
import { test } from "node:test";
import { projectAt } from "../../test/ontology/kit.ts";
import { readTerms } from "./ontology-terms.ts";

test("the terms of a file are those that its facts count, whatever makes them terms", async t => {
  const { project } = await projectAt(t, (_, response) => {
    response.end(`@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix : <http://a/> .
      @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
      <http://a/x> a owl:Ontology ; owl:versionInfo "1" .
      :metre a :Unit . :Unit a owl:Class . :old a owl:DeprecatedClass . :p a owl:TransitiveProperty .
      :c a :Unit, skos:Concept . :n a owl:NamedIndividual, owl:Class . [] a :Unit . :s a skos:ConceptScheme .`);
  });
  const [result] = await project.pull();
  assert.ok(result !== undefined && result.outcome !== "failed", JSON.stringify(result));
  const { terms } = await readTerms(result.stored);
  assert.deepEqual(
    [...terms.values()].map(({ iri, type }) => `${iri.slice("http://a/".length)} ${type}`),
    ["metre individual", "Unit class", "old class", "p property", "c concept", "n class"],
  );
  assert.equal(terms.get("http://a/old")?.isDeprecated, true);
  assert.equal(result.stored.manifest.facts?.terms, terms.size);
  assert.equal(result.stored.manifest.facts?.deprecated_terms, 1);
});
