import assert from "node:assert/strict";
import { test } from "node:test";
import { giveOrder, restoreOrders } from "./breaker-order.ts";
import { type BreakerRecord, EMPTY_BREAKER_RECORD } from "./breaker-record.ts";
import { type LimitOrder, limitsOf } from "./limit-orders.ts";

const S = 1_000_000;
const set = (rates: string, seconds = 600, roles = ["metadata"]): LimitOrder => ({
  ...{ kind: "set-limit", roles, durationUs: seconds * S, rates, isForced: false, reason: "test", by: "ann" },
});
const reset = (roles = ["metadata"]): LimitOrder => ({ kind: "reset-limit", roles, reason: "done", by: "bob" });
const limit = ({ limits = {} }: BreakerRecord, role = "metadata") => {
  const { rates, untilUs } = limits[role] ?? {};
  return [rates, untilUs];
};

test("the newest order for a role replaces the one before, also if that lasts longer, and reset ends it", () => {
  const first = giveOrder(EMPTY_BREAKER_RECORD, set("2/SECOND", 600, ["metadata", "landing"]), S);
  assert.deepEqual(
    [limit(first), limit(first, "landing")],
    [
      ["2/SECOND", 601 * S],
      ["2/SECOND", 601 * S],
    ],
  );
  const shorter = giveOrder(first, set("5/SECOND", 10), 2 * S);
  assert.deepEqual(
    [limit(shorter), limit(shorter, "landing")],
    [
      ["5/SECOND", 12 * S],
      ["2/SECOND", 601 * S],
    ],
  );
  const ended = giveOrder(shorter, reset(), 3 * S);
  assert.deepEqual(
    [limit(ended), limit(ended, "landing")],
    [
      ["", 0],
      ["2/SECOND", 601 * S],
    ],
  );
});

test("an order that was given during an outage does not replace a newer one", () => {
  const ended = giveOrder(giveOrder(EMPTY_BREAKER_RECORD, set("2/SECOND"), S), reset(), 10 * S);
  assert.equal(giveOrder(ended, set("2/SECOND"), 20 * S, 5 * S), ended);
  assert.deepEqual(limit(giveOrder(ended, set("3/SECOND"), 20 * S, 15 * S)), ["3/SECOND", 620 * S]);
});

test("closing circuits and holding a host change no limit, and a changed limit holds nothing", () => {
  const changed = giveOrder(EMPTY_BREAKER_RECORD, set("2/SECOND"), S);
  assert.equal(changed.holds, undefined);
  const held = giveOrder(changed, { kind: "hold", roles: ["metadata"], durationUs: S, reason: "test" }, 2 * S);
  for (const kind of ["close", "half-open"] as const)
    assert.equal(giveOrder(held, { kind, circuits: ["metadata"] }, 3 * S).limits, changed.limits, kind);
});

test("a store that has lost a changed limit gets it back, and a reset stays", () => {
  const changed = giveOrder(EMPTY_BREAKER_RECORD, set("2/SECOND"), S);
  assert.deepEqual(restoreOrders(EMPTY_BREAKER_RECORD, changed).limits, changed.limits);
  const ended = giveOrder(changed, reset(), 2 * S);
  assert.equal(restoreOrders(ended, changed), ended);
  assert.deepEqual(restoreOrders(changed, ended).limits, ended.limits);
});

test("the most requests in flight are in the record only if the order changes them, and an order may have no rates", () => {
  const record = (order: LimitOrder) => giveOrder(EMPTY_BREAKER_RECORD, order, S).limits?.["metadata"];
  const common = { untilUs: 601 * S, isForced: false, reason: "test", by: "ann" };
  assert.deepEqual(record(set("2/SECOND")), { serial: S, rates: "2/SECOND", ...common });
  assert.deepEqual(record({ ...set(""), ...{ maxConcurrent: 3 } }), {
    serial: S,
    rates: "",
    maxConcurrent: 3,
    ...common,
  });
  assert.deepEqual(record(reset()), { serial: S, untilUs: 0, rates: "", isForced: false, reason: "done", by: "bob" });
  assert.deepEqual(limitsOf({ rates: "", maxConcurrent: 3 }), { rates: [], maxConcurrent: 3 });
  assert.deepEqual(limitsOf({ rates: "2/SECOND" }).rates, [{ limit: 2, windowUs: S }]);
});
