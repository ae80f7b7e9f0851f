import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { pmc } from "./pmc.ts";

const BUCKET = "https://pmc-oa-opendata.s3.amazonaws.com";
const list = (...prefixes: readonly string[]) =>
  `<ListBucketResult><Prefix>PMC1.</Prefix>${prefixes.map(each => `<CommonPrefixes><Prefix>${each}</Prefix></CommonPrefixes>`).join("")}</ListBucketResult>`;

test("pmc lists the versions of a PMCID, and converts other identifiers first", () => {
  assert.equal(requestUrl(pmc, "PMC1"), `${BUCKET}/?list-type=2&prefix=PMC1.&delimiter=%2F`);
  const converter = "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/";
  assert.equal(requestUrl(pmc, "pmid:12"), `${converter}?ids=12&idtype=pmid&format=json`);
  assert.equal(requestUrl(pmc, "10.1234/abc"), `${converter}?ids=10.1234%2Fabc&idtype=doi&format=json`);
  assert.equal(requestUrl(pmc, "10.1234/a,b"), undefined, "a comma would make two names of it");
});

test("pmc requests the version list after the converter, then the newest version", () => {
  const records = [{ pmcid: "PMC1", pmid: 12, doi: "10.1234/ABC" }];
  const listing = `follow-up: ${BUCKET}/?list-type=2&prefix=PMC1.&delimiter=%2F`;
  assert.equal(summaryOf(findingFor(pmc, "10.1234/abc", { body: { records } })), listing);
  assert.equal(summaryOf(findingFor(pmc, "pmid:12", { body: { records } })), listing);
  const unknown = { records: [{ pmid: "12", status: "error", errmsg: "Identifier not found in PMC" }] };
  assert.equal(summaryOf(findingFor(pmc, "pmid:12", { body: unknown })), "none: unknown-work");
  for (const other of [records, [{ pmcid: "PMC1", pmid: 12 }]])
    assert.equal(
      summaryOf(findingFor(pmc, "pmid:13", { body: { records: other } })),
      "none: unknown-work",
      "about another work",
    );
  assert.equal(
    summaryOf(findingFor(pmc, "PMC1", { body: list("PMC1.2/", "PMC1.10/", "PMC1.9/", "PMC12.11/") })),
    `follow-up: ${BUCKET}/metadata/PMC1.10.json`,
  );
  assert.equal(summaryOf(findingFor(pmc, "PMC1", { body: list() })), "none: not-open");
  assert.match(summaryOf(findingFor(pmc, "PMC1", { body: "<Error><Code>X</Code></Error>" })), /^unreadable: /);
});

test("pmc turns the s3 URLs of a record into https URLs with checksums", () => {
  const url = `${BUCKET}/metadata/PMC1.1.json`;
  const hex = "0123456789abcdef0123456789ABCDEF";
  const record = {
    pmcid: "PMC1",
    pmid: 12,
    is_manuscript: true,
    license_code: null,
    citation: "J. 2019 May;1",
    pdf_url: null,
    xml_url: `s3://pmc-oa-opendata/PMC1.1/PMC1.1.xml?md5=${hex}`,
    media_urls: [`s3://pmc-oa-opendata/PMC1.1/gr1.jpg?md5=${hex}`, `s3://pmc-oa-opendata/PMC1.1/mmc1.pdf?md5=${hex}`],
  };
  const finding = findingFor(pmc, "PMC1", { url, body: record });
  assert.deepEqual(candidatesIn(finding), [
    {
      url: `${BUCKET}/PMC1.1/PMC1.1.xml`,
      kind: "xml",
      version: "accepted",
      checksum: { algorithm: "md5", hex: hex.toLowerCase() },
    },
    {
      url: `${BUCKET}/PMC1.1/mmc1.pdf`,
      kind: "file",
      role: "supplement",
      version: "accepted",
      checksum: { algorithm: "md5", hex: hex.toLowerCase() },
    },
  ]);
  assert.ok(finding.kind === "found" && finding.metadata?.year === 2019);
  assert.equal(
    summaryOf(findingFor(pmc, "PMC1", { url, body: { pmcid: "PMC1", pdf_url: "s3://elsewhere/x.pdf" } })),
    "none: no-copy",
  );
  assert.equal(summaryOf(findingFor(pmc, "PMC1", { url, status: 403, body: "<Error/>" })), "none: not-open");
  assert.match(summaryOf(findingFor(pmc, "PMC1", { url, body: { pdf_url: 3 } })), /^unreadable: .*pmcid/);
});

test("the year of a citation is that of publication, not when a manuscript became available", () => {
  const years = {
    "ESMO Open. 2023 Feb 24;8(2):100788. doi: 10.1016/j.esmoop.2023.100788": 2023,
    "J Biol Chem. Author manuscript; available in PMC 2011 Mar 1. Published in final edited form as: J Biol Chem. 2010 Mar;1(2):3.": 2010,
    "Available in PMC 2011 Jan 5. Nature. 2009 Dec;462:1.": 2009,
    "Available in PMC 2011": undefined,
  };
  for (const [citation, year] of Object.entries(years)) {
    const finding = findingFor(pmc, "PMC123", {
      url: "https://pmc-oa-opendata.s3.amazonaws.com/metadata/PMC123.1.json",
      body: { pmcid: "PMC123", citation, title: "T" },
    });
    assert.ok(finding.kind === "none" && finding.metadata?.year === year, citation);
  }
});
