import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Heap } from "./heap.ts";

test("items that are taken are gone, and the others stay in order", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), items => {
      const heap = new Heap<number>((a, b) => a < b);
      for (const item of items) heap.push(item);
      const isOdd = (item: number) => item % 2 !== 0;
      const byValue = (one: number, other: number) => one - other;
      assert.deepEqual(heap.take(isOdd).toSorted(byValue), items.filter(isOdd).toSorted(byValue));
      const kept = items.filter(item => !isOdd(item)).toSorted(byValue);
      assert.deepEqual(
        Array.from(kept, () => heap.pop()),
        kept,
      );
      assert.equal(heap.first, undefined);
    }),
  );
});

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
