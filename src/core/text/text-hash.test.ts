import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { textHash } from "./text-hash.ts";

test("a hash is sixteen digits, and the same for the same text", () => {
  fc.assert(
    fc.property(fc.string(), text => {
      assert.match(textHash(text), /^[0-9a-f]{16}$/);
      assert.equal(textHash(text), textHash(`${text}`));
    }),
  );
});

test("a hundred thousand similar URLs have different hashes", () => {
  const hashes = new Set<string>();
  for (let n = 0; n < 100_000; n += 1) hashes.add(textHash(`https://api.example.org/works/10.1000/${n}?mailto=you`));
  assert.equal(hashes.size, 100_000);
});

test("each digit of a hash takes every value about equally often", () => {
  const counts = Array.from({ length: 16 }, () => new Map<string, number>());
  for (let n = 0; n < 16_000; n += 1) {
    for (const [place, digit] of [...textHash(`/${n}`)].entries())
      counts[place]?.set(digit, (counts[place]?.get(digit) ?? 0) + 1);
  }
  for (const count of counts) for (const times of count.values()) assert.ok(times > 800 && times < 1200, `${times}`);
});

test("the hash of a text is the same on every machine and in every version", () => {
  // Hashes of policies and URLs are compared between processes, machines and versions.
  assert.equal(textHash(""), "b546688092742951");
  assert.equal(textHash("a"), "255fb6317054fb9e");
  assert.equal(textHash("https://example.org/works?page=2"), "3b85e4d80982c906");
});
