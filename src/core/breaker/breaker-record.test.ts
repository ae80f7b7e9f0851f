import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  breakerRecordExpiryUs,
  circuitRecordOf,
  clearBreakerRecord,
  closeCircuit,
  EMPTY_BREAKER_RECORD,
  endServerCooldown,
  leaseProbe,
  openCircuit,
  returnProbeLease,
  runningCooldown,
  setCooldown,
} from "./breaker-record.ts";

const OPEN = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 1000, reopened: 0 }, 10);
const probe = (id: string, expiresUs = 5000) => ({ id, expiresUs });

test("of two cooldowns the one that ends later counts, and the order of words does not matter", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 1 }), untils => {
      const host = untils.reduce(
        (sum, untilUs) => setCooldown(sum, "serverCooldown", { untilUs, reason: `${untilUs}` }, 0),
        EMPTY_BREAKER_RECORD,
      );
      assert.equal(host.serverCooldown.untilUs, Math.max(...untils));
      assert.equal(runningCooldown(host, 0)?.reason, String(Math.max(...untils)));
      assert.equal(runningCooldown(host, Math.max(...untils)), undefined);
    }),
  );
});

test("a success ends the cooldown it knew of, no later one, and never an order", () => {
  const asked = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "retry-after" }, 1);
  const later = setCooldown(asked, "serverCooldown", { untilUs: 900, reason: "retry-after" }, 2);
  assert.equal(endServerCooldown(asked, asked.serverCooldown.serial, 3).serverCooldown.untilUs, 0);
  assert.equal(endServerCooldown(later, asked.serverCooldown.serial, 3), later);
  const ordered = setCooldown(asked, "operatorCooldown", { untilUs: 700, reason: "cli-open:x" }, 4);
  assert.equal(runningCooldown(endServerCooldown(ordered, ordered.serverCooldown.serial, 5), 6)?.reason, "cli-open:x");
});

test("a circuit that is open already stays so for the longer of the two", () => {
  assert.equal(openCircuit(OPEN, "metadata", { untilUs: 900, reopened: 0 }, 20), OPEN);
  const longer = circuitRecordOf(openCircuit(OPEN, "metadata", { untilUs: 1200, reopened: 2 }, 20), "metadata");
  assert.equal(longer.untilUs, 1200);
  assert.equal(longer.reopened, 2);
});

test("there is no probe while a circuit is open or closed, and never more than it may have", () => {
  assert.equal(leaseProbe(OPEN, "metadata", probe("a"), 1, 999), OPEN);
  const tried = leaseProbe(OPEN, "metadata", probe("a"), 1, 1000);
  assert.equal(circuitRecordOf(tried, "metadata").probes.length, 1);
  assert.equal(leaseProbe(tried, "metadata", probe("b"), 1, 1000), tried);
  const closed = closeCircuit(tried, "metadata", "a", 1001);
  assert.equal(circuitRecordOf(closed, "metadata").isClosed, true);
  assert.equal(leaseProbe(closed, "metadata", probe("b"), 1, 1002), closed);
});

test("a probe whose lease is over, or that has come back, leaves its place to another", () => {
  const tried = leaseProbe(OPEN, "metadata", probe("a", 2000), 1, 1000);
  assert.deepEqual(
    circuitRecordOf(leaseProbe(tried, "metadata", probe("b", 3000), 1, 2000), "metadata").probes.map(({ id }) => id),
    ["b"],
  );
  const returned = returnProbeLease(tried, "metadata", "a", 1500);
  assert.notEqual(leaseProbe(returned, "metadata", probe("b"), 1, 1600), returned);
});

test("a success of a probe from before the circuit was opened anew closes nothing", () => {
  const tried = leaseProbe(OPEN, "metadata", probe("a"), 2, 1000);
  const reopened = openCircuit(tried, "metadata", { untilUs: 3000, reopened: 1 }, 1100);
  assert.equal(closeCircuit(reopened, "metadata", "a", 1200), reopened);
});

test("whoever asks about a circuit that the store has lost is taken at its word that it is half-open", () => {
  const found = circuitRecordOf(leaseProbe(EMPTY_BREAKER_RECORD, "metadata", probe("a"), 1, 7), "metadata");
  assert.equal(found.isClosed, false);
  assert.equal(found.probes.length, 1);
});

test("an operator's closing ends everything and is another epoch", () => {
  const host = setCooldown(
    leaseProbe(OPEN, "metadata", probe("a"), 1, 1000),
    "operatorCooldown",
    { untilUs: 9000, reason: "cli-open:" },
    1001,
  );
  const closed = clearBreakerRecord(host, 1002);
  assert.notEqual(closed.epoch, host.epoch);
  assert.equal(runningCooldown(closed, 1003), undefined);
  assert.equal(circuitRecordOf(closed, "metadata").isClosed, true);
});

test("every change has a serial of its own, also after everything was lost", () => {
  const asked = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "" }, 100);
  const again = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "" }, 200);
  assert.notEqual(asked.serverCooldown.serial, again.serverCooldown.serial);
  assert.ok(
    endServerCooldown(asked, asked.serverCooldown.serial, 0).serverCooldown.serial > asked.serverCooldown.serial,
  );
});

test("it is remembered for a while after its last deadline", () => {
  const host = setCooldown(OPEN, "serverCooldown", { untilUs: 50_000, reason: "" }, 20);
  assert.equal(breakerRecordExpiryUs(host, 30), 50_000 + 900_000_000);
});
