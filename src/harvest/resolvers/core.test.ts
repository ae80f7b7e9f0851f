import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { core } from "./core.ts";

test("core is queried for the DOI as a phrase and needs a key", () => {
  assert.equal(
    requestUrl(core, "10.1234/abc"),
    "https://api.core.ac.uk/v3/search/works?q=doi%3A%2210.1234%2Fabc%22&limit=5",
  );
  assert.deepEqual(core.needs, ["CORE_API_KEY"]);
});

test("core returns the copies of all records of the DOI, with their kind by URL", () => {
  const results = [
    { doi: "10.9/other", downloadUrl: "https://core.ac.uk/download/9.pdf" },
    {
      doi: "10.1234/ABC",
      title: "T",
      yearPublished: 2020,
      downloadUrl: "https://core.ac.uk/download/1.pdf",
      sourceFulltextUrls: ["http://r.example/1"],
      links: [
        { type: "download", url: "https://core.ac.uk/download/1.pdf" },
        { type: "reader", url: "https://core.ac.uk/reader/1" },
      ],
    },
    { doi: "https://doi.org/10.1234/abc", downloadUrl: null, sourceFulltextUrls: null },
    { doi: "10.1234/abc", downloadUrl: "https://r.example/2", sourceFulltextUrls: "https://r.example/2.pdf" },
  ];
  assert.deepEqual(candidatesIn(findingFor(core, "10.1234/abc", { body: { totalHits: 4, results } })), [
    { url: "https://core.ac.uk/download/1.pdf", kind: "pdf" },
    { url: "https://r.example/2.pdf", kind: "pdf" },
    { url: "https://r.example/2", kind: "landing" },
    { url: "http://r.example/1", kind: "landing" },
  ]);
});

test("core without record, without copy, without key", () => {
  assert.equal(
    summaryOf(findingFor(core, "10.1234/abc", { body: { totalHits: 0, results: [] } })),
    "none: unknown-work",
  );
  assert.equal(
    summaryOf(findingFor(core, "10.1234/abc", { body: { results: [{ doi: "10.1234/abc" }] } })),
    "none: no-copy",
  );
  assert.match(summaryOf(findingFor(core, "10.1234/abc", { status: 401 })), /^refused: /);
  assert.match(summaryOf(findingFor(core, "10.1234/abc", { body: { results: {} } })), /^unreadable: .*results/);
});
