import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type BreakerOrder,
  giveOrder,
  isClearedSince,
  lastClearing,
  orderVersion,
  passOrder,
  restoreOrders,
} from "./breaker-order.ts";
import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  circuitRecordOf,
  EMPTY_BREAKER_RECORD,
  leaseProbe,
  openCircuit,
  runningCooldown,
  setCooldown,
} from "./breaker-record.ts";

const DAY_US = 86_400_000_000;
const open = (durationUs: number, isReplacing = false, circuit?: string): BreakerOrder => ({
  kind: "open",
  durationUs,
  reason: "cli-open:x",
  isReplacing,
  circuit,
});

const orders = fc.oneof(
  fc
    .record({ durationUs: fc.integer({ min: 1, max: 1000 }), isReplacing: fc.boolean() })
    .map(({ durationUs, isReplacing }): BreakerOrder => open(durationUs, isReplacing)),
  fc.constantFrom<BreakerOrder>(
    { kind: "close" },
    { kind: "close", circuit: "landing" },
    { kind: "half-open", circuits: ["metadata", "landing"] },
    { kind: "half-open", circuit: "landing", circuits: [] },
    open(500, false, "landing"),
  ),
);

test("every order has a newer version than all before it", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(orders, fc.integer({ min: -5, max: 100 })), { maxLength: 12 }), steps => {
      let record: BreakerRecord = EMPTY_BREAKER_RECORD;
      let nowUs = 1000;
      for (const [order, us] of steps) {
        nowUs += us;
        const next = giveOrder(record, order, nowUs);
        assert.ok(orderVersion(next, order.circuit) > orderVersion(record, order.circuit), JSON.stringify(order));
        record = next;
      }
    }),
  );
});

test("a shorter order ends no longer one unless it replaces, and a Retry-After stays", () => {
  const cooled = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 700, reason: "retry-after" }, 1);
  const opened = giveOrder(cooled, open(900), 10);
  const kept = giveOrder(opened, open(100), 20);
  assert.equal(kept.operatorCooldown.untilUs, 910);
  assert.ok(orderVersion(kept) > orderVersion(opened), "an older order to close no longer ends it");
  const replaced = giveOrder(opened, open(100, true), 20);
  assert.equal(replaced.operatorCooldown.untilUs, 120);
  assert.deepEqual(runningCooldown(replaced, 20), cooled.serverCooldown);
});

test("an order for one circuit leaves the others as they are", () => {
  const record = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 900, reopened: 0 }, 1);
  const opened = giveOrder(record, open(500, false, "landing"), 10);
  assert.equal(circuitRecordOf(opened, "landing").order?.untilUs, 510);
  assert.equal(circuitRecordOf(opened, "metadata"), circuitRecordOf(record, "metadata"));
  assert.equal(runningCooldown(opened, 20), undefined);
  const closed = giveOrder(opened, { kind: "close", circuit: "landing" }, 20);
  assert.equal(circuitRecordOf(closed, "landing").order, undefined);
  assert.ok(isClearedSince(closed, opened, "landing"));
  assert.ok(!isClearedSince(closed, opened, "metadata"));
});

test("a half-open order opens no circuit, and the next call of each is a trial call", () => {
  const record = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 900, reopened: 3 }, 1);
  const half = giveOrder(record, { kind: "half-open", circuits: ["metadata", "landing"] }, 50);
  for (const name of ["metadata", "landing"]) {
    const { isClosed, untilUs, reopened } = circuitRecordOf(half, name);
    assert.deepEqual({ isClosed, untilUs, reopened }, { isClosed: false, untilUs: 50, reopened: 0 });
  }
  assert.ok(isClearedSince(half, record, "metadata"));
});

test("orders that a record has lost are restored from a newer record, and an older record changes nothing", () => {
  fc.assert(
    fc.property(fc.array(orders, { minLength: 1, maxLength: 8 }), fc.nat(7), (list, lostFrom) => {
      const records = [EMPTY_BREAKER_RECORD];
      for (const [index, order] of list.entries())
        records.push(giveOrder(records.at(-1) as BreakerRecord, order, 1000 * (index + 1)));
      const newest = records.at(-1) as BreakerRecord;
      const older = records[Math.min(lostFrom, records.length - 1)] as BreakerRecord;
      const restored = restoreOrders(older, newest);
      for (const circuit of [undefined, "metadata", "landing"])
        assert.equal(orderVersion(restored, circuit), orderVersion(newest, circuit));
      assert.equal(restoreOrders(newest, older), newest);
    }),
  );
});

test("an order is kept for a day, and for a day after the end of what it has ended", () => {
  const closed = giveOrder(EMPTY_BREAKER_RECORD, { kind: "close" }, 1000);
  assert.equal(breakerRecordExpiryUs(closed, 1000), 1000 + DAY_US);
  const opened = giveOrder(EMPTY_BREAKER_RECORD, open(3 * DAY_US), 1000);
  const ended = giveOrder(opened, { kind: "close" }, 2000);
  assert.equal(breakerRecordExpiryUs(ended, 2000), 1000 + 4 * DAY_US);
});

test("a Retry-After that came after the last close stays, when the close is put back into a store that has lost it", () => {
  const closed = giveOrder(EMPTY_BREAKER_RECORD, { kind: "close" }, 100);
  const cooled = (atUs: number) =>
    setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 900, reason: "retry-after" }, atUs);
  assert.equal(restoreOrders(cooled(200), closed).serverCooldown.untilUs, 900);
  assert.equal(restoreOrders(cooled(50), closed).serverCooldown.untilUs, 0);
});

test("a close ends a Retry-After that came before the close was given, and none that came between order and write", () => {
  const cooled = setCooldown(
    EMPTY_BREAKER_RECORD,
    "serverCooldown",
    { untilUs: 900, reason: "retry-after" },
    ...([500, 200] as const),
  );
  assert.equal(giveOrder(cooled, { kind: "close" }, 600, 150).serverCooldown.untilUs, 900);
  assert.equal(giveOrder(cooled, { kind: "close" }, 600, 250).serverCooldown.untilUs, 0);
});

test("an order counts also if the clock of the store was set back after the last change", () => {
  const cooldown = { untilUs: 5900, reason: "retry-after" };
  const before = giveOrder(setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", cooldown, 5000), open(900), 5010);
  // Stores shift instants, and no serials. The order is written a moment after it was given.
  const closed = giveOrder(before, { kind: "close" }, 110, 100);
  assert.deepEqual([closed.serverCooldown.untilUs, closed.operatorCooldown.untilUs], [0, 0]);
  assert.ok(orderVersion(closed) > orderVersion(before));
  const held = giveOrder(before, { kind: "hold", roles: ["landing"], durationUs: 10, reason: "x" }, 5020);
  assert.equal(giveOrder(held, { kind: "release", roles: ["landing"] }, 110, 100).holds?.["landing"]?.untilUs, 0);
});

test("an order that is written late ends nothing that began after it was given", () => {
  const cooldown = { untilUs: 900, reason: "rolling-window" };
  const before = openCircuit(
    setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", cooldown, 200),
    "metadata",
    { untilUs: 900, reopened: 0 },
    200,
  );
  // A trial call changes the record, and not when the circuit was opened.
  const probing = leaseProbe(before, "metadata", { id: "p", expiresUs: 990 }, 1, 950);
  for (const record of [before, probing]) {
    const late = giveOrder(record, { kind: "close" }, 960, 150);
    assert.equal(circuitRecordOf(late, "metadata").isClosed, false);
    assert.equal(late.serverCooldown.untilUs, 900);
    assert.equal(giveOrder(record, { kind: "close", circuit: "metadata" }, 960, 150), record);
    const newer = giveOrder(record, { kind: "close" }, 960, 250);
    assert.equal(circuitRecordOf(newer, "metadata").isClosed, true);
    assert.equal(newer.serverCooldown.untilUs, 0);
  }
});

test("an order to close that is written late ends the older order to open, and leaves the circuit that failures opened since", () => {
  const ordered = giveOrder(
    EMPTY_BREAKER_RECORD,
    { kind: "open", circuit: "metadata", durationUs: 3_600_000_000, reason: "cli-open:x" },
    100_000_000,
  );
  const opened = openCircuit(ordered, "metadata", { untilUs: 171_000_000, reopened: 0 }, 111_000_000);
  for (const circuit of ["metadata", undefined]) {
    const { order, isClosed, untilUs } =
      giveOrder(opened, { kind: "close", circuit }, 112_000_000, 110_000_000).circuits["metadata"] ?? {};
    assert.deepEqual([order, isClosed, untilUs], [undefined, false, 171_000_000]);
  }
});

test("the last order that cleared a host or a circuit is found in its record", () => {
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 900, reopened: 0 }, 1);
  const half = giveOrder(opened, { kind: "half-open", circuits: ["metadata", "landing"] }, 50);
  assert.deepEqual(lastClearing(giveOrder(half, { kind: "close" }, 60)), { kind: "close", circuit: undefined });
  const ofHost = { circuit: undefined, circuits: ["metadata", "landing"] };
  assert.deepEqual(lastClearing(half), { kind: "half-open", ...ofHost });
  const one = giveOrder(opened, { kind: "half-open", circuit: "landing", circuits: [] }, 50);
  const ofLanding = { kind: "half-open", circuit: "landing", circuits: ["metadata", "landing"] };
  assert.deepEqual(lastClearing(one, "landing"), ofLanding);
  assert.deepEqual(lastClearing(one, "metadata"), { kind: "close", circuit: "metadata" });
  assert.deepEqual(lastClearing(giveOrder(half, { kind: "close", circuit: "landing" }, 60), "landing"), {
    kind: "close",
    circuit: "landing",
  });
  const failed = openCircuit(half, "landing", { untilUs: 900, reopened: 1 }, 70);
  assert.deepEqual(lastClearing(failed), { kind: "half-open", ...ofHost }, "also when a circuit has opened since");
});

test("an order is passed to a partition with its version for the host, and changes nothing if the partition has it", () => {
  const passed = passOrder(EMPTY_BREAKER_RECORD, { kind: "close" }, 100, 70);
  assert.equal(orderVersion(passed), 70);
  assert.equal(passOrder(passed, { kind: "close" }, 200, 70), passed);
  assert.equal(passOrder(passed, { kind: "close" }, 200, 69), passed);
  assert.equal(orderVersion(passOrder(passed, { kind: "close" }, 200, 71)), 71);
});

test("orders for roles are kept for a day after the last of them ends", () => {
  const held = giveOrder(
    EMPTY_BREAKER_RECORD,
    { kind: "hold", roles: ["landing"], durationUs: 2 * DAY_US, reason: "x" },
    1000,
  );
  assert.equal(held.ordersKeptUntilUs, 1000 + 3 * DAY_US);
  const released = giveOrder(held, { kind: "release", roles: ["landing"] }, 2000);
  assert.equal(released.ordersKeptUntilUs, 1000 + 3 * DAY_US, "until then a process may know only the hold");
  const shorter = giveOrder(
    EMPTY_BREAKER_RECORD,
    { kind: "hold", roles: ["metadata"], durationUs: 10, reason: "x" },
    5,
  );
  assert.equal(shorter.ordersKeptUntilUs, 15 + DAY_US);
  assert.equal(
    restoreOrders(EMPTY_BREAKER_RECORD, held).ordersKeptUntilUs,
    held.ordersKeptUntilUs,
    "also where they are put back",
  );
  assert.equal(giveOrder(released, open(10), 3000).ordersKeptUntilUs, 1000 + 3 * DAY_US);
});

test("only an order that closes or half-opens makes older state of its circuit invalid", () => {
  const before = giveOrder(EMPTY_BREAKER_RECORD, open(900, false, "landing"), 50);
  const closed = giveOrder(before, { kind: "close", circuit: "landing" }, 60);
  assert.equal(isClearedSince(before, EMPTY_BREAKER_RECORD, "landing"), false);
  assert.equal(isClearedSince(closed, before, "landing"), true);
  assert.equal(isClearedSince(closed, closed, "landing"), false);
  assert.equal(isClearedSince(closed, before, "metadata"), false);
  assert.equal(isClearedSince(closed, before), false);
});

test("an order for the host that is written late leaves a circuit with a newer order of its own", () => {
  const opened = giveOrder(EMPTY_BREAKER_RECORD, open(900, false, "landing"), 200);
  const late = giveOrder(opened, { kind: "close" }, 300, 150);
  assert.equal(late.circuits["landing"]?.order?.untilUs, 1100);
  const newer = giveOrder(opened, { kind: "close" }, 300, 250);
  assert.equal(newer.circuits["landing"]?.order, undefined);
  assert.deepEqual(newer.circuits["landing"], {
    ...{ serial: 250, isClosed: true, untilUs: 0, reopened: 0, probes: [], epoch: 250 },
  });
});

test("of two orders to open without replacement the later end counts", () => {
  const { isReplacing: _, ...longer } = open(900) as BreakerOrder & { readonly kind: "open" };
  const opened = giveOrder(EMPTY_BREAKER_RECORD, longer, 10);
  assert.equal(giveOrder(opened, { ...longer, durationUs: 100 }, 20).operatorCooldown.untilUs, 910);
  assert.equal(giveOrder(opened, { ...longer, durationUs: 1000 }, 20).operatorCooldown.untilUs, 1020);
});

test("a record without orders has the version 0", () => {
  const failed = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 900, reopened: 0 }, 1);
  assert.deepEqual(
    [undefined, "metadata", "landing"].map(circuit => orderVersion(failed, circuit)),
    [0, 0, 0],
  );
});

test("an order to open one circuit is not covered by a longer one for the host", () => {
  const host = giveOrder(EMPTY_BREAKER_RECORD, open(900), 10);
  const both = giveOrder(host, open(100, false, "landing"), 20);
  assert.equal(both.circuits["landing"]?.order?.untilUs, 120);
});

test("of two orders to open with the same end the first keeps its reason", () => {
  const first = giveOrder(EMPTY_BREAKER_RECORD, open(900), 10);
  const second = giveOrder(first, { kind: "open", durationUs: 890, reason: "other" }, 20);
  assert.equal(second.operatorCooldown.reason, "cli-open:x");
});

test("a circuit in a record of an older version was opened at its last change, unless an operator half-opened it", () => {
  const circuit = { serial: 200, isClosed: false, untilUs: 900, reopened: 0, probes: [] };
  const isOpenAfterLateClose = (known: object) => {
    const record: BreakerRecord = { ...EMPTY_BREAKER_RECORD, circuits: { metadata: { ...circuit, ...known } } };
    return giveOrder(record, { kind: "close", circuit: "metadata" }, 960, 150).circuits["metadata"]?.isClosed === false;
  };
  assert.equal(isOpenAfterLateClose({}), true);
  assert.equal(isOpenAfterLateClose({ epoch: 100 }), false);
});
