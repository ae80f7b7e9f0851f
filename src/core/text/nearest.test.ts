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
