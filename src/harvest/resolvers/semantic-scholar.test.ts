import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { semanticScholar } from "./semantic-scholar.ts";

test("semantic_scholar is queried by prefixed identifiers", () => {
  const path = (token: string) =>
    new URL(requestUrl(semanticScholar, token) ?? "").pathname.replace("/graph/v1/paper/", "");
  assert.deepEqual(["10.1234/abc", "2401.00001v2", "pmid:12", "PMC34"].map(path), [
    "DOI:10.1234/abc",
    "ARXIV:2401.00001",
    "PMID:12",
    "PMCID:34",
  ]);
  assert.equal(requestUrl(semanticScholar, "https://example.org/x"), undefined);
});

test("openAccessPdf may be a landing page, the DOI of the work, or nothing", () => {
  const externalIds = { DOI: "10.1234/ABC", ArXiv: "2401.00001", PubMedCentral: "34" };
  const with_ = (url: string | null, isOpenAccess = true) =>
    findingFor(semanticScholar, "10.1234/abc", {
      body: { paperId: "1", isOpenAccess, openAccessPdf: { url, license: "CCBY" }, externalIds },
    });
  assert.deepEqual(candidatesIn(with_("https://p.example/a.pdf")), [
    { url: "https://p.example/a.pdf", kind: "pdf", licence: "CCBY" },
  ]);
  assert.deepEqual(candidatesIn(with_("https://p.example/a")), [
    { url: "https://p.example/a", kind: "landing", licence: "CCBY" },
  ]);
  assert.deepEqual(with_("https://doi.org/10.1234/abc"), {
    kind: "none",
    reason: "no-copy",
    ids: { pmcid: "PMC34", arxiv: "2401.00001", doi: "10.1234/abc" },
  });
  assert.equal(summaryOf(with_("", false)), "none: not-open");
  assert.equal(
    summaryOf(findingFor(semanticScholar, "10.1234/abc", { body: { paperId: "1", openAccessPdf: null } })),
    "none: no-copy",
  );
});

test("semantic_scholar with an unknown paper and with an unexpected format", () => {
  assert.equal(
    summaryOf(findingFor(semanticScholar, "10.1234/abc", { status: 404, body: { error: "Paper not found" } })),
    "none: unknown-work",
  );
  assert.match(
    summaryOf(
      findingFor(semanticScholar, "10.1234/abc", { body: { paperId: "1", openAccessPdf: "https://p.example/a.pdf" } }),
    ),
    /^unreadable: .*openAccessPdf/,
  );
  assert.match(
    summaryOf(findingFor(semanticScholar, "10.1234/abc", { status: 400, body: { error: "fields" } })),
    /^unreadable: .*400/,
  );
});
