import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./nearest.ts";

const keys = ["rates", "max_delay_ms", "count_head", "max_concurrent"];

test("a typing error finds the intended word", () => {
  assert.equal(nearest("rate", keys), "rates");
  assert.equal(nearest("max_delay", keys), "max_delay_ms");
  assert.equal(nearest("count_haed", keys), "count_head");
  assert.equal(nearest("MAX_CONCURENT", keys), "max_concurrent");
});

test("a word that is close to no candidate gives no suggestion", () => {
  assert.equal(nearest("colour", keys), undefined);
  assert.equal(nearest("x", keys), undefined);
  assert.equal(nearest("r".repeat(10_000), keys), undefined);
});

test("the closest of several candidates is suggested", () => {
  assert.equal(nearest("hots", ["hosts", "hot"]), "hosts");
  assert.equal(nearest("host", ["hosts", "hot", "host"]), "host");
});

test("at most a third of the letters may differ, and at most three", () => {
  assert.equal(nearest("ab", ["abc"]), undefined);
  assert.equal(nearest("abc", ["abcd"]), "abcd");
  assert.equal(nearest("abc", ["abcde"]), undefined);
  assert.equal(nearest("abcdefghijklmno", ["abcdefghijkl"]), "abcdefghijkl");
  assert.equal(nearest("abcdefghijklmno", ["abcdefghijk"]), undefined);
});

test("of equally close candidates the first is suggested, for a word of at most 64 letters", () => {
  assert.equal(nearest("rats", ["rate", "rata"]), "rate");
  const word = (length: number) => nearest("r".repeat(length), ["r".repeat(length - 1)]);
  assert.deepEqual([word(64)?.length, word(65)], [63, undefined]);
});
