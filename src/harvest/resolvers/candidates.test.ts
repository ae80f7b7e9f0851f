import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ranked } from "./candidates.ts";
import type { Candidate } from "./resolver.ts";

const checksum = { algorithm: "md5", hex: "0".repeat(32) } as const;

test("candidates are ranked by version, kind, checksum, https, and landing pages come last", () => {
  const inOrder: readonly Candidate[] = [
    { url: "https://a.example/1", kind: "pdf", version: "published", checksum },
    { url: "https://a.example/2", kind: "pdf", version: "published" },
    { url: "http://a.example/3", kind: "pdf", version: "published" },
    { url: "https://a.example/4", kind: "xml", version: "published" },
    { url: "https://a.example/5", kind: "html", version: "published", checksum },
    { url: "https://a.example/6", kind: "pdf", version: "accepted" },
    { url: "https://a.example/7", kind: "pdf" },
    { url: "https://a.example/8", kind: "pdf", version: "submitted" },
    { url: "https://a.example/9", kind: "landing", version: "published" },
  ];
  assert.deepEqual(ranked(inOrder.toReversed()), inOrder);
});

test("a URL is kept once, with the better description", () => {
  const url = "https://a.example/1";
  assert.deepEqual(
    ranked([
      { url, kind: "landing" },
      { url, kind: "pdf" },
      { url, kind: "pdf", version: "published" },
    ]),
    [{ url, kind: "pdf", version: "published" }],
  );
});

test("equal candidates keep their order, and ranking twice changes nothing", () => {
  const candidate = fc.record({
    url: fc.constantFrom("https://a.example/1", "http://a.example/2", "https://a.example/3", "https://a.example/4"),
    kind: fc.constantFrom("pdf", "xml", "html", "landing"),
    version: fc.constantFrom("published", "accepted", "submitted", undefined),
  });
  fc.assert(
    fc.property(fc.array(candidate), candidates => {
      const once = ranked(candidates);
      assert.deepEqual(ranked(once), once);
      assert.equal(new Set(once.map(({ url }) => url)).size, once.length);
      assert.equal(new Set(candidates.map(({ url }) => url)).size, once.length);
    }),
  );
  const equals = ["3", "1", "2"].map((name): Candidate => ({ url: `https://a.example/${name}`, kind: "pdf" }));
  assert.deepEqual(ranked(equals), equals);
});
