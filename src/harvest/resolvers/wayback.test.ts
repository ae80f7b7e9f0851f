import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { responseFailure } from "../downloads/download-failure.ts";
import { mainReason } from "../reason.ts";
import { wayback } from "./wayback.ts";

const TOKEN = "https://example.org/a.pdf?x=1&y=2";
const capture = (timestamp: string, type = "application/pdf", status = "200") =>
  `org,example)/a.pdf ${timestamp} https://example.org/a.pdf?x=1&y=2 ${type} ${status} JMW26TPS3WUSA47KA5XV2MZRKZW5FX7P 2817`;

test("wayback is queried for the last PDFs of a URL, and only for URLs", () => {
  assert.equal(
    requestUrl(wayback, TOKEN),
    "https://web.archive.org/cdx/search/cdx?url=https%3A%2F%2Fexample.org%2Fa.pdf%3Fx%3D1%26y%3D2&limit=-3&filter=statuscode%3A200&filter=mimetype%3Aapplication%2Fpdf",
  );
  assert.equal(requestUrl(wayback, "10.1234/abc"), undefined);
});

test("wayback is not queried for a URL with a secret, which the archive would learn", () => {
  for (const url of ["https://example.org/a.pdf?token=Sesame", "https://me:Sesame@example.org/a.pdf"])
    assert.equal(wayback.requestFor({ key: "", ids: { url } }), undefined);
});

test("wayback returns original captures, the newest first", () => {
  const body = [
    capture("20190101000000"),
    capture("20230101000000"),
    capture("20240101000000", "text/html"),
    capture("20250101000000", "application/pdf", "404"),
    "",
  ].join("\n");
  assert.deepEqual(candidatesIn(findingFor(wayback, TOKEN, { body })), [
    { url: "https://web.archive.org/web/20230101000000id_/https://example.org/a.pdf?x=1&y=2", kind: "pdf" },
    { url: "https://web.archive.org/web/20190101000000id_/https://example.org/a.pdf?x=1&y=2", kind: "pdf" },
  ]);
});

test("wayback without captures has no copy, an error page is unreadable, and 403 is refused", () => {
  assert.equal(summaryOf(findingFor(wayback, TOKEN, { body: "\n" })), "none: no-copy");
  assert.match(
    summaryOf(findingFor(wayback, TOKEN, { body: "org.archive.wayback.exception.X: blocked" })),
    /^unreadable: .*no CDX capture list/,
  );
  assert.match(
    summaryOf(findingFor(wayback, TOKEN, { status: 403 })),
    /^refused: web\.archive\.org returned status 403/,
  );
});

test("a site that is excluded from the archive has no copy there, and a work that is not open stays not-open", () => {
  const excluded = [
    { status: 403, body: "<html><title>Blocked Site</title></html>" },
    { status: 403, headers: { "x-archive-wayback-runtime-error": "AdministrativeAccessControlException" }, body: "" },
  ];
  for (const response of excluded) assert.equal(summaryOf(findingFor(wayback, TOKEN, response)), "none: no-copy");
  const fields = { status: 403, headers: {}, beginning: "Blocked Site" };
  assert.equal(responseFailure(fields).reason, "no-copy");
  assert.equal(mainReason(new Set(["not-open", "no-copy"])), "not-open");
});
