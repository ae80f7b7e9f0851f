import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf, workNamed } from "../../../test/harvest/resolver-kit.ts";
import { europePmc } from "./europe-pmc.ts";

const page = (...result: readonly unknown[]) => ({ hitCount: result.length, resultList: { result } });

test("europe_pmc is queried by the most exact identifier", () => {
  const query = (token: string) => new URL(requestUrl(europePmc, token) ?? "").searchParams.get("query");
  assert.equal(query("PMC1"), "PMCID:PMC1");
  assert.equal(query("pmid:12"), "EXT_ID:12 AND SRC:MED");
  assert.equal(query('10.1234/a"b'), 'DOI:"10.1234/a\\"b"');
  assert.equal(requestUrl(europePmc, "2401.00001"), undefined);
});

test("europe_pmc returns XML of open articles and free copies elsewhere, without rendered PDFs", () => {
  const hit = {
    doi: "10.1234/ABC",
    pmcid: "PMC1",
    pmid: "12",
    title: "T",
    pubYear: "2020",
    isOpenAccess: "Y",
    license: "cc by",
    fullTextUrlList: {
      fullTextUrl: [
        { availabilityCode: "OA", documentStyle: "pdf", url: "https://europepmc.org/articles/PMC1?pdf=render" },
        { availabilityCode: "F", documentStyle: "pdf", url: "https://p.example/a.pdf" },
        { availabilityCode: "S", documentStyle: "pdf", url: "https://p.example/paid.pdf" },
      ],
    },
  };
  const finding = findingFor(europePmc, "10.1234/abc", { body: page({ doi: "10.9999/other" }, hit) });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://p.example/a.pdf", kind: "pdf", licence: "cc by" },
    { url: "https://www.ebi.ac.uk/europepmc/webservices/rest/PMC1/fullTextXML", kind: "xml", licence: "cc by" },
  ]);
  assert.ok(finding.kind === "found");
  assert.deepEqual(finding.ids, { pmcid: "PMC1", pmid: "12", doi: "10.1234/abc" });
});

test("europe_pmc without result, with the result of another work, and with an XML error", () => {
  assert.equal(summaryOf(findingFor(europePmc, "10.1234/abc", { body: page() })), "none: unknown-work");
  assert.equal(
    summaryOf(findingFor(europePmc, "10.1234/abc", { body: page({ doi: "10.1234/abcd" }) })),
    "none: unknown-work",
  );
  assert.equal(
    summaryOf(findingFor(europePmc, "10.1234/abc", { body: page({ doi: "10.1234/abc" }) })),
    "none: no-copy",
  );
  assert.match(
    summaryOf(findingFor(europePmc, "10.1234/abc", { body: "<errorBean><errCode>404</errCode></errorBean>" })),
    /^unreadable: .*invalid JSON/,
  );
  assert.match(summaryOf(findingFor(europePmc, "10.1234/abc", { body: { hitCount: 0 } })), /^unreadable: .*resultList/);
});

test("a batch of europe_pmc may have as many characters as bytes were requested", () => {
  const works = ["10.1234/abc", "10.1234/def"].map(workNamed);
  const request = europePmc.batch?.requestFor(works);
  const result = [{ doi: "10.1234/abc", title: "T", abstractText: "x".repeat(5_000_000) }];
  const body = JSON.stringify({ resultList: { result } });
  assert.ok(body.length < (request?.maxBytes ?? 0));
  const findings = europePmc.batch?.parse({ url: request?.url ?? "", status: 200, headers: {}, body }, works);
  assert.ok(Array.isArray(findings));
  assert.deepEqual(findings.map(summaryOf), ["none: no-copy", "none: unknown-work"]);
});
