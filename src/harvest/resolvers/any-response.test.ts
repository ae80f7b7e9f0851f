/** Properties of all resolvers with random responses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { findingFor, summaryOf, workNamed } from "../../../test/harvest/resolver-kit.ts";
import type { Work } from "../work.ts";
import { RESOLVERS } from "./order.ts";
import type { Finding } from "./resolver.ts";

const work: Work = {
  key: "doi:10.1234/abc",
  ids: {
    doi: "10.1234/abc",
    arxiv: "2401.00001",
    pmid: "123",
    pmcid: "PMC123",
    openalex: "W1",
    url: "https://example.org/paper",
  },
};

/** Field names of real services, so that random responses resemble theirs. */
const field = fc.constantFrom(
  ..."message link URL content-type results result resultList bibjson identifier id doi DOI pmcid pmid url files key".split(
    " ",
  ),
  ..."metadata data attributes links download embeds primary_file type instances urls response docs collection".split(
    " ",
  ),
  ..."version locations best_oa_location pdf_url oa_locations url_for_pdf openAccessPdf externalIds records files_s".split(
    " ",
  ),
);
const leaf = fc.oneof(
  fc.string(),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom<unknown>(null, "10.1234/ABC", "PMC123", "https://example.org/a.pdf", "s3://pmc-oa-opendata/x", "doi"),
  fc.constantFrom(
    "javascript:alert(1)",
    "https://a:b@example.org/x.pdf",
    "//example.org",
    "file:///etc/passwd",
    "files",
  ),
);
const { json } = fc.letrec<{ json: unknown }>(tie => ({
  json: fc.oneof(
    { depthSize: "small" },
    leaf,
    fc.array(tie("json"), { maxLength: 4 }),
    fc.array(fc.tuple(field, tie("json")), { maxLength: 6 }).map(entries => Object.fromEntries(entries)),
  ),
}));
const tag = fc.constantFrom(
  "<meta ",
  "<link ",
  'name="citation_pdf_url" ',
  'content="',
  "a.pdf",
  '">',
  "<entry>",
  "</entry>",
  "<feed>",
  "<Prefix>",
  "<base href=",
  "<script type=application/ld+json>",
  "{",
  "&amp;",
  "<![CDATA[",
  "<id>http://arxiv.org/abs/2401.00001</id>",
  "http://[",
  "%",
);
const body = fc.oneof(
  json.map(value => JSON.stringify(value)),
  fc.string(),
  fc.array(tag, { maxLength: 20 }).map(all => all.join("")),
);
const url = fc.oneof(
  fc.constantFrom(
    "https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?ids=1",
    "https://pmc-oa-opendata.s3.amazonaws.com/?list-type=2",
    "https://api.osf.io/v2/nodes/abcde/files/osfstorage/",
    "https://api.biorxiv.org/details/medrxiv/10.1101/1/na/json",
    "https://example.org/",
  ),
  fc.string(),
);
const headers = fc.dictionary(fc.constantFrom("link", "content-type", "cf-mitigated"), fc.string());
const status = fc.constantFrom(200, 200, 200, 202, 204, 301, 400, 401, 403, 404, 410, 422, 429, 500, 503);

for (const resolver of RESOLVERS) {
  test(`${resolver.name} never throws, and returns only valid URLs`, () => {
    fc.assert(
      fc.property(status, url, headers, body, (statusCode, from, fields, text) => {
        check(resolver.parse({ url: from, status: statusCode, headers: fields, body: text }, work));
      }),
      { numRuns: 500 },
    );
  });

  test(`${resolver.name} distinguishes unavailable, refused and unreadable responses`, () => {
    const token = tokens[resolver.name] ?? "10.1234/abc";
    assert.match(summaryOf(findingFor(resolver, token, { status: 429 })), /^unavailable: \S+ returned status 429$/);
    assert.match(
      summaryOf(findingFor(resolver, token, { status: 503, body: "<html>" })),
      /^unavailable: \S+ returned status 503$/,
    );
    assert.match(summaryOf(findingFor(resolver, token, { status: 401 })), /^refused: \S+ returned status 401$/);
    assert.equal(
      summaryOf(findingFor(resolver, token, { status: 410 })),
      resolver.name === "biorxiv"
        ? "follow-up: https://api.biorxiv.org/details/medrxiv/10.1101/2020.03.03.974402/na/json"
        : "none: unknown-work",
    );
    if (resolver.name === "landing_page") return;
    assert.match(
      summaryOf(findingFor(resolver, token, { body: "<html><title>Maintenance</title>" })),
      /^unreadable: \S+ returned /,
    );
  });

  test(`${resolver.name} builds https requests for the works it handles`, () => {
    const request = resolver.requestFor(workNamed(tokens[resolver.name] ?? "10.1234/abc"));
    assert.equal(new URL(request?.url ?? "").protocol, "https:");
    assert.equal(resolver.requestFor({ key: "", ids: {} }), undefined);
    assert.equal(resolver.inferred?.({ key: "", ids: {} }), undefined);
  });
}

for (const { name, batch } of RESOLVERS) {
  if (batch === undefined) continue;
  test(`${name} takes the status 400, 404 or 410 of a batch for no answer about its works`, () => {
    const works = batchTokens[name]?.map(workNamed) ?? assert.fail(name);
    assert.equal(new Set(works.map(each => batch.groupOf(each))).size, 1);
    const { url } = batch.requestFor(works);
    for (const statusCode of [400, 404, 410]) {
      const finding = batch.parse({ url, status: statusCode, headers: {}, body: "{}" }, works);
      assert.ok("kind" in finding);
      assert.match(summaryOf(finding), new RegExp(`^unreadable: \\S+ returned status ${statusCode}$`));
    }
  });
}

const batchTokens: Readonly<Record<string, readonly string[]>> = {
  arxiv: ["2401.00001", "2401.00002"],
  pmc: ["10.1234/abc", "10.1234/def"],
  openalex: ["10.1234/abc", "10.1234/def"],
  europe_pmc: ["10.1234/abc", "10.1234/def"],
  semantic_scholar: ["10.1234/abc", "10.1234/def"],
  crossref: ["10.1234/abc", "10.1234/def"],
};

const tokens: Readonly<Record<string, string>> = {
  arxiv: "2401.00001",
  pmc: "PMC123",
  zenodo: "10.5281/zenodo.12345",
  figshare: "10.6084/m9.figshare.12345",
  osf: "10.31219/osf.io/abcde",
  biorxiv: "10.1101/2020.03.03.974402",
  wayback: "https://example.org/a.pdf",
};

function check(finding: Finding): void {
  if (finding.kind === "follow-up") assert.equal(new URL(finding.request.url).protocol, "https:");
  if (finding.kind === "failure") assert.ok(finding.message.length > 0 && finding.message.length < 500);
  if (finding.kind !== "found") return;
  assert.ok(finding.candidates.length > 0 && finding.candidates.length <= 25);
  for (const candidate of finding.candidates) {
    const { protocol, username, href } = new URL(candidate.url);
    assert.ok((protocol === "https:" || protocol === "http:") && username === "" && href === candidate.url);
  }
}
