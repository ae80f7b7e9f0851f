import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { zenodo } from "./zenodo.ts";

const TOKEN = "10.5281/zenodo.77";
const file = (key: string, size: number) => ({
  key,
  size,
  checksum: `md5:${"a".repeat(32)}`,
  links: { self: "https://zenodo.org/api/x/content" },
});

test("zenodo is queried for its own records, by DOI or URL", () => {
  assert.equal(requestUrl(zenodo, TOKEN), "https://zenodo.org/api/records/77");
  assert.equal(requestUrl(zenodo, "https://zenodo.org/record/77?x=1"), "https://zenodo.org/api/records/77");
  assert.equal(requestUrl(zenodo, "10.1234/abc"), undefined);
  assert.equal(requestUrl(zenodo, "https://zenodo.org.example/records/77"), undefined);
});

test("zenodo returns documents, the largest first, then supplements, at URLs that support ranges", () => {
  const files = [
    file("data.zip", 9e9),
    file("Cover letter.pdf", 10),
    file("supplement.pdf", 5000),
    file("paper/é #1.pdf", 900),
  ];
  const body = {
    id: 77,
    metadata: { title: "T", access_right: "open", license: { id: "cc-by-4.0" }, publication_date: "2021-08" },
    files,
  };
  const finding = findingFor(zenodo, TOKEN, { body });
  assert.deepEqual(
    candidatesIn(finding).map(({ url, bytes, role }) => [url, bytes, role]),
    [
      ["https://zenodo.org/records/77/files/paper%2F%C3%A9%20%231.pdf", 900, undefined],
      ["https://zenodo.org/records/77/files/Cover%20letter.pdf", 10, undefined],
      ["https://zenodo.org/records/77/files/data.zip", 9e9, "supplement"],
      ["https://zenodo.org/records/77/files/supplement.pdf", 5000, "supplement"],
    ],
  );
  assert.deepEqual(candidatesIn(finding)[0]?.checksum, { algorithm: "md5", hex: "a".repeat(32) });
});

test("zenodo with data only, with closed files, and with a deleted record", () => {
  const record = { id: 77, metadata: { access_right: "open" }, files: [file("data.csv", 1)] };
  assert.equal(summaryOf(findingFor(zenodo, TOKEN, { body: record })), "none: no-copy");
  const closed = { ...record, metadata: { access_right: "restricted" }, files: [file("a.pdf", 1)] };
  assert.equal(summaryOf(findingFor(zenodo, TOKEN, { body: closed })), "none: not-open");
  assert.equal(
    summaryOf(findingFor(zenodo, TOKEN, { status: 410, body: { status: 410, message: "deleted" } })),
    "none: unknown-work",
  );
  assert.match(
    summaryOf(findingFor(zenodo, TOKEN, { body: { id: 77, metadata: {}, files: [{ key: 1 }] } })),
    /^unreadable: .*files\.0\.key/,
  );
  assert.equal(
    summaryOf(findingFor(zenodo, TOKEN, { body: { ...record, id: "../../x", files: [file("a.pdf", 1)] } })),
    "none: no-copy",
  );
});
