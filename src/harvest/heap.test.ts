import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap } from "./heap.ts";

test("items are removed in order, also when pushes and pops alternate", () => {
  fc.assert(
    fc.property(fc.array(fc.option(fc.integer(), { freq: 3 })), steps => {
      const heap = new Heap<number>((a, b) => a < b);
      let expected: number[] = [];
      for (const step of steps) {
        if (step === null) assert.equal(heap.pop(), expected.shift());
        else {
          heap.push(step);
          expected = [...expected, step].sort((a, b) => a - b);
        }
        assert.equal(heap.first, expected[0]);
      }
    }),
  );
});
