import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { openalex } from "./openalex.ts";

const select =
  "?select=id%2Cdoi%2Ctitle%2Cpublication_year%2Cids%2Ctype%2Cis_retracted%2Cauthorships%2Cprimary_location%2Copen_access%2Cbest_oa_location%2Clocations";

test("openalex is queried by any identifier", () => {
  const names: Readonly<Record<string, string>> = {
    "10.1002/(SICI)1<2>;3#4": "doi:10.1002/(sici)1%3C2%3E%3B3%234",
    "2401.00001v2": "doi:10.48550/arxiv.2401.00001",
    "pmid:12": "pmid:12",
    PMC34: "pmcid:PMC34",
    W56: "W56",
  };
  for (const [token, name] of Object.entries(names))
    assert.equal(requestUrl(openalex, token), `https://api.openalex.org/works/${name}${select}`);
  assert.equal(requestUrl(openalex, "https://example.org/x"), undefined);
});

test("openalex returns open copies, and turns URLs of PMC, PubMed and arXiv into identifiers", () => {
  const finding = findingFor(openalex, "10.1234/abc", {
    body: {
      id: "https://openalex.org/W1",
      ids: { pmid: "https://pubmed.ncbi.nlm.nih.gov/99" },
      open_access: { is_oa: true, oa_url: null },
      locations: [
        {
          is_oa: true,
          pdf_url: null,
          landing_page_url: "https://www.ncbi.nlm.nih.gov/pmc/articles/4234579",
          license: null,
        },
        {
          is_oa: true,
          pdf_url: "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC4234579/pdf/x.pdf",
          landing_page_url: null,
        },
        {
          is_oa: true,
          pdf_url: "http://arxiv.org/pdf/1605.08386v2",
          landing_page_url: "https://doi.org/10.48550/arXiv.1605.08386",
          version: "submittedVersion",
        },
        { is_oa: false, pdf_url: "https://closed.example/x.pdf", landing_page_url: null },
        {
          is_oa: true,
          pdf_url: "javascript:alert(1)",
          landing_page_url: "https://doi.org/10.1234/ABC",
          license: { id: "cc" },
        },
      ],
    },
  });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://arxiv.org/pdf/1605.08386v2", kind: "pdf", version: "submitted" },
    { url: "https://arxiv.org/pdf/1605.08386", kind: "pdf", version: "submitted" },
  ]);
  assert.ok(finding.kind === "found");
  assert.deepEqual(finding.ids, { pmcid: "PMC4234579", arxiv: "1605.08386", pmid: "99", openalex: "W1" });
});

test("openalex distinguishes a closed work, a work without copy, and an unexpected format", () => {
  assert.equal(
    summaryOf(findingFor(openalex, "10.1234/abc", { body: { open_access: { is_oa: false } } })),
    "none: not-open",
  );
  assert.equal(
    summaryOf(findingFor(openalex, "10.1234/abc", { body: { open_access: { is_oa: true } } })),
    "none: no-copy",
  );
  assert.equal(summaryOf(findingFor(openalex, "10.1234/abc", { status: 404, body: "<html>" })), "none: unknown-work");
  assert.match(
    summaryOf(findingFor(openalex, "10.1234/abc", { body: { error: "x" } })),
    /^unreadable: .* at open_access: /,
  );
  const odd = findingFor(openalex, "10.1234/abc", { body: { open_access: {}, locations: [{ pdf_url: 7 }] } });
  assert.match(
    summaryOf(odd),
    /^unreadable: api\.openalex\.org returned an unexpected format at locations\.0\.pdf_url: /,
  );
});
