import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { unpaywall } from "./unpaywall.ts";

test("unpaywall is queried by DOI, without the email address, which the hub adds", () => {
  assert.equal(requestUrl(unpaywall, "10.1234/a?b"), "https://api.unpaywall.org/v2/10.1234/a%3Fb");
  assert.equal(requestUrl(unpaywall, "2401.00001"), "https://api.unpaywall.org/v2/10.48550/arxiv.2401.00001");
  assert.equal(requestUrl(unpaywall, "PMC1"), undefined);
});

test("unpaywall returns PDFs before pages, each once", () => {
  const best = {
    url_for_pdf: "https://p.example/1.pdf",
    url_for_landing_page: "https://p.example/1",
    version: "publishedVersion",
    license: "cc-by",
  };
  const repository = {
    url_for_pdf: null,
    url_for_landing_page: null,
    url: "https://r.example/2",
    version: "acceptedVersion",
  };
  const body = {
    doi: "10.1234/abc",
    is_oa: true,
    title: " A\n title ",
    year: 2020,
    best_oa_location: best,
    oa_locations: [best, repository],
  };
  const finding = findingFor(unpaywall, "10.1234/abc", { body });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://p.example/1.pdf", kind: "pdf", version: "published", licence: "cc-by" },
    { url: "https://p.example/1", kind: "landing", version: "published", licence: "cc-by" },
    { url: "https://r.example/2", kind: "landing", version: "accepted" },
  ]);
  assert.ok(finding.kind === "found" && finding.metadata?.title === "A title" && finding.metadata?.year === 2020);
});

test("unpaywall with a closed work, an unknown work, and a rejected email address", () => {
  assert.equal(
    summaryOf(
      findingFor(unpaywall, "10.1234/abc", {
        body: { doi: "10.1234/abc", is_oa: false, best_oa_location: null, oa_locations: [] },
      }),
    ),
    "none: not-open",
  );
  const error = { HTTP_status_code: 404, error: true, message: "'x' is an invalid doi" };
  assert.equal(summaryOf(findingFor(unpaywall, "10.1234/abc", { status: 404, body: error })), "none: unknown-work");
  assert.match(
    summaryOf(findingFor(unpaywall, "10.1234/abc", { status: 422, body: { message: "Please use your own email" } })),
    /^refused: .*DOCSTOKG_MAILTO/,
  );
  assert.match(summaryOf(findingFor(unpaywall, "10.1234/abc", { body: error })), /^unreadable: .* at doi: /);
});
