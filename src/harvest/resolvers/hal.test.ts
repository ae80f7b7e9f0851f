import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { hal } from "./hal.ts";

const page = (...docs: readonly unknown[]) => ({ response: { numFound: docs.length, docs } });

test("hal is queried by DOI, or by the HAL id in a URL", () => {
  const query = (token: string) => new URL(requestUrl(hal, token) ?? "").searchParams.get("q");
  assert.equal(query("10.1234/abc"), 'doiId_s:"10.1234/abc"');
  assert.equal(query("https://theses.hal.science/tel-01234567v2/document"), 'halId_s:"tel-01234567"');
  assert.equal(query("https://hal.archives-ouvertes.fr/inria-00123456"), 'halId_s:"inria-00123456"');
  assert.equal(requestUrl(hal, "https://nothal.science/hal-01234567"), undefined);
});

test("hal returns the main file, then other documents", () => {
  const doc = {
    halId_s: "hal-01234567",
    doiId_s: "10.1234/ABC",
    title_s: ["T"],
    publicationDateY_i: 2018,
    fileMain_s: "https://hal.science/hal-01234567/document",
    files_s: ["https://hal.science/hal-01234567/file/a.pdf", "https://hal.science/hal-01234567/file/a.zip"],
    licence_s: "by",
    openAccess_bool: true,
  };
  const finding = findingFor(hal, "10.1234/abc", {
    body: page({ doiId_s: "10.9/x", fileMain_s: "https://hal.science/x" }, doc),
  });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://hal.science/hal-01234567/document", kind: "pdf", licence: "by" },
    { url: "https://hal.science/hal-01234567/file/a.pdf", kind: "pdf", licence: "by" },
  ]);
  const byAddress = findingFor(hal, "https://hal.science/hal-01234567", { body: page(doc) });
  assert.ok(byAddress.kind === "found" && byAddress.ids?.doi === "10.1234/abc");
  assert.equal(
    summaryOf(findingFor(hal, "10.1234/abc", { body: page({ ...doc, openAccess_bool: false }) })),
    "none: no-copy",
  );
});

test("hal with metadata only, without the work, and with an unexpected format", () => {
  assert.equal(summaryOf(findingFor(hal, "10.1234/abc", { body: page({ doiId_s: "10.1234/abc" }) })), "none: no-copy");
  assert.equal(summaryOf(findingFor(hal, "10.1234/abc", { body: page() })), "none: unknown-work");
  assert.match(summaryOf(findingFor(hal, "10.1234/abc", { body: { error: { msg: "x" } } })), /^unreadable: .*response/);
});
