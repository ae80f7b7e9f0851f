import assert from "node:assert/strict";
import { test } from "node:test";
import { quote, shorten } from "./quote.ts";

test("a text is quoted with its control characters escaped", () => {
  assert.equal(quote('a "b"\n'), '"a \\"b\\"\\n"');
});

test("a text of more than 80 characters is shortened", () => {
  assert.equal(shorten("x".repeat(80)), "x".repeat(80));
  assert.equal(quote("x".repeat(81)), `"${"x".repeat(80)}…"`);
});
