import assert from "node:assert/strict";
import { test } from "node:test";
import { candidatesIn, findingFor, requestUrl, summaryOf } from "../../../test/harvest/resolver-kit.ts";
import { osf } from "./osf.ts";

const API = "https://api.osf.io/v2";
const TOKEN = "10.31234/osf.io/abcde_v2";
const file = (name: string, size: number) => ({
  type: "files",
  attributes: { name, kind: "file", size, extra: { hashes: { md5: "a".repeat(32), sha256: "B".repeat(64) } } },
  links: { download: `https://osf.io/download/${name.length}/` },
});

test("osf is queried for preprints of every server, and for the files of a project", () => {
  assert.equal(requestUrl(osf, TOKEN), `${API}/preprints/abcde_v2/?embed=primary_file`);
  assert.equal(
    requestUrl(osf, "https://osf.io/preprints/psyarxiv/abcde"),
    `${API}/preprints/abcde/?embed=primary_file`,
  );
  assert.equal(requestUrl(osf, "10.17605/OSF.IO/ABCDE"), `${API}/nodes/abcde/files/osfstorage/?page%5Bsize%5D=100`);
  assert.equal(requestUrl(osf, "https://osf.io/abcde/"), `${API}/nodes/abcde/files/osfstorage/?page%5Bsize%5D=100`);
  assert.equal(requestUrl(osf, "https://osf.io/abcde/wiki/home"), undefined);
  assert.equal(requestUrl(osf, "10.1234/abc"), undefined);
});

test("osf parses the embedded file of a preprint, or requests it", () => {
  const preprint = { type: "preprints", attributes: { title: "T", date_published: "2022-01-01" } };
  const embedded = { ...preprint, embeds: { primary_file: { data: file("a.pdf", 9) } } };
  const finding = findingFor(osf, TOKEN, { body: { data: embedded } });
  assert.deepEqual(candidatesIn(finding), [
    {
      url: "https://osf.io/download/5/",
      kind: "pdf",
      checksum: { algorithm: "sha256", hex: "b".repeat(64) },
      bytes: 9,
    },
  ]);
  assert.ok(finding.kind === "found" && finding.metadata?.year === 2022);
  const related = (href: string) => ({
    data: { ...preprint, relationships: { primary_file: { links: { related: { href } } } } },
  });
  assert.equal(
    summaryOf(findingFor(osf, TOKEN, { body: related(`${API}/files/0a1b/`) })),
    `follow-up: ${API}/files/0a1b/`,
  );
  assert.equal(
    summaryOf(findingFor(osf, TOKEN, { body: related("https://elsewhere.example/v2/files/0a1b/") })),
    "none: no-copy",
  );
  assert.equal(
    candidatesIn(findingFor(osf, TOKEN, { url: `${API}/files/0a1b/`, body: { data: file("b.pdf", 1) } })).length,
    1,
  );
});

test("osf requests a registration once if the project is unknown", () => {
  const token = "10.17605/osf.io/abcde";
  const registrations = `${API}/registrations/abcde/files/osfstorage/?page%5Bsize%5D=100`;
  assert.equal(summaryOf(findingFor(osf, token, { status: 404 })), `follow-up: ${registrations}`);
  assert.equal(summaryOf(findingFor(osf, token, { url: registrations, status: 404 })), "none: unknown-work");
  const files = [file("data-99.csv", 99), file("appendix.pdf", 50), file("x.pdf", 3), file("long.pdf", 7)];
  assert.deepEqual(
    candidatesIn(findingFor(osf, token, { body: { data: files } })).map(({ bytes, role }) => [bytes, role]),
    [
      [7, undefined],
      [3, undefined],
      [99, "supplement"],
      [50, "supplement"],
    ],
  );
  assert.equal(summaryOf(findingFor(osf, token, { body: { data: [] } })), "none: no-copy");
  assert.match(summaryOf(findingFor(osf, token, { status: 403, body: { errors: [] } })), /^refused: /);
  assert.match(summaryOf(findingFor(osf, token, { body: { errors: [] } })), /^unreadable: /);
});
