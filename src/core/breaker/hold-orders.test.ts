import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { giveOrder, restoreOrders } from "./breaker-order.ts";
import { type BreakerRecord, EMPTY_BREAKER_RECORD } from "./breaker-record.ts";
import type { HoldOrder } from "./hold-orders.ts";
import { newerByRole } from "./role-records.ts";

const S = 1_000_000;
const hold = (seconds: number, roles = ["metadata"], reason = "test"): HoldOrder => ({
  ...{ kind: "hold", roles, durationUs: seconds * S, reason },
});
const release = (roles = ["metadata"]): HoldOrder => ({ kind: "release", roles });
const until = ({ holds = {} }: BreakerRecord, role = "metadata") => holds[role]?.untilUs;

test("a hold is for its roles, and of two the later end counts", () => {
  const held = giveOrder(EMPTY_BREAKER_RECORD, hold(60, ["metadata", "landing"]), S);
  assert.deepEqual([until(held), until(held, "landing"), until(held, "artifact")], [61 * S, 61 * S, undefined]);
  const shorter = giveOrder(held, hold(10), 2 * S);
  assert.deepEqual([until(shorter), shorter.holds?.["metadata"]?.reason], [61 * S, "test"]);
  const longer = giveOrder(shorter, hold(90, ["metadata"], "more"), 3 * S);
  assert.deepEqual(
    [until(longer), longer.holds?.["metadata"]?.reason, until(longer, "landing")],
    [93 * S, "more", 61 * S],
  );
  const released = giveOrder(longer, release(), 4 * S);
  assert.deepEqual([until(released), until(released, "landing")], [0, 61 * S]);
});

test("every order has a newer version than the one before, also when the clock of the store stands still", () => {
  let record = EMPTY_BREAKER_RECORD;
  const versions = [hold(5), hold(1), release(), hold(2)].map(order => {
    record = giveOrder(record, order, S);
    return record.holds?.["metadata"]?.serial ?? 0;
  });
  assert.deepEqual(
    versions,
    versions.toSorted((a, b) => a - b),
  );
  assert.equal(new Set(versions).size, versions.length);
});

test("an order that was given during an outage does not replace a newer one", () => {
  const released = giveOrder(giveOrder(EMPTY_BREAKER_RECORD, hold(600), S), release(), 10 * S);
  assert.equal(giveOrder(released, hold(600), 20 * S, 5 * S), released);
  assert.equal(until(giveOrder(released, hold(600), 20 * S, 15 * S)), 620 * S);
});

test("closing or opening the circuits of a host releases no hold, and a hold changes no circuit", () => {
  const opened = giveOrder(EMPTY_BREAKER_RECORD, { kind: "open", durationUs: 60 * S, reason: "test" }, S);
  const held = giveOrder(opened, hold(600), 2 * S);
  assert.equal(held.operatorCooldown, opened.operatorCooldown);
  for (const kind of ["close", "half-open"] as const)
    assert.equal(until(giveOrder(held, { kind, circuits: ["metadata"] }, 3 * S)), 602 * S, kind);
});

test("a store that has lost its holds gets them back, and newer ones stay", () => {
  const held = giveOrder(EMPTY_BREAKER_RECORD, hold(600, ["metadata", "landing"]), S);
  assert.deepEqual(restoreOrders(EMPTY_BREAKER_RECORD, held).holds, held.holds);
  assert.equal(restoreOrders(held, held), held);
  const released = giveOrder(held, release(), 2 * S);
  assert.equal(restoreOrders(released, held), released);
  assert.deepEqual(restoreOrders(held, released).holds, released.holds);
});

test("of two records the newest hold of each role is kept, whatever the order of the records", () => {
  const holds = fc.dictionary(
    fc.constantFrom("metadata", "landing", "artifact"),
    fc.record({ serial: fc.integer({ min: 1, max: 20 }), untilUs: fc.nat(), reason: fc.constant("") }),
  );
  fc.assert(
    fc.property(holds, holds, (a, b) => {
      const newest = newerByRole(a, b);
      for (const role of new Set([...Object.keys(a), ...Object.keys(b)]))
        assert.equal(newest[role]?.serial, Math.max(a[role]?.serial ?? 0, b[role]?.serial ?? 0));
    }),
  );
});
