import assert from "node:assert/strict";
import { test } from "node:test";
import type { TargetFormat } from "../format.ts";
import type { OntologyFinding, RegistryResponse, Source } from "../resolver.ts";
import { RESOLVERS } from "./all.ts";
import { bioportalRefusal } from "./bioportal.ts";

function requestFor(resolver: string, id: string, more: Partial<Source> = {}) {
  const source: Source = { id, resolver, targetFormats: [], extras: {}, ...more };
  const found = RESOLVERS.get(resolver);
  assert.ok(found);
  return {
    requestUrl: found.requestFor(source)?.url,
    read: (body: unknown, status = 200) => found.read(source, { status, body: JSON.stringify(body) }),
    readVersions: (body: unknown, status: number) =>
      found.versions?.read(source, { status, body: JSON.stringify(body) }),
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

test("obo returns the first wanted format that the registry has, or the product named in extras", () => {
  const { requestUrl, read } = requestFor("obo", "hp", wants("obo", "owl"));
  assert.equal(requestUrl, "https://obofoundry.org/registry/ontologies.jsonld");
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

test("obo lists the available files if the wanted one is missing", () => {
  const json = summaryOf(requestFor("obo", "hp", wants("json")).read(REGISTRY));
  assert.equal(json, "no-format: hp is not available as json; available: hp.owl, hp.obo, hp/hp-base.owl");
  assert.equal(summaryOf(requestFor("obo", "old").read(REGISTRY)), "obsolete: old is obsolete, replaced by hp");
  assert.equal(summaryOf(requestFor("obo", "xx").read(REGISTRY)), "unknown: unknown ontology xx in the OBO registry");
});

test("without the registry obo returns the permanent URL and notes that the licence is unknown", () => {
  for (const response of [undefined, { status: 503, body: "" }, { status: 200, body: "<html>" }]) {
    const finding = requestFor("obo", "hp", wants("obo")).readResponse(response);
    assert.ok(finding.kind === "found");
    assert.equal(finding.candidate.url, "http://purl.obolibrary.org/obo/hp.obo");
    assert.match(finding.candidate.notes.join(), /licence unknown/);
  }
});

test("without the registry obo keeps the folders of a product, and refuses a path that leads elsewhere", () => {
  const urlOf = (product: string) =>
    summaryOf(requestFor("obo", "hp", { extras: { product } }).readResponse({ status: 503, body: "" }));
  assert.equal(urlOf("hp/hp-base.owl"), "http://purl.obolibrary.org/obo/hp/hp-base.owl");
  assert.equal(urlOf("hp/a b?.owl"), "http://purl.obolibrary.org/obo/hp/a%20b%3F.owl");
  for (const product of ["../hp.owl", "hp/../../hp.owl", "hp//hp.owl", "/hp.owl", "hp/", "./hp.owl"])
    assert.equal(
      urlOf(product),
      `no-file: hp has no product ${product}: it is no path below http://purl.obolibrary.org/obo/`,
    );
});

test("a release of an obo product has the folders of the product below that of its ontology", () => {
  const version = "2025-02-06";
  const products = ["go.owl", "go/go-base.owl", "go/extensions/go-plus.owl"];
  const registry = {
    ontologies: [
      { id: "go", products: products.map(id => ({ id, ontology_purl: `http://purl.obolibrary.org/obo/${id}` })) },
    ],
  };
  for (const product of products) {
    const { read } = requestFor("obo", "go", { version, extras: { product } });
    const url = `http://purl.obolibrary.org/obo/go/releases/${version}/${product.replace(/^go\//, "")}`;
    assert.equal(summaryOf(read(registry)), url);
    assert.equal(summaryOf(read({}, 503)), url);
  }
});

test("ols returns the file location and refuses one that is not http or https", () => {
  const { requestUrl, read } = requestFor("ols", "efo");
  assert.equal(requestUrl, "https://www.ebi.ac.uk/ols4/api/ontologies/efo");
  assert.equal(requestFor("ols", "x", { extras: { ontology: "A/b" } }).requestUrl?.endsWith("/ontologies/a%2Fb"), true);
  const body = { version: "3.93.0", config: { fileLocation: "http://www.ebi.ac.uk/efo/efo.owl" } };
  const finding = read(body);
  assert.ok(finding.kind === "found");
  assert.equal(finding.candidate.version, "3.93.0");
  assert.equal(
    summaryOf(read({ config: { fileLocation: "file:///nfs/x.owl" } })),
    "not-public: the file location of efo in OLS is not public (file:)",
  );
  assert.match(summaryOf(read({ config: { fileLocation: "ftp://x/y.owl" } })), /^not-public/);
  assert.match(summaryOf(read({ config: { fileLocation: null } })), /^no-file/);
  assert.match(summaryOf(read({}, 404)), /^unknown/);
  assert.match(
    summaryOf(requestFor("ols", "efo", wants("obo")).read(body)),
    /^no-format: efo is available as owl in OLS, wanted obo/,
  );
});

test("ols returns the licence, which is a list of texts like every annotation", () => {
  const licenceOf = (license: unknown) => {
    const config = { fileLocation: "http://x.example/efo.owl", annotations: { license } };
    const finding = requestFor("ols", "efo").read({ config });
    return finding.kind === "found" ? finding.candidate.licence : finding.message;
  };
  assert.equal(licenceOf(["http://l.example/4.0/", "other"]), "http://l.example/4.0/");
  assert.equal(licenceOf("CC0-1.0"), "CC0-1.0");
  assert.equal(licenceOf([]), undefined);
});

test("a version can be pinned in the form in which versions prints it", () => {
  const submissions = [
    { submissionId: 3, version: "releases/2025-03-01/x.owl", hasOntologyLanguage: "OWL" },
    { submissionId: 2, version: "2.0", released: "2025-02-01T00:00:00Z", hasOntologyLanguage: "OWL" },
    { submissionId: 1, version: "1.0", released: "2025-03-01T00:00:00Z", hasOntologyLanguage: "OWL" },
  ];
  const submissionOf = (version: string) => summaryOf(requestFor("bioportal", "x", { version }).read(submissions));
  assert.match(submissionOf("2025-03-01"), /\/submissions\/3\/download$/);
  assert.match(submissionOf("releases/2025-03-01/x.owl"), /\/submissions\/3\/download$/);
  assert.match(submissionOf("2025-02-01"), /\/submissions\/2\/download$/);
  assert.equal(submissionOf("3.0"), "no-file: no version 3.0 of x at BioPortal");
  const versions = [
    { name: "v2014-01-14", fileURL: "https://lov.example/14.n3" },
    { fileURL: "https://lov.example/13.n3" },
  ];
  const { read } = requestFor("lov", "foaf", { version: "2014-01-14" });
  assert.equal(summaryOf(read({ versions })), "https://lov.example/14.n3");
});

test("direct names an address that is not on the web, which may be that of an import", () => {
  const { read } = requestFor("direct", "x", { extras: { url: "file:/tmp/x.owl" } });
  assert.equal(summaryOf(read({})), 'not-public: "file:/tmp/x.owl" is not an http or https URL (extras.url)');
});

test("bioportal distinguishes licence, key and unknown name, and returns no URL with an API key", () => {
  const { requestUrl, read } = requestFor("bioportal", "snomedct");
  assert.equal(requestUrl, "https://data.bioontology.org/ontologies/SNOMEDCT/latest_submission?include=all");
  const links = { download: "https://data.bioontology.org/ontologies/X/download?apikey=secret" };
  const found = read({ submissionId: 7, version: "1.2", hasOntologyLanguage: "OWL", links });
  assert.equal(summaryOf(found), "https://data.bioontology.org/ontologies/SNOMEDCT/submissions/7/download");
  assert.match(summaryOf(read({}, 401)), /^key: BioPortal rejected the API key in BIOPORTAL_API_KEY/);
  assert.match(summaryOf(read({}, 403)), /^licence: the licence of snomedct does not permit download/);
  assert.match(summaryOf(read({}, 422)), /^unknown/);
  assert.match(summaryOf(read({ hasOntologyLanguage: "UMLS" })), /^licence: .*UMLS/);
  assert.match(summaryOf(read({})), /^no-file/);
  const odd = read({ submissionId: 7, hasOntologyLanguage: "constructor" });
  assert.equal(odd.kind === "found" && odd.candidate.format, undefined);
});

test("bioportal names the service of extras.base in its messages, and its own key only for BioPortal", () => {
  const extras = { base: "https://data.agroportal.example/" };
  const { read, readVersions, readResponse } = requestFor("bioportal", "agrovoc", { extras });
  const wrongKey =
    "key: data.agroportal.example rejected the API key, or got none: configure the key of data.agroportal.example in identities.yaml (DOCSTOKG_IDENTITIES_YAML)";
  assert.equal(summaryOf(read({}, 401)), wrongKey);
  assert.deepEqual(readVersions({}, 401), read({}, 401));
  for (const finding of [
    read({}, 403),
    read({}, 404),
    read({}, 422),
    read({}, 500),
    read({}),
    readResponse(undefined),
  ]) {
    assert.match(summaryOf(finding), /data\.agroportal\.example/);
    assert.doesNotMatch(summaryOf(finding), /BioPortal/);
  }
  const own = requestFor("bioportal", "agrovoc", { extras: { base: "https://data.bioontology.org" } });
  assert.equal(summaryOf(own.read({}, 401)), "key: BioPortal rejected the API key in BIOPORTAL_API_KEY");
});

test("a list of versions that bioportal refuses has the same reason as a file", () => {
  const { read, readVersions } = requestFor("bioportal", "snomedct");
  for (const status of [401, 403, 404, 422, 500]) assert.deepEqual(readVersions({}, status), read({}, status));
});

test("a status of a mirror says nothing about the key or the licence of bioportal", () => {
  const source: Source = { id: "snomedct", resolver: "bioportal", targetFormats: [], extras: {} };
  assert.equal(bioportalRefusal(401, source, "https://mirror.example.org/snomedct.owl"), undefined);
  assert.equal(bioportalRefusal(401, source, "https://data.bioontology.org/x")?.reason, "key");
});

test("bioregistry returns the URL of the wanted format, lov the newest version that has a file", () => {
  const body = { download_owl: "http://x.example/a.owl", download_obo: "http://x.example/a.obo", license: "CC0-1.0" };
  assert.equal(summaryOf(requestFor("bioregistry", "a", wants("obo")).read(body)), "http://x.example/a.obo");
  assert.match(
    summaryOf(requestFor("bioregistry", "a", wants("json")).read(body)),
    /^no-format: the Bioregistry lists owl, obo for the prefix \w+, wanted json/,
  );
  assert.match(summaryOf(requestFor("bioregistry", "a").read({})), /^no-file/);
  const versions = [{ name: "v2" }, { name: "v1", fileURL: "https://lov.example/v1.n3" }];
  const lov = requestFor("lov", "foaf");
  assert.match(lov.requestUrl ?? "", /vocab=foaf$/);
  const finding = lov.read({ versions });
  assert.ok(finding.kind === "found");
  assert.deepEqual([finding.candidate.version, finding.candidate.format], ["v1", "ttl"]);
  assert.match(summaryOf(lov.read({ versions: [] })), /^no-file/);
});

test("a resolver returns a finding for any response", () => {
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
