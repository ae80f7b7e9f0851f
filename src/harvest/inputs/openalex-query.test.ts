import assert from "node:assert/strict";
import { test } from "node:test";
import { type OpenAlexQuery, pageRequest, parsePage, QUERY_WORKS_DEFAULT } from "./openalex-query.ts";

const query: OpenAlexQuery = { text: " black & white ", fromYear: 2019, toYear: 2021, openOnly: true, max: 150 };

/** The response to the request of a page: the first one, or the one with this number. */
function paged(results: readonly unknown[], meta: object = {}, worksSoFar = 0, asked = query, at?: string) {
  const body = JSON.stringify({ meta: { count: 4000, ...meta }, results });
  return parsePage({ url: pageRequest(asked, at).url, status: 200, headers: {}, body }, asked, worksSoFar);
}

test("search words, years and open access become one request", () => {
  const { searchParams: asked, pathname } = new URL(pageRequest(query).url);
  assert.equal(pathname, "/works");
  assert.deepEqual(Object.fromEntries(asked), {
    search: "black & white",
    filter: "from_publication_date:2019-01-01,to_publication_date:2021-12-31,open_access.is_oa:true",
    select: "id,doi,title,publication_year,ids",
    per_page: "100",
    page: "1",
  });
  const { searchParams: plain } = new URL(pageRequest({ text: "x" }).url);
  assert.deepEqual([plain.get("filter"), plain.get("per_page")], [null, String(QUERY_WORKS_DEFAULT)]);
});

test("a page gives works with their best identifiers, and the next request", () => {
  const page = paged([
    {
      id: "https://openalex.org/W1",
      doi: "https://doi.org/10.1234/ABC",
      title: "One",
      publication_year: 2020,
      ids: { pmid: "https://pubmed.ncbi.nlm.nih.gov/17183658" },
    },
    {
      id: "https://openalex.org/W2",
      doi: "https://doi.org/10.48550/arxiv.2401.00001",
      title: null,
      publication_year: null,
    },
    { id: "https://openalex.org/W3", doi: null },
    { id: null, doi: null },
  ]);
  assert.ok("works" in page);
  assert.deepEqual(page.works, [
    {
      key: "doi:10.1234/abc",
      ids: { openalex: "W1", pmid: "17183658", doi: "10.1234/abc" },
      metadata: { title: "One", year: 2020 },
    },
    { key: "arxiv:2401.00001", ids: { openalex: "W2", arxiv: "2401.00001" } },
    { key: "openalex:W3", ids: { openalex: "W3" } },
  ]);
  assert.equal(page.count, 4000);
  assert.equal(new URL(page.next?.url ?? "").searchParams.get("page"), "2");
});

test("no more works than max are returned or requested", () => {
  const hundred = Array.from({ length: 100 }, (_, index) => ({ id: `https://openalex.org/W${index + 1}` }));
  const last = paged(hundred, {}, 100, query, "2");
  assert.ok("works" in last);
  assert.equal(last.works.length, 50);
  assert.equal(last.next, undefined);
  const first = paged(hundred);
  assert.ok("works" in first && first.works.length === 100 && first.next !== undefined);
});

test("the query ends after an empty page and after the last page", () => {
  const one = [{ id: "https://openalex.org/W1" }];
  for (const page of [
    paged([]),
    paged(one, { count: 200 }, 0, query, "2"),
    paged(one, { count: 150 }, 100, query, "2"),
  ])
    assert.ok("works" in page && page.next === undefined);
});

test("a page whose results have no identifiers is followed by the next page", () => {
  const page = paged([{ id: null, doi: null }], {}, 0, query, "3");
  assert.ok("works" in page && page.works.length === 0);
  assert.equal(new URL(page.next?.url ?? "").searchParams.get("page"), "4");
});

test("beyond 10,000 works, pages are requested by cursor", () => {
  const many = { ...query, max: 10_001 };
  const cursorOf = (url = "") => new URL(url).searchParams.get("cursor");
  assert.equal(cursorOf(pageRequest(many).url), "*");
  const one = [{ id: "https://openalex.org/W1" }];
  const page = paged(one, { next_cursor: "IlsxXSI=" }, 0, many);
  assert.ok("works" in page);
  assert.equal(cursorOf(page.next?.url), "IlsxXSI=");
  for (const end of [paged(one, { next_cursor: null }, 0, many), paged([], { next_cursor: "more" }, 0, many)])
    assert.ok("works" in end && end.next === undefined);
});

test("a response that is not a page is a failure with the path of the invalid field", () => {
  const answer = { url: "https://api.openalex.org/works", headers: {} };
  const unknown = parsePage({ ...answer, status: 200, body: '{"meta":{"count":"x"},"results":[]}' }, query, 0);
  assert.ok("failure" in unknown && /meta\.count/.test(unknown.failure.message));
  const spent = parsePage({ ...answer, status: 429, body: "" }, query, 0);
  assert.ok("failure" in spent && spent.failure.reason === "unavailable");
  const missing = parsePage({ ...answer, status: 404, body: "" }, query, 0);
  assert.ok("failure" in missing && missing.failure.reason === "unreadable");
});
