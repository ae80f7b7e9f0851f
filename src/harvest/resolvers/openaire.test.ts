import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { openaire } from "./openaire.ts";

const pids = [{ scheme: "doi", value: "10.1234/ABC" }];
const open = { code: "c_abf2", label: "OPEN" };

test("openaire is queried by persistent identifier", () => {
  assert.equal(
    requestUrl(openaire, "10.1234/abc"),
    "https://api.openaire.eu/graph/v2/researchProducts?pid=10.1234%2Fabc",
  );
  assert.equal(requestUrl(openaire, "2401.00001"), undefined);
});

test("openaire returns URLs of open instances only", () => {
  const instances = [
    { urls: ["https://r.example/1.pdf", "https://r.example/1"], accessRight: open, license: "CC BY", pids: null },
    { urls: ["https://r.example/2.pdf"], accessRight: { code: "c_16ec", label: "RESTRICTED" } },
    { urls: null, accessRight: open },
    { urls: ["ftp://r.example/3.pdf"], accessRight: null },
  ];
  const finding = findingFor(openaire, "10.1234/abc", {
    body: { results: [{ mainTitle: "T", publicationDate: "2019-05-05", pids, instances }] },
  });
  assert.deepEqual(candidatesIn(finding), [
    { url: "https://r.example/1.pdf", kind: "pdf", licence: "CC BY" },
    { url: "https://r.example/1", kind: "landing", licence: "CC BY" },
  ]);
  assert.ok(finding.kind === "found" && finding.metadata?.year === 2019);
});

test("openaire without product, with another product, with a closed one, with an invalid parameter", () => {
  assert.equal(summaryOf(findingFor(openaire, "10.1234/abc", { body: { results: [] } })), "none: unknown-work");
  assert.equal(
    summaryOf(findingFor(openaire, "10.1234/abcd", { body: { results: [{ pids, instances: null }] } })),
    "none: unknown-work",
  );
  assert.equal(
    summaryOf(
      findingFor(openaire, "10.1234/abc", { body: { results: [{ pids, instances: null, bestAccessRight: null }] } }),
    ),
    "none: not-open",
  );
  assert.equal(
    summaryOf(findingFor(openaire, "10.1234/abc", { body: { results: [{ pids, bestAccessRight: open }] } })),
    "none: no-copy",
  );
  assert.match(
    summaryOf(findingFor(openaire, "10.1234/abc", { status: 400, body: { message: "Unknown parameter" } })),
    /^unreadable: .*400/,
  );
});
