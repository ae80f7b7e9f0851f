import assert from "node:assert/strict";
import { test } from "node:test";
import { quote, shorten, shownValue } from "./quote.ts";

test("a text is quoted with its control characters escaped", () => {
  assert.equal(quote('a "b"\n'), '"a \\"b\\"\\n"');
});

test("a text of more than 80 characters is shortened", () => {
  assert.equal(shorten("x".repeat(80)), "x".repeat(80));
  assert.equal(quote("x".repeat(81)), `"${"x".repeat(80)}…"`);
});

test("a value of any type can be shown, also one that JSON cannot write", () => {
  const circular: Record<string, unknown> = {};
  circular["itself"] = circular;
  const values = ["a", 1, 1n, Number.NaN, undefined, null, Symbol("x"), () => 1, [1n], { a: 1n }, circular];
  const shown = ['"a"', "1", "1n", "NaN", "undefined", "null", "Symbol(x)", "a function", "a list", "an object"];
  assert.deepEqual(values.map(shownValue), [...shown, "an object"]);
});
