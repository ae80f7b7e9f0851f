import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf, workNamed } from "../../../test/harvest/resolver-kit.ts";
import { arxiv } from "./arxiv.ts";

const feed = (entry: string) =>
  `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><id>x</id>${entry}</feed>`;

test("the URLs of an arXiv file and its source follow from id and version without a request", () => {
  for (const [token, file] of [
    ["2401.00001v2", "2401.00001v2"],
    ["hep-th/9901001", "hep-th/9901001"],
  ] as const) {
    const known = arxiv.inferred?.(workNamed(token));
    assert.ok(known);
    assert.deepEqual(candidatesIn(known), [
      { url: `https://arxiv.org/pdf/${file}`, kind: "pdf", version: "submitted" },
      { url: `https://arxiv.org/src/${file}`, kind: "file", role: "source", version: "submitted" },
    ]);
  }
  assert.equal(arxiv.inferred?.(workNamed("10.1234/abc")), undefined);
  assert.equal(
    requestUrl(arxiv, "hep-th/9901001"),
    "https://export.arxiv.org/api/query?id_list=hep-th%2F9901001&max_results=1",
  );
});

test("arxiv parses the entry of the requested paper and its journal DOI", () => {
  const entry = `<entry><id>http://arxiv.org/abs/2401.00001v3</id><title>On
    &lt;cats&gt; &amp; dogs</title><published>2024-01-01T00:00:00Z</published><author><name>N</name></author>
    <link href="https://arxiv.org/abs/2401.00001v3" rel="alternate"/>
    <link title="pdf" href="https://arxiv.org/pdf/2401.00001v3" rel="related" type="application/pdf"/>
    <arxiv:doi>10.1234/ABC</arxiv:doi></entry>`;
  const finding = findingFor(arxiv, "2401.00001", { body: feed(entry) });
  assert.deepEqual(finding, {
    kind: "found",
    candidates: [{ url: "https://arxiv.org/pdf/2401.00001v3", kind: "pdf", version: "submitted" }],
    ids: { arxiv: "2401.00001", doi: "10.1234/abc" },
    metadata: { title: "On <cats> & dogs", venue: "arXiv", authors: [{ name: "N" }], year: 2024, type: "article" },
  });
  assert.equal(summaryOf(findingFor(arxiv, "2401.00002", { body: feed(entry) })), "none: unknown-work");
});

test("arxiv finds no copy in an empty feed, an error entry and an entry without file", () => {
  assert.equal(summaryOf(findingFor(arxiv, "2401.00001", { body: feed("") })), "none: unknown-work");
  const error = "<entry><id>https://arxiv.org/api/errors#incorrect_id_format_for_x</id><title>Error</title></entry>";
  assert.equal(summaryOf(findingFor(arxiv, "2401.00001", { body: feed(error) })), "none: unknown-work");
  assert.equal(summaryOf(findingFor(arxiv, "2401.00001", { status: 400, body: feed(error) })), "none: unknown-work");
  const withdrawn = "<entry><id>http://arxiv.org/abs/2401.00001v2</id><title>Gone</title></entry>";
  assert.equal(summaryOf(findingFor(arxiv, "2401.00001", { body: feed(withdrawn) })), "none: no-copy");
  assert.match(
    summaryOf(findingFor(arxiv, "2401.00001", { body: '{"a":1}' })),
    /^unreadable: export\.arxiv\.org returned no Atom feed/,
  );
});

test("arxiv returns the requested version of a paper, or its newest one, if a batch has several", () => {
  const entry = (version: string) =>
    `<entry><id>http://arxiv.org/abs/2401.00001${version}</id>` +
    `<link title="pdf" href="https://arxiv.org/pdf/2401.00001${version}"/></entry>`;
  const works = ["2401.00001v1", "2401.00001v2", "2401.00001"].map(workNamed);
  const url = arxiv.batch?.requestFor(works).url ?? "";
  const body = feed(["v1", "v2", "v10"].map(entry).join(""));
  const findings = arxiv.batch?.parse({ url, status: 200, headers: {}, body }, works);
  assert.ok(Array.isArray(findings));
  assert.deepEqual(
    findings.map(finding => candidatesIn(finding)[0]?.url),
    ["v1", "v2", "v10"].map(version => `https://arxiv.org/pdf/2401.00001${version}`),
  );
});

test("a feed with 100,000 authors is parsed in linear time", () => {
  const authors = "<author><name>N</name></author>".repeat(100_000);
  const entry = `<entry><id>http://arxiv.org/abs/2401.00001v1</id>${authors}</entry>`;
  const finding = findingFor(arxiv, "2401.00001", { body: feed(entry) });
  assert.ok(finding.kind === "none");
  assert.equal(finding.metadata?.authors?.length, 100);
});
