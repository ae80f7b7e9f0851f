import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { editDistance } from "./edit-distance.ts";
import { SimilarNames } from "./similar-names.ts";

const KNOWN = ["api.crossref.org", "export.arxiv.org", "doaj.org", "s3-eu-west-1.amazonaws.com"];

for (const [typed, meant] of [
  ["api.corssref.org", "api.crossref.org"],
  ["api.crosref.og", "api.crossref.org"],
  ["exportarxiv.org", "export.arxiv.org"],
  ["doja.org", "doaj.org"],
  ["daoj.rg", undefined],
  ["doaj.org", undefined],
  ["s3-eu-west-2.amazonaws.com", undefined],
  ["www.crossref.org", undefined],
  ["example.org", undefined],
] as const)
  test(`${typed} is similar to ${meant ?? "no known name"}`, () => {
    assert.equal(new SimilarNames(KNOWN).find(typed), meant);
  });

test("a similar name is found exactly when the distance allows it", () => {
  const name = fc.string({ unit: fc.constantFrom(..."abcde.-"), minLength: 8, maxLength: 14 });
  const typed = fc.tuple(name, fc.nat(13), fc.nat(2), fc.string({ unit: fc.constantFrom(..."abxyz"), maxLength: 2 }));
  fc.assert(
    fc.property(typed, ([known, at, cut, put]) => {
      const given = known.slice(0, at) + put + known.slice(at + cut);
      const edits = editDistance(given, known);
      const isSimilar = edits > 0 && edits <= (given.length < 12 ? 1 : 2);
      assert.equal(new SimilarNames([known]).find(given), isSimilar ? known : undefined);
    }),
    { numRuns: 2000 },
  );
});

test("of several similar names the closest is found, and the first of those that are equally close", () => {
  const find = (...known: readonly string[]) => new SimilarNames(known).find("abcdefghijklmn");
  assert.equal(find("abcdefghijkl", "abcdefghijklm"), "abcdefghijklm");
  assert.equal(find("abcdefghijklm", "abcdefghijkl"), "abcdefghijklm");
  assert.equal(find("abcdefghijkl", "cdefghijklmn"), "abcdefghijkl");
  assert.equal(find("abcdefghijklm", "bcdefghijklmn"), "abcdefghijklm");
});
