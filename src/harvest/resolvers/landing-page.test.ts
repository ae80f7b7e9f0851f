import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf, workNamed } from "../../../test/harvest/resolver-kit.ts";
import { landingPage } from "./landing-page.ts";

const PAGE = "https://p.example/articles/7";
const html = (head: string) =>
  `<!doctype html><html><head>${head}</head><body><a href="/ads.pdf">PDF</a></body></html>`;

function addressesIn(head: string, headers: Readonly<Record<string, string>> = {}): readonly string[] {
  const finding = findingFor(landingPage, "10.1234/abc", { url: PAGE, headers, body: html(head) });
  return finding.kind === "found" ? finding.candidates.map(({ url, kind }) => `${kind} ${url}`) : [summaryOf(finding)];
}

test("the landing page is the given URL, or the target of the DOI", () => {
  assert.equal(requestUrl(landingPage, "10.1234/a<b"), "https://doi.org/10.1234/a%3Cb");
  assert.equal(requestUrl(landingPage, "https://p.example/doi/10.1234/abc"), "https://p.example/doi/10.1234/abc");
  assert.equal(requestUrl(landingPage, "2401.00001"), "https://doi.org/10.48550/arxiv.2401.00001");
  assert.equal(requestUrl(landingPage, "PMC1"), undefined);
  const request = landingPage.requestFor(workNamed("10.1234/abc"));
  assert.equal(request?.role, "landing");
  assert.match(request?.headers?.["accept"] ?? "", /^text\/html/);
});

test("signposting links come first, then the metadata of the page", () => {
  const link =
    '</files/7.pdf>; rel="item"; type="application/pdf", </x>; rel=cite-as, </data.csv>; rel="item"; type="text/csv"';
  const head =
    '<META NAME="Citation_PDF_URL" CONTENT="/articles/7.pdf?a=1&amp;b=2"><link rel="alternate" type="application/pdf" href="other.pdf"/>';
  assert.deepEqual(addressesIn(head, { link }), [
    "pdf https://p.example/files/7.pdf",
    "pdf https://p.example/articles/7.pdf?a=1&b=2",
    "pdf https://p.example/articles/other.pdf",
  ]);
});

test("bepress metadata, XML, JSON-LD and a base URL are supported", () => {
  assert.deepEqual(
    addressesIn(`<base href="https://cdn.example/x/"><meta name="bepress_citation_pdf_url" content="a.pdf">
      <meta name="citation_xml_url" content="a.xml"><link rel="item alternate" type="text/xml" href="b.xml">
      <script type="application/ld+json">{"@graph":[{"encoding":[{"encodingFormat":"application/pdf","contentUrl":"c.pdf"}]}]}</script>
      <script type="application/ld+json">{"encoding":{"fileFormat":"application/pdf","contentUrl":"d.pdf"}}</script>
      <script type="application/ld+json">{"encoding":</script>`),
    [
      "pdf https://cdn.example/x/a.pdf",
      "pdf https://cdn.example/x/c.pdf",
      "pdf https://cdn.example/x/d.pdf",
      "xml https://cdn.example/x/a.xml",
      "xml https://cdn.example/x/b.xml",
    ],
  );
});

test("title, year, licence and, if unknown, the DOI are taken from the page", () => {
  const body =
    html(`<meta name="citation_pdf_url" content="a.pdf"><meta name="citation_title" content="A &quot;title&quot;">
    <meta name="citation_publication_date" content="2021/03/04"><meta name="citation_doi" content="doi:10.1234/ABC">
    <link rel="license" href="https://creativecommons.org/licenses/by/4.0/">`);
  const finding = findingFor(landingPage, "https://p.example/articles/7", { body });
  assert.deepEqual(finding, {
    kind: "found",
    candidates: [
      { url: "https://p.example/articles/a.pdf", kind: "pdf", licence: "https://creativecommons.org/licenses/by/4.0/" },
    ],
    ids: { doi: "10.1234/abc" },
    metadata: { title: 'A "title"', year: 2021 },
  });
  const other = findingFor(landingPage, "10.9999/mine", { url: PAGE, body });
  assert.ok(other.kind === "found" && other.ids === undefined, "a page cannot rename a work");
});

test("a page without metadata has no copy, and links in its text are ignored", () => {
  assert.deepEqual(addressesIn("<title>Paper</title>"), ["none: no-copy"]);
  assert.deepEqual(
    addressesIn(`<meta name="citation_fulltext_html_url" content="${PAGE}">`),
    ["none: no-copy"],
    "itself",
  );
  assert.deepEqual(addressesIn('<meta name="citation_pdf_url" content="javascript:alert(1)">'), ["none: no-copy"]);
  assert.deepEqual(addressesIn('<meta name="citation_pdf_url" content="">'), ["none: no-copy"]);
});

test("a URL that looks like a file is tried as a file first", () => {
  const known = (token: string) => landingPage.inferred?.(workNamed(token));
  const file = known("https://p.example/doi/pdf/10.1234/abc");
  assert.ok(file !== undefined);
  assert.deepEqual(candidatesIn(file), [{ url: "https://p.example/doi/pdf/10.1234/abc", kind: "pdf" }]);
  assert.equal(known("https://p.example/doi/10.1234/abc"), undefined);
  assert.equal(known("10.1234/abc"), undefined);
});

test("if the response is the file itself, its URL is the candidate", () => {
  const headers = { "content-type": "application/pdf;charset=binary" };
  assert.deepEqual(candidatesIn(findingFor(landingPage, "https://p.example/7.pdf", { headers, body: "%PDF-1.7" })), [
    { url: "https://p.example/7.pdf", kind: "pdf" },
  ]);
  const image = { "content-type": "image/png" };
  assert.equal(
    summaryOf(
      findingFor(landingPage, "https://p.example/7.png", {
        headers: image,
        body: html('<meta name="citation_pdf_url" content="a.pdf">'),
      }),
    ),
    "none: no-copy",
  );
});

test("a bot check is reported as a challenge page", () => {
  const challenges = [
    { status: 403, body: "<html><title>Just a moment...</title>" },
    { status: 403, headers: { "cf-mitigated": "challenge" } },
    { status: 202, headers: { "x-amzn-waf-action": "challenge" } },
    { status: 202 },
    { status: 200, body: "<html><head><title>Making sure you&#39;re not a bot!</title>" },
    { status: 200, body: "<html><head><title>Preparing to download ...</title>" },
  ];
  for (const challenge of challenges)
    assert.match(summaryOf(findingFor(landingPage, "10.1234/abc", { url: PAGE, ...challenge })), /^challenge-page: /);
});

test("a page is parsed in linear time, and to a limited depth", () => {
  const deep = `${"<div>".repeat(200_000)}<meta name="citation_pdf_url" content="a.pdf">`;
  assert.equal(summaryOf(findingFor(landingPage, "10.1234/abc", { url: PAGE, body: deep })), "none: no-copy");
  const late = `${"<p>x</p>".repeat(200_000)}<meta name="citation_pdf_url" content="a.pdf">`;
  assert.equal(
    summaryOf(findingFor(landingPage, "10.1234/abc", { url: PAGE, body: late })),
    "none: no-copy",
    "behind a megabyte",
  );
  const titles = "<title>access denied</title>".repeat(150_000);
  assert.equal(summaryOf(findingFor(landingPage, "10.1234/abc", { url: PAGE, body: titles })), "none: no-copy");
  const many = '<meta name="citation_pdf_url" content="a.pdf">'.repeat(10_000);
  assert.equal(candidatesIn(findingFor(landingPage, "10.1234/abc", { url: PAGE, body: many })).length, 1);
});

test("a meta tag that is named like a property of every object is ignored", () => {
  const tags = ["constructor", "__proto__", "tostring"].map(name => `<meta name="${name}" content="/7.pdf">`).join("");
  assert.deepEqual(addressesIn(tags), ["none: no-copy"]);
});

test("a page that links to its file is no challenge page, although one of its forms has a CAPTCHA", () => {
  const form = '<form><div class="g-recaptcha"></div></form>';
  const body = `<meta name="citation_pdf_url" content="a.pdf">${form}`;
  const finding = findingFor(landingPage, "10.1234/abc", { url: PAGE, body });
  assert.deepEqual(
    candidatesIn(finding).map(({ url }) => url),
    [new URL("a.pdf", PAGE).href],
  );
  for (const response of [{ status: 403, body }, { body, headers: { "cf-mitigated": "challenge" } }, { body: form }])
    assert.match(summaryOf(findingFor(landingPage, "10.1234/abc", { url: PAGE, ...response })), /^challenge-page: /);
});
