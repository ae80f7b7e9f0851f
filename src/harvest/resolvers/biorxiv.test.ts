import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { biorxiv } from "./biorxiv.ts";

const DOI = "10.1101/2020.03.03.974402";
const MEDRXIV = `https://api.biorxiv.org/details/medrxiv/${DOI}/na/json`;
const version = (number: string) => ({
  doi: DOI,
  title: "T",
  date: "2020-03-05",
  version: number,
  license: "cc_by",
  jatsxml: `https://www.biorxiv.org/content/early/${number}.source.xml`,
});

test("biorxiv is queried for preprints, not for journals with the same prefix", () => {
  assert.equal(requestUrl(biorxiv, `${DOI}v2`), `https://api.biorxiv.org/details/biorxiv/${DOI}/na/json`);
  assert.equal(requestUrl(biorxiv, "10.1101/gad.314351.118"), undefined);
});

test("biorxiv returns the newest version on its server", () => {
  const body = {
    messages: [{ status: "ok" }],
    collection: [version("2"), version("10"), version("1"), { ...version("11"), doi: "10.1101/000001" }],
  };
  assert.deepEqual(candidatesIn(findingFor(biorxiv, DOI, { body })), [
    { url: `https://www.biorxiv.org/content/${DOI}v10.full.pdf`, kind: "pdf", version: "submitted", licence: "cc-by" },
    { url: "https://www.biorxiv.org/content/early/10.source.xml", kind: "xml", version: "submitted", licence: "cc-by" },
  ]);
  const [medical] = candidatesIn(findingFor(biorxiv, DOI, { url: MEDRXIV, body }));
  assert.equal(medical?.url, `https://www.medrxiv.org/content/${DOI}v10.full.pdf`);
});

test("biorxiv queries medRxiv if bioRxiv does not know the DOI, and then stops", () => {
  const empty = { messages: [{ status: "no posts found" }], collection: [] };
  assert.equal(summaryOf(findingFor(biorxiv, DOI, { body: empty })), `follow-up: ${MEDRXIV}`);
  assert.equal(summaryOf(findingFor(biorxiv, DOI, { status: 404 })), `follow-up: ${MEDRXIV}`);
  assert.equal(summaryOf(findingFor(biorxiv, DOI, { url: MEDRXIV, body: { messages: [] } })), "none: unknown-work");
  assert.match(summaryOf(findingFor(biorxiv, DOI, { status: 503 })), /^unavailable: /);
  assert.match(
    summaryOf(findingFor(biorxiv, DOI, { body: { collection: [{ doi: DOI }] } })),
    /^unreadable: .*collection\.0\.version/,
  );
});
