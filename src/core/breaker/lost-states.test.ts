import assert from "node:assert/strict";
import { test } from "node:test";
import { giveOrder } from "./breaker-order.ts";
import { circuitRecordOf, closeCircuit, EMPTY_BREAKER_RECORD, openCircuit, setCooldown } from "./breaker-record.ts";
import { restoreLost } from "./lost-states.ts";

const OPEN = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 1000, reopened: 0 }, 10);
const COOLING = setCooldown(EMPTY_BREAKER_RECORD, "serverCooldown", { untilUs: 1000, reason: "retry-after" }, 10, 10);

test("a circuit and a cooldown that the store has lost are put back", () => {
  assert.deepEqual(
    circuitRecordOf(restoreLost(EMPTY_BREAKER_RECORD, OPEN), "metadata"),
    circuitRecordOf(OPEN, "metadata"),
  );
  assert.deepEqual(restoreLost(EMPTY_BREAKER_RECORD, COOLING).serverCooldown, COOLING.serverCooldown);
});

test("a record that is as new as what the process knows, or newer, stays as it is", () => {
  const longer = openCircuit(OPEN, "metadata", { untilUs: 2000, reopened: 1 }, 20);
  assert.equal(restoreLost(OPEN, OPEN), OPEN);
  assert.equal(restoreLost(longer, OPEN), longer);
  assert.equal(restoreLost(OPEN, EMPTY_BREAKER_RECORD), OPEN);
});

test("a circuit that was closed, and what an operator has closed since, is not put back", () => {
  const probing = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 5, reopened: 0 }, 1);
  const closed = closeCircuit(
    {
      ...probing,
      circuits: { metadata: { ...circuitRecordOf(probing, "metadata"), probes: [{ id: "p", expiresUs: 90 }] } },
    },
    "metadata",
    "p",
    20,
  );
  assert.ok(circuitRecordOf(closed, "metadata").isClosed);
  assert.equal(restoreLost(EMPTY_BREAKER_RECORD, closed), EMPTY_BREAKER_RECORD);
  const ordered = giveOrder(EMPTY_BREAKER_RECORD, { kind: "close" }, 5);
  for (const known of [OPEN, COOLING]) assert.equal(restoreLost(ordered, known), ordered);
});

test("a circuit that was opened after an order that the store has lost stays open", () => {
  const ordered = giveOrder(OPEN, { kind: "close" }, 20);
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 2000, reopened: 0 }, 30);
  const restored = restoreLost(opened, ordered);
  assert.equal(restored.epoch, ordered.epoch);
  assert.deepEqual(circuitRecordOf(restored, "metadata"), circuitRecordOf(opened, "metadata"));
});

test("an order that was given since the store has lost an open circuit stays when the circuit is put back", () => {
  const order = { kind: "open", circuit: "metadata", durationUs: 5000, reason: "cli-open:x" } as const;
  const ordered = giveOrder(EMPTY_BREAKER_RECORD, order, 20);
  const restored = circuitRecordOf(restoreLost(ordered, OPEN), "metadata");
  assert.deepEqual(restored, {
    ...circuitRecordOf(OPEN, "metadata"),
    order: { serial: 20, untilUs: 5020, reason: "cli-open:x" },
  });
});
