import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { UnitLease } from "./unit-lease.ts";

test("units end the lease of the budgets that they were leased from, the oldest first", () => {
  const lease = new UnitLease();
  lease.add(["lane", "total"], 3, 0);
  lease.add(["lane", "total"], 1, 5);
  lease.add(["lane"], 2, 10);
  assert.deepEqual(lease.keys, [["lane", "total"], ["lane"]]);
  assert.deepEqual(lease.end(5), [
    { keys: ["lane", "total"], units: 4 },
    { keys: ["lane"], units: 1 },
  ]);
  assert.deepEqual(lease.end(9), [{ keys: ["lane"], units: 1 }]);
  assert.deepEqual(lease.end(1), []);
  assert.deepEqual([lease.leasedUnits, lease.isIdle, lease.keys], [0, true, []]);
});

test("for each budget as many units end as were leased, whatever the order of leases and ends", () => {
  const step = fc.record({ isLease: fc.boolean(), keys: fc.subarray(["lane", "total", "service"]), units: fc.nat(5) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), steps => {
      const lease = new UnitLease();
      const open = new Map<string, number>();
      const add = (keys: readonly string[], units: number) => {
        for (const key of keys) open.set(key, (open.get(key) ?? 0) + units);
      };
      for (const { isLease, keys, units } of steps) {
        if (isLease) {
          lease.add(keys, units, 0);
          add(keys, units);
        } else for (const part of lease.end(units)) add(part.keys, -part.units);
      }
      for (const part of lease.end(lease.leasedUnits)) add(part.keys, -part.units);
      assert.ok([...open.values()].every(units => units === 0));
    }),
  );
});
