import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { HashTable } from "./hash-table.ts";

test("a hash table gives the same flags as a map of strings", () => {
  const entry = fc.tuple(fc.integer({ min: 0, max: 3000 }), fc.integer({ min: 1, max: 31 }));
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 3000 }), entries => {
      const table = new HashTable();
      const oracle = new Map<string, number>();
      for (const [number, flags] of entries) {
        const name = `http://purl.example/X_${number}`;
        const old = oracle.get(name) ?? 0;
        assert.equal(table.flagsOf(name), old);
        assert.equal(table.add(name, flags), flags & ~old);
        oracle.set(name, old | flags);
      }
      assert.equal(table.size, oracle.size);
    }),
    { numRuns: 30 },
  );
});

test("similar names do not collide", () => {
  const table = new HashTable();
  for (let number = 0; number < 200_000; number += 1) assert.equal(table.add(`X_${number}`, 1), 1);
  assert.equal(table.size, 200_000);
});
