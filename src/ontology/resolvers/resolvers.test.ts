import assert from "node:assert/strict";
import { test } from "node:test";
import type { TargetFormat } from "../format.ts";
import type { OntologyFinding, RegistryResponse, Source } from "../resolver.ts";
import { RESOLVERS } from "./all.ts";

function requestFor(resolver: string, id: string, more: Partial<Source> = {}) {
  const source: Source = { id, resolver, targetFormats: [], extras: {}, ...more };
  const found = RESOLVERS.get(resolver);
  assert.ok(found);
  return {
    question: found.requestFor(source)?.url,
    read: (body: unknown, status = 200) => found.read(source, { status, body: JSON.stringify(body) }),
    readResponse: (response: RegistryResponse | undefined) => found.read(source, response),
  };
}

const summaryOf = (finding: OntologyFinding) =>
  finding.kind === "found" ? finding.candidate.url : `${finding.reason}: ${finding.message}`;
const wants = (...targetFormats: readonly TargetFormat[]) => ({ targetFormats });

const REGISTRY = {
  ontologies: [
    {
      id: "hp",
      license: { label: "hpo", url: "https://hpo.example/license" },
      products: [
        { id: "hp.owl", ontology_purl: "http://purl.obolibrary.org/obo/hp.owl" },
        { id: "hp.obo", ontology_purl: "http://purl.obolibrary.org/obo/hp.obo" },
        { id: "hp/hp-base.owl", ontology_purl: "http://purl.obolibrary.org/obo/hp/hp-base.owl" },
        { id: "hp.json", ontology_purl: "file:///etc/passwd" },
      ],
    },
    { id: "old", is_obsolete: true, replaced_by: "hp", products: [] },
  ],
};

test("obo takes the first wanted format that the registry has, or a product by its name", () => {
  const { question, read } = requestFor("obo", "hp", wants("obo", "owl"));
  assert.equal(question, "https://obofoundry.org/registry/ontologies.jsonld");
  assert.deepEqual(read(REGISTRY), {
    kind: "found",
    candidate: {
      url: "http://purl.obolibrary.org/obo/hp.obo",
      format: "obo",
      version: undefined,
      licence: "hpo",
      notes: [],
    },
  });
  assert.equal(summaryOf(requestFor("obo", "hp").read(REGISTRY)), "http://purl.obolibrary.org/obo/hp.owl");
  const base = requestFor("obo", "hp", { extras: { product: "hp/hp-base.owl" } }).read(REGISTRY);
  assert.equal(summaryOf(base), "http://purl.obolibrary.org/obo/hp/hp-base.owl");
});

test("obo says what it has where that is not what is wanted", () => {
  const json = summaryOf(requestFor("obo", "hp", wants("json")).read(REGISTRY));
  assert.equal(json, "no-format: hp is not there as json; it has hp.owl, hp.obo, hp/hp-base.owl");
  assert.equal(summaryOf(requestFor("obo", "old").read(REGISTRY)), "obsolete: old is obsolete; hp replaces it");
  assert.equal(summaryOf(requestFor("obo", "xx").read(REGISTRY)), "unknown: the OBO registry has no xx");
});

test("without its registry obo goes by the permanent URL, and says what is missed", () => {
  for (const response of [undefined, { status: 503, body: "" }, { status: 200, body: "<html>" }]) {
    const finding = requestFor("obo", "hp", wants("obo")).readResponse(response);
    assert.ok(finding.kind === "found");
    assert.equal(finding.candidate.url, "http://purl.obolibrary.org/obo/hp.obo");
    assert.match(finding.candidate.notes.join(), /licence is not known/);
  }
});

test("ols knows where a file lies, and one on its own disk is refused", () => {
  const { question, read } = requestFor("ols", "efo");
  assert.equal(question, "https://www.ebi.ac.uk/ols4/api/ontologies/efo");
  assert.equal(requestFor("ols", "x", { extras: { ontology: "A/b" } }).question?.endsWith("/ontologies/a%2Fb"), true);
  const body = { version: "3.93.0", config: { fileLocation: "http://www.ebi.ac.uk/efo/efo.owl" } };
  const finding = read(body);
  assert.ok(finding.kind === "found");
  assert.equal(finding.candidate.version, "3.93.0");
  assert.equal(
    summaryOf(read({ config: { fileLocation: "file:///nfs/x.owl" } })),
    "not-public: OLS has efo from a place that is not public (file:)",
  );
  assert.match(summaryOf(read({ config: { fileLocation: "ftp://x/y.owl" } })), /^not-public/);
  assert.match(summaryOf(read({ config: { fileLocation: null } })), /^no-file/);
  assert.match(summaryOf(read({}, 404)), /^unknown/);
  assert.match(
    summaryOf(requestFor("ols", "efo", wants("obo")).read(body)),
    /^no-format: OLS has efo as owl, and obo is wanted/,
  );
});

test("bioportal tells licence, key and name apart, and no key gets into an address", () => {
  const { question, read } = requestFor("bioportal", "snomedct");
  assert.equal(question, "https://data.bioontology.org/ontologies/SNOMEDCT/latest_submission?include=all");
  const links = { download: "https://data.bioontology.org/ontologies/X/download?apikey=secret" };
  const found = read({ submissionId: 7, version: "1.2", hasOntologyLanguage: "OWL", links });
  assert.equal(summaryOf(found), "https://data.bioontology.org/ontologies/SNOMEDCT/submissions/7/download");
  assert.match(summaryOf(read({}, 401)), /^key: BioPortal does not accept BIOPORTAL_API_KEY/);
  assert.match(summaryOf(read({}, 403)), /^licence: the licence of snomedct permits no download/);
  assert.match(summaryOf(read({}, 422)), /^unknown/);
  assert.match(summaryOf(read({ hasOntologyLanguage: "UMLS" })), /^licence: .*UMLS/);
  assert.match(summaryOf(read({})), /^no-file/);
});

test("bioregistry has a link for each format, lov the newest version with a file", () => {
  const body = { download_owl: "http://x.example/a.owl", download_obo: "http://x.example/a.obo", license: "CC0-1.0" };
  assert.equal(summaryOf(requestFor("bioregistry", "a", wants("obo")).read(body)), "http://x.example/a.obo");
  assert.match(
    summaryOf(requestFor("bioregistry", "a", wants("json")).read(body)),
    /^no-format: .* as owl, obo, and json is wanted/,
  );
  assert.match(summaryOf(requestFor("bioregistry", "a").read({})), /^no-file/);
  const versions = [{ name: "v2" }, { name: "v1", fileURL: "https://lov.example/v1.n3" }];
  const lov = requestFor("lov", "foaf");
  assert.match(lov.question ?? "", /vocab=foaf$/);
  const finding = lov.read({ versions });
  assert.ok(finding.kind === "found");
  assert.deepEqual([finding.candidate.version, finding.candidate.format], ["v1", "ttl"]);
  assert.match(summaryOf(lov.read({ versions: [] })), /^no-file/);
});

test("whatever a service answers, a resolver answers with a finding", () => {
  const odd = [null, [], 3, "x", { config: 3 }, { ontologies: { hp: 1 } }, { versions: [null, 3] }, { products: 3 }];
  for (const resolver of RESOLVERS.values()) {
    for (const body of odd) {
      const finding = requestFor(resolver.name, "hp", { extras: { url: "https://x.example/" } }).read(body);
      assert.ok(finding.kind === "found" || finding.message !== "");
    }
  }
  const html = requestFor("ols", "hp").readResponse({ status: 200, body: "<html>down</html>" });
  assert.match(summaryOf(html), /^unreadable/);
});
