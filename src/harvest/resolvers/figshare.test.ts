import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { figshare } from "./figshare.ts";

const TOKEN = "10.6084/m9.figshare.123";

test("figshare is queried by the id in a DOI or URL, and searched for its other DOIs", () => {
  const api = "https://api.figshare.com/v2/articles";
  assert.equal(requestUrl(figshare, TOKEN), `${api}/123`);
  assert.equal(requestUrl(figshare, "10.6084/m9.figshare.123.v4"), `${api}/123/versions/4`);
  assert.equal(
    requestUrl(figshare, "https://figshare.com/articles/preprint/Some_title/123/2"),
    `${api}/123/versions/2`,
  );
  assert.equal(requestUrl(figshare, "10.6084/m9.figshare.c.123"), `${api}?doi=10.6084%2Fm9.figshare.c.123`);
  assert.equal(requestUrl(figshare, "10.1234/abc"), undefined);
});

test("figshare returns file URLs of its API, because its pages send a challenge", () => {
  const files = [
    { id: 1, name: "data.csv", size: 5, download_url: "https://ndownloader.figshare.com/files/1" },
    { id: 2, name: "paper.PDF", size: 7, computed_md5: "", supplied_md5: "b".repeat(32) },
    { id: 3, name: "linked.pdf", is_link_only: true },
  ];
  const finding = findingFor(figshare, TOKEN, {
    body: { doi: `${TOKEN}.v1`, title: "T", license: { name: "CC BY 4.0" }, files },
  });
  assert.deepEqual(candidatesIn(finding), [
    {
      url: "https://api.figshare.com/v2/file/download/2",
      kind: "pdf",
      licence: "CC BY 4.0",
      checksum: { algorithm: "md5", hex: "b".repeat(32) },
      bytes: 7,
    },
    {
      url: "https://api.figshare.com/v2/file/download/1",
      kind: "file",
      role: "supplement",
      licence: "CC BY 4.0",
      bytes: 5,
      name: "data.csv",
    },
  ]);
});

test("a figshare search leads to the article, or to unknown-work", () => {
  assert.equal(
    summaryOf(findingFor(figshare, "10.6084/x", { body: [{ id: 55, title: "T" }] })),
    "follow-up: https://api.figshare.com/v2/articles/55",
  );
  assert.equal(summaryOf(findingFor(figshare, "10.6084/x", { body: [] })), "none: unknown-work");
  assert.equal(
    summaryOf(
      findingFor(figshare, TOKEN, { status: 404, body: { message: "Entity not found", code: "EntityNotFound" } }),
    ),
    "none: unknown-work",
  );
  assert.match(
    summaryOf(findingFor(figshare, TOKEN, { body: { files: [{ id: "1" }] } })),
    /^unreadable: .* at files\.0\.id: /,
  );
});
