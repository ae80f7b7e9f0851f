import assert from "node:assert/strict";
import { test } from "node:test";
import { ask, bodyOf, directory, workOf } from "../../../../test/testing/service-kit.ts";
import type { SimulatedWork } from "../catalogue.ts";

test("Crossref lists by DOI with selected fields, and returns the registration agency", () => {
  const [one, two] = directory.works.filter(({ registrar }) => registrar === "crossref");
  const { message } = bodyOf(
    ask(`https://api.crossref.org/works?filter=doi:${one?.ids.doi},doi:${two?.ids.doi}&select=DOI`),
  );
  assert.deepEqual(message.items, [{ DOI: one?.ids.doi }, { DOI: two?.ids.doi }]);
  const zenodo = workOf("zenodo");
  assert.equal(ask(`https://api.crossref.org/works/${zenodo.ids.doi}`).status, 404);
  assert.equal(bodyOf(ask(`https://api.crossref.org/works/${zenodo.ids.doi}/agency`)).message.agency.id, "datacite");
});

test("doi.org redirects a request for metadata to the registration agency", () => {
  const accept = { headers: { accept: "application/vnd.citationstyles.csl+json" } };
  const at = ({ ids }: SimulatedWork) =>
    new URL(ask(`https://doi.org/${ids.doi}`, accept).headers["location"] ?? "").host;
  assert.deepEqual([at(workOf("publisher")), at(workOf("zenodo"))], ["api.crossref.org", "api.datacite.org"]);
});
