import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, summaryOf, workNamed } from "../../../test/harvest/resolver-kit.ts";
import { findingOf, idsFrom, md5Checksum, type RawCandidate } from "./finding.ts";

const work = workNamed("10.1234/abc");
const details = { noneReason: "no-copy" } as const;

function urlsOf(...urls: readonly (string | null | undefined)[]): readonly string[] {
  const finding = findingOf(
    work,
    urls.map((url): RawCandidate => ({ url, kind: "landing" })),
    details,
  );
  return finding.kind === "found" ? finding.candidates.map(({ url }) => url) : [];
}

test("only absolute http(s) URLs are candidates, without fragments and passwords", () => {
  assert.deepEqual(urlsOf("HTTPS://P.example:443/a#b", "http://p.example/c"), [
    "https://p.example/a",
    "http://p.example/c",
  ]);
  assert.deepEqual(
    urlsOf(null, undefined, "", "/a", "//p.example/a", "ftp://p.example/a", "https://u:p@p.example/a", "javascript:1"),
    [],
  );
  assert.deepEqual(urlsOf(`https://p.example/${"x".repeat(5000)}`), []);
});

test("figshare download URLs become URLs of its API", () => {
  const api = "https://api.figshare.com/v2/file/download/77";
  assert.deepEqual(urlsOf("https://figshare.com/ndownloader/files/77"), [api]);
  assert.deepEqual(urlsOf("https://figshare.com/ndownloader/articles/5/files/77"), [api]);
  assert.deepEqual(urlsOf("https://monash.figshare.com/ndownloader/files/77"), [api]);
  assert.deepEqual(urlsOf("https://notfigshare.com/ndownloader/files/77"), [
    "https://notfigshare.com/ndownloader/files/77",
  ]);
});

test("URLs of PMC, Europe PMC, PubMed and OpenAlex become identifiers, not candidates", () => {
  const pages = [
    "https://pmc.ncbi.nlm.nih.gov/articles/PMC1/",
    "https://pubmed.ncbi.nlm.nih.gov/2/",
    "https://openalex.org/W3",
  ];
  const finding = findingOf(
    work,
    pages.map((url): RawCandidate => ({ url, kind: "pdf" })),
    details,
  );
  assert.deepEqual(finding, { kind: "none", reason: "no-copy", ids: { pmcid: "PMC1", pmid: "2", openalex: "W3" } });
  assert.deepEqual(
    urlsOf("https://europepmc.org/articles/PMC1?pdf=render", "https://europepmc.org/api/fulltextRepo?pprId=1"),
    ["https://europepmc.org/api/fulltextRepo?pprId=1"],
  );
});

test("the DOI of the work is left to landing_page, and another DOI is a landing page", () => {
  assert.deepEqual(urlsOf("https://doi.org/10.1234/ABC", "http://dx.doi.org/10.5555/other"), [
    "http://dx.doi.org/10.5555/other",
  ]);
  assert.deepEqual(urlsOf("https://p.example/doi/10.1234/abc"), ["https://p.example/doi/10.1234/abc"]);
});

test("a DOI in a candidate URL adds no identifier", () => {
  const finding = findingOf(work, [{ url: "https://p.example/doi/10.5555/supplement", kind: "pdf" }], details);
  assert.ok(finding.kind === "found" && finding.ids === undefined);
});

test("long labels are cut, and impossible numbers are dropped", () => {
  const place: RawCandidate = { url: "https://p.example/a", kind: "pdf", licence: "x".repeat(500), bytes: -1 };
  const finding = findingOf(work, [place], {
    ...details,
    metadata: { title: ` ${"word ".repeat(1000)}`, year: 99999 },
  });
  const [candidate] = candidatesIn(finding);
  assert.equal(candidate?.licence?.length, 200);
  assert.equal(candidate?.bytes, undefined);
  assert.ok(
    finding.kind === "found" && finding.metadata?.title?.length === 500 && finding.metadata?.year === undefined,
  );
  assert.equal(summaryOf(findingOf(work, [], details)), "none: no-copy");
});

test("the number of candidates is limited, for articles and for other files", () => {
  const rawCandidates = (role: "article" | "supplement") =>
    Array.from(
      { length: 5000 },
      (_, index): RawCandidate => ({ url: `https://p.example/${index}`, kind: "pdf", role }),
    );
  const countOf = (...raw: readonly RawCandidate[]) => candidatesIn(findingOf(work, raw, details)).length;
  assert.equal(countOf(...rawCandidates("article")), 25);
  const [article] = rawCandidates("article");
  assert.ok(article);
  assert.equal(countOf(...rawCandidates("supplement").slice(1, 61), article), 61);
  assert.equal(countOf(...rawCandidates("supplement").slice(1), article), 501);
});

test("identifiers are normalised, and invalid ones are dropped", () => {
  assert.deepEqual(idsFrom({ doi: "https://doi.org/10.1234/ABC", pmid: 12, pmcid: "pmc34", arxiv: "2401.00001" }), {
    pmid: "12",
    pmcid: "PMC34",
    arxiv: "2401.00001",
    doi: "10.1234/abc",
  });
  assert.deepEqual(idsFrom({ doi: "none", pmid: "x", pmcid: "34", arxiv: "" }), {});
  assert.deepEqual(idsFrom({ doi: "10.48550/arXiv.2401.00001" }), { arxiv: "2401.00001" });
});

test("an MD5 checksum has 32 digits", () => {
  assert.deepEqual(md5Checksum(`md5:${"A".repeat(32)}`), { algorithm: "md5", hex: "a".repeat(32) });
  for (const text of ["", null, undefined, "a".repeat(31), "sha1:abc", "-"]) assert.equal(md5Checksum(text), undefined);
});
