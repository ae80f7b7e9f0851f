import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { doaj } from "./doaj.ts";

const article = (doi: string, ...link: readonly unknown[]) => ({
  bibjson: { title: "T", year: "2020", identifier: [{ id: doi, type: "doi" }], link },
});

test("doaj is queried for the DOI as a phrase in the path", () => {
  assert.equal(
    requestUrl(doaj, "10.1234/abc"),
    "https://doaj.org/api/v4/search/articles/bibjson.identifier.id%3A%2210.1234%2Fabc%22?pageSize=5",
  );
  assert.equal(requestUrl(doaj, "PMC1"), undefined);
});

test("doaj returns full texts with the kind that publishers declare", () => {
  const links = [
    { type: "fulltext", content_type: "HTML", url: "https://p.example/a" },
    { type: "fulltext", content_type: "application/pdf", url: "https://p.example/a/download" },
    { type: "homepage", content_type: "PDF", url: "https://p.example/no" },
  ];
  const finding = findingFor(doaj, "10.1234/abc", {
    body: { total: 1, results: [article("10.9/x"), article("10.1234/ABC", ...links)] },
  });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://p.example/a/download", kind: "pdf", version: "published" },
    { url: "https://p.example/a", kind: "landing", version: "published" },
  ]);
});

test("doaj without article, without link, and with an unexpected format", () => {
  assert.equal(summaryOf(findingFor(doaj, "10.1234/abc", { body: { total: 0, results: [] } })), "none: unknown-work");
  assert.equal(
    summaryOf(findingFor(doaj, "10.1234/abc", { body: { results: [article("10.1234/abc")] } })),
    "none: no-copy",
  );
  assert.match(
    summaryOf(findingFor(doaj, "10.1234/abc", { body: { results: [{}] } })),
    /^unreadable: .*results\.0\.bibjson/,
  );
  assert.match(summaryOf(findingFor(doaj, "10.1234/abc", { status: 403 })), /^refused: doaj\.org returned status 403/);
});
