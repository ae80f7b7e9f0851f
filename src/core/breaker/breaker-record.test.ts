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

test("the later of two cooldowns wins, whichever was recorded first", () => {
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

test("a success ends the server cooldown it knew of, no later one, and never an operator's", () => {
  const cooled = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "retry-after" }, 1);
  const later = setCooldown(cooled, "serverCooldown", { untilUs: 900, reason: "retry-after" }, 2);
  assert.equal(endServerCooldown(cooled, cooled.serverCooldown.serial, 3).serverCooldown.untilUs, 0);
  assert.equal(endServerCooldown(later, cooled.serverCooldown.serial, 3), later);
  const opened = setCooldown(cooled, "operatorCooldown", { untilUs: 700, reason: "cli-open:x" }, 4);
  assert.equal(runningCooldown(endServerCooldown(opened, opened.serverCooldown.serial, 5), 6)?.reason, "cli-open:x");
});

test("opening a circuit that is already open keeps the later end", () => {
  assert.equal(openCircuit(OPEN, "metadata", { untilUs: 900, reopened: 0 }, 20), OPEN);
  const longer = circuitRecordOf(openCircuit(OPEN, "metadata", { untilUs: 1200, reopened: 2 }, 20), "metadata");
  assert.equal(longer.untilUs, 1200);
  assert.equal(longer.reopened, 2);
});

test("no probe is leased while a circuit is open or closed, and never more than trial_calls", () => {
  assert.equal(leaseProbe(OPEN, "metadata", probe("a"), 1, 999), OPEN);
  const tried = leaseProbe(OPEN, "metadata", probe("a"), 1, 1000);
  assert.equal(circuitRecordOf(tried, "metadata").probes.length, 1);
  assert.equal(leaseProbe(tried, "metadata", probe("b"), 1, 1000), tried);
  const closed = closeCircuit(tried, "metadata", "a", 1001);
  assert.equal(circuitRecordOf(closed, "metadata").isClosed, true);
  assert.equal(leaseProbe(closed, "metadata", probe("b"), 1, 1002), closed);
});

test("an expired or returned probe lease makes room for another probe", () => {
  const tried = leaseProbe(OPEN, "metadata", probe("a", 2000), 1, 1000);
  assert.deepEqual(
    circuitRecordOf(leaseProbe(tried, "metadata", probe("b", 3000), 1, 2000), "metadata").probes.map(({ id }) => id),
    ["b"],
  );
  const returned = returnProbeLease(tried, "metadata", "a", 1500);
  assert.notEqual(leaseProbe(returned, "metadata", probe("b"), 1, 1600), returned);
});

test("a probe from before the circuit was opened again does not close it", () => {
  const tried = leaseProbe(OPEN, "metadata", probe("a"), 2, 1000);
  const reopened = openCircuit(tried, "metadata", { untilUs: 3000, reopened: 1 }, 1100);
  assert.equal(closeCircuit(reopened, "metadata", "a", 1200), reopened);
});

test("a circuit that the store has lost counts as half-open", () => {
  const found = circuitRecordOf(leaseProbe(EMPTY_BREAKER_RECORD, "metadata", probe("a"), 1, 7), "metadata");
  assert.equal(found.isClosed, false);
  assert.equal(found.probes.length, 1);
});

test("closing by an operator ends all cooldowns and circuits and raises the epoch", () => {
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

test("every change gets a new serial, also after the store lost its data", () => {
  const cooled = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "" }, 100);
  const again = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 500, reason: "" }, 200);
  assert.notEqual(cooled.serverCooldown.serial, again.serverCooldown.serial);
  assert.ok(
    endServerCooldown(cooled, cooled.serverCooldown.serial, 0).serverCooldown.serial > cooled.serverCooldown.serial,
  );
});

test("a record is kept for 15 minutes after its last deadline", () => {
  const host = setCooldown(OPEN, "serverCooldown", { untilUs: 50_000, reason: "" }, 20);
  assert.equal(breakerRecordExpiryUs(host, 30), 50_000 + 900_000_000);
});

test("an open time that is longer than possible is over for a process that asks to probe, and for all others then", () => {
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 5000, reopened: 0 }, 4000);
  assert.equal(leaseProbe(opened, "metadata", probe("a"), 1, 100, 4900), opened);
  // The clock of the store was set back.
  const probing = circuitRecordOf(leaseProbe(opened, "metadata", probe("a"), 1, 100, 1000), "metadata");
  assert.deepEqual([probing.isClosed, probing.untilUs, probing.probes.length], [false, 100, 1]);
});

test("an empty record has no versions", () => {
  const nothing = { serial: 0, untilUs: 0, reason: "" };
  const empty = { epoch: 0, serverCooldown: nothing, operatorCooldown: nothing, circuits: {} };
  assert.deepEqual(EMPTY_BREAKER_RECORD, empty);
  const closed = { serial: 0, isClosed: true, untilUs: 0, reopened: 0, probes: [] };
  assert.deepEqual(circuitRecordOf(EMPTY_BREAKER_RECORD, "metadata"), closed);
});

test("a circuit that is open keeps the larger number of failed trial calls, and a closed one takes that of the report", () => {
  const twice = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 100, reopened: 2 }, 10);
  assert.equal(circuitRecordOf(twice, "metadata").reopened, 2);
  const later = openCircuit(twice, "metadata", { untilUs: 200, reopened: 1 }, 20);
  assert.equal(circuitRecordOf(later, "metadata").reopened, 2);
  const closed = closeCircuit(leaseProbe(later, "metadata", probe("p"), 1, 200), "metadata", "p", 210);
  const again = openCircuit(closed, "metadata", { untilUs: 300, reopened: 0 }, 220);
  assert.equal(circuitRecordOf(again, "metadata").reopened, 0);
});

test("a change that changes nothing returns the same record", () => {
  assert.equal(openCircuit(OPEN, "metadata", { untilUs: 1000, reopened: 5 }, 20), OPEN);
  assert.equal(returnProbeLease(OPEN, "metadata", "p", 20), OPEN);
  const cooled = setCooldown(OPEN, "serverCooldown", { untilUs: 900, reason: "retry-after" }, 100);
  assert.equal(setCooldown(cooled, "serverCooldown", { untilUs: 900, reason: "other" }, 100), cooled);
  assert.equal(setCooldown(OPEN, "serverCooldown", { untilUs: 900, reason: "retry-after" }, 900), OPEN);
  const ended = endServerCooldown(cooled, cooled.serverCooldown.serial, 200);
  assert.equal(endServerCooldown(ended, ended.serverCooldown.serial, 300), ended);
});

test("a record is kept until the last of its probes would have ended, and 15 minutes longer", () => {
  const probing = leaseProbe(OPEN, "metadata", probe("p", 7000), 1, 2000);
  assert.equal(breakerRecordExpiryUs(probing, 2000), 7000 + 900_000_000);
  assert.equal(breakerRecordExpiryUs(OPEN, 20), 1000 + 900_000_000);
});
