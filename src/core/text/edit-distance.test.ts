import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { editDistance } from "./edit-distance.ts";

const word = fc.string({ unit: fc.constantFrom(..."abc"), maxLength: 7 });

/** The definition, without a table. */
function oracle(from: string, to: string): number {
  if (from === "" || to === "") return from.length + to.length;
  const [a, b] = [from.slice(0, -1), to.slice(0, -1)];
  const isSwap = from.length > 1 && to.length > 1 && from.at(-1) === to.at(-2) && from.at(-2) === to.at(-1);
  return Math.min(
    oracle(a, b) + (from.at(-1) === to.at(-1) ? 0 : 1),
    oracle(a, to) + 1,
    oracle(from, b) + 1,
    isSwap ? oracle(from.slice(0, -2), to.slice(0, -2)) + 1 : Number.POSITIVE_INFINITY,
  );
}

test("the distance of two words is that of the definition", () => {
  fc.assert(
    fc.property(word, word, (from, to) => assert.equal(editDistance(from, to), oracle(from, to))),
    { numRuns: 300 },
  );
});

test("two neighbours that are swapped are one change", () => {
  assert.equal(editDistance("corssref", "crossref"), 1);
});
