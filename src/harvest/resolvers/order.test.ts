import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { workNamed } from "../../../test/harvest/resolver-kit.ts";
import type { WorkIds } from "../work.ts";
import { missingVariables, orderFor, RESOLVERS } from "./order.ts";
import { unpaywall } from "./unpaywall.ts";

function namesFor(ids: WorkIds): readonly string[] {
  return orderFor({ key: "", ids }, RESOLVERS).map(({ name }) => name);
}

test("the repository of an identifier comes first", () => {
  const first: Readonly<Record<string, string>> = {
    "2401.00001": "arxiv",
    PMC123: "pmc",
    "10.5281/zenodo.1234": "zenodo",
    "10.6084/m9.figshare.1234.v2": "figshare",
    "10.31219/osf.io/abcde": "osf",
    "10.17605/osf.io/abcde": "osf",
    "10.31234/osf.io/abcde_v2": "osf",
    "10.1101/2020.03.03.974402": "biorxiv",
    "10.64898/2026.01.02.123456": "biorxiv",
    "https://inria.hal.science/hal-01234567v2": "hal",
    "https://zenodo.org/records/1234": "zenodo",
    "https://example.org/paper": "landing_page",
    "10.1101/gad.314351.118": "openalex",
    "10.1371/journal.pone.0033693": "openalex",
    W12: "openalex",
  };
  for (const [token, name] of Object.entries(first))
    assert.equal(orderFor(workNamed(token), RESOLVERS)[0]?.name, name, token);
});

test("for a DOI of a publisher: indexes, then landing page, then archive", () => {
  assert.deepEqual(namesFor({ doi: "10.1234/abc", url: "https://example.org/x" }), [
    "openalex",
    "europe_pmc",
    "pmc",
    "semantic_scholar",
    "crossref",
    "datacite",
    "unpaywall",
    "doaj",
    "hal",
    "core",
    "openaire",
    "landing_page",
    "wayback",
  ]);
});

test("an identifier that a resolver finds enables another resolver", () => {
  assert.deepEqual(namesFor({ openalex: "W1" }), ["openalex"]);
  assert.deepEqual(namesFor({ openalex: "W1", pmcid: "PMC1" })[0], "pmc");
});

test("only available resolvers are returned", () => {
  const some = RESOLVERS.filter(({ name }) => name === "crossref" || name === "openalex");
  assert.deepEqual(
    orderFor(workNamed("10.1234/abc"), some.toReversed()).map(({ name }) => name),
    ["openalex", "crossref"],
  );
  assert.deepEqual(orderFor(workNamed("PMC1"), []), []);
});

test("the reference lists every resolver with its identifiers and needed variables", () => {
  const page = readFileSync(new URL("../../../docs/reference/resolvers.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([^|]*) \| ([^|]*) \|/gm)].map(([, ...cells]) => cells);
  assert.deepEqual(
    rows,
    RESOLVERS.map(resolver => [
      resolver.name,
      queriedWith(resolver.name).join(", "),
      resolver.needs.map(variable => `\`${variable}\``).join(", ") || "–",
    ]),
  );
});

test("needed variables are those of the shipped identities", () => {
  const identities = readFileSync(new URL("../../../configs/networking/identities.yaml", import.meta.url), "utf8");
  for (const variable of RESOLVERS.flatMap(({ needs }) => needs))
    assert.ok(variable === "DOCSTOKG_MAILTO" || identities.includes(`{${variable}}`), variable);
});

/** Found by trying: first the identifiers of any work, then its own DOIs and URLs. */
function queriedWith(name: string): readonly string[] {
  const resolver = RESOLVERS.find(each => each.name === name);
  const common: Readonly<Record<string, WorkIds>> = {
    DOI: { doi: "10.1234/abc" },
    "arXiv id": { arxiv: "2401.00001" },
    PMID: { pmid: "123" },
    PMCID: { pmcid: "PMC123" },
    "OpenAlex id": { openalex: "W1" },
    URL: { url: "https://example.org/x" },
  };
  const own: Readonly<Record<string, readonly WorkIds[]>> = {
    "own DOI": ["10.5281/zenodo.1", "10.6084/m9.figshare.1", "10.31219/osf.io/abcde", "10.1101/123456"].map(doi => ({
      doi,
    })),
    "own URL": [
      "https://zenodo.org/records/1",
      "https://figshare.com/articles/preprint/Title/123",
      "https://osf.io/preprints/psyarxiv/abcde",
      "https://hal.science/hal-01234567",
    ].map(url => ({ url })),
  };
  const isQueried = (ids: WorkIds) => resolver?.requestFor({ key: "", ids }) !== undefined;
  const general = Object.keys(common).filter(label => isQueried(common[label] ?? {}));
  const special = Object.keys(own).filter(
    label => !general.includes(label.replace("own ", "")) && own[label]?.some(isQueried),
  );
  return [...general, ...special];
}

test("an empty mailto is no address, also if DOCSTOKG_MAILTO is set", () => {
  const env = { DOCSTOKG_MAILTO: "you@example.org" };
  assert.deepEqual(missingVariables(unpaywall, { env, mailto: "" }), ["DOCSTOKG_MAILTO"]);
  assert.deepEqual(missingVariables(unpaywall, { env, mailto: undefined }), []);
  assert.deepEqual(missingVariables(unpaywall, { env: {}, mailto: "you@example.org" }), []);
  assert.deepEqual(missingVariables(unpaywall, { env: { DOCSTOKG_MAILTO: "" }, mailto: undefined }), unpaywall.needs);
});
