import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { crossref } from "./crossref.ts";

const link = (URL: string, type: string, application: string, version = "vor") => ({
  URL,
  "content-type": type,
  "content-version": version,
  "intended-application": application,
});

test("crossref is queried for one record by DOI", () => {
  assert.equal(requestUrl(crossref, "10.1234/A<B>"), "https://api.crossref.org/works/10.1234/a%3Cb%3E");
  assert.equal(requestUrl(crossref, "2401.00001"), undefined);
});

test("crossref returns links for text mining and syndication, with the licence of their version", () => {
  const message = {
    DOI: "10.1234/abc",
    title: ["T"],
    issued: { "date-parts": [[2021, 4]] },
    license: [
      { URL: "https://example.org/tdm", "content-version": "tdm" },
      { URL: "https://creativecommons.org/licenses/by/4.0/", "content-version": "vor" },
    ],
    link: [
      link("https://p.example/similarity.pdf", "application/pdf", "similarity-checking"),
      link("https://p.example/a.xml", "text/xml", "text-mining"),
      link("https://p.example/a.pdf", "application/pdf", "syndication"),
      link("https://p.example/am/pdf", "unspecified", "text-mining", "am"),
      link("https://p.example/page", "unspecified", "text-mining"),
    ],
  };
  const finding = findingFor(crossref, "10.1234/abc", { body: { status: "ok", message } });
  const by = "https://creativecommons.org/licenses/by/4.0/";
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://p.example/a.pdf", kind: "pdf", version: "published", licence: by },
    { url: "https://p.example/a.xml", kind: "xml", version: "published", licence: by },
    { url: "https://p.example/am/pdf", kind: "pdf", version: "accepted", licence: "https://example.org/tdm" },
  ]);
  assert.ok(finding.kind === "found" && finding.metadata?.year === 2021);
});

test("crossref without links has no copy, and without message is unreadable", () => {
  assert.equal(
    summaryOf(findingFor(crossref, "10.1234/abc", { body: { message: { DOI: "10.1234/abc" } } })),
    "none: no-copy",
  );
  assert.equal(
    summaryOf(findingFor(crossref, "10.1234/abc", { status: 404, body: "Resource not found." })),
    "none: unknown-work",
  );
  assert.match(
    summaryOf(findingFor(crossref, "10.1234/abc", { body: { status: "ok" } })),
    /^unreadable: .* at message: /,
  );
  assert.match(
    summaryOf(findingFor(crossref, "10.1234/abc", { body: { message: { link: [{ URL: 1 }] } } })),
    /message\.link\.0\.URL/,
  );
});
