import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { leaseSlots, type SharedSlots, slotsExpiryUs, WAITING_TTL_US } from "./shared-slots.ts";

const LEASE_US = 30_000_000;

/** Several processes at one store, with the slots that each process counts for itself. */
class SlotStore {
  slots: SharedSlots = {};
  nowUs = 1;

  lease(processId: string, wanted: number, returned = 0, limit = 3): number {
    const holds = Math.max(0, this.heldBy(processId) - returned);
    const reply = leaseSlots(this.slots, processId, { wanted, holds, limit }, this.nowUs, LEASE_US);
    this.slots = reply.slots;
    return reply.given;
  }

  heldBy(processId: string): number {
    return this.slots[processId]?.held ?? 0;
  }
}

test("slots are leased until none is free, and again after one was returned", () => {
  const store = new SlotStore();
  assert.equal(store.lease("a", 2), 2);
  assert.equal(store.lease("b", 2), 1);
  assert.equal(store.lease("a", 1), 0);
  assert.equal(store.lease("b", 0, 1), 0);
  assert.equal(store.lease("a", 1), 1);
});

test("the reply to a process without a slot counts the waiting processes that get one before it", () => {
  let { slots } = leaseSlots({}, "holder", { wanted: 1, holds: 0, limit: 1 }, 1, LEASE_US);
  const counts = ["a", "b", "c", "b"].map((name, index) => {
    const reply = leaseSlots(slots, name, { wanted: 1, holds: 0, limit: 1 }, index + 2, LEASE_US);
    slots = reply.slots;
    return reply.before;
  });
  assert.deepEqual(counts, [0, 1, 2, 1]);
  assert.equal(leaseSlots(slots, "holder", { wanted: 1, holds: 1, limit: 1 }, 9, LEASE_US).before, 3);
});

test("the slots of a process that is reported dead are free at once", () => {
  const { slots } = leaseSlots({}, "dead", { wanted: 3, holds: 0, limit: 3 }, 1, LEASE_US);
  const request = { wanted: 2, holds: 0, limit: 3 };
  assert.equal(leaseSlots(slots, "a", request, 2, LEASE_US).given, 0);
  const { slots: left, given } = leaseSlots(slots, "a", { ...request, dead: ["dead"] }, 2, LEASE_US);
  assert.equal(given, 2);
  assert.deepEqual(Object.keys(left), ["a"]);
});

test("a free slot goes to the process with fewer slots, then to the one that waited longer", () => {
  const store = new SlotStore();
  assert.equal(store.lease("a", 3), 3);
  assert.equal(store.lease("b", 1), 0);
  store.nowUs += 10;
  assert.equal(store.lease("c", 1), 0);
  assert.equal(store.lease("a", 1, 1), 0, "a has two, and the others none");
  assert.equal(store.lease("c", 1), 0, "b came first");
  assert.equal(store.lease("b", 1), 1);
  assert.equal(store.lease("a", 0, 1), 0);
  assert.equal(store.lease("c", 1), 1);
});

test("a process that does not request again loses its precedence", () => {
  const store = new SlotStore();
  store.lease("a", 3);
  store.lease("b", 1);
  store.nowUs += 2 * WAITING_TTL_US;
  assert.equal(store.lease("a", 1, 1), 1);
});

test("a waiting process that repeats its request leaves the slots as they are, and keeps its precedence", () => {
  const store = new SlotStore();
  store.lease("a", 3);
  store.lease("b", 1);
  const { slots } = store;
  store.nowUs += 0.8 * WAITING_TTL_US;
  assert.equal(store.lease("b", 1), 0);
  assert.equal(store.slots, slots);
  store.nowUs += 0.8 * WAITING_TTL_US;
  assert.equal(store.lease("b", 1), 0);
  assert.notEqual(store.slots, slots);
  store.nowUs += 0.8 * WAITING_TTL_US;
  assert.equal(store.lease("a", 1, 1), 0);
  assert.equal(store.lease("b", 1), 1);
});

test("a process that requests again after it lost its precedence waits behind the others", () => {
  const store = new SlotStore();
  assert.equal(store.lease("a", 3), 3);
  assert.equal(store.lease("b", 1), 0);
  store.nowUs += 2 * WAITING_TTL_US;
  assert.equal(store.lease("c", 1), 0);
  store.nowUs += 1;
  assert.equal(store.lease("b", 1), 0);
  assert.equal(store.lease("a", 0, 1), 0);
  assert.equal(store.lease("b", 1), 0, "c has waited longer");
  assert.equal(store.lease("c", 1), 1);
});

test("a process that does not renew its lease loses its slots when the lease ends", () => {
  const store = new SlotStore();
  store.lease("a", 3);
  store.nowUs += LEASE_US - 1;
  assert.equal(store.lease("b", 1), 0);
  store.nowUs += 1;
  assert.equal(store.lease("b", 3), 3);
});

test("a process that renews its lease keeps its slots", () => {
  const store = new SlotStore();
  store.lease("a", 3);
  store.nowUs += LEASE_US - 1;
  store.lease("a", 0);
  store.nowUs += LEASE_US - 1;
  assert.equal(store.lease("b", 1), 0);
});

test("the slots that a process reports count, also when the store has lost them", () => {
  const { slots, given } = leaseSlots({}, "a", { holds: 2, wanted: 3, limit: 3 }, 1, LEASE_US);
  assert.equal(given, 1);
  assert.equal(slots["a"]?.held, 3);
});

test("the smaller of two limits applies while its process is live", () => {
  const store = new SlotStore();
  assert.equal(store.lease("a", 1, 0, 1), 1);
  assert.equal(store.lease("b", 2, 0, 3), 0);
  assert.equal(store.lease("a", 0, 1, 1), 0);
  assert.equal(store.lease("b", 2, 0, 3), 2);
});

test("no record is left when no process holds or requests a slot", () => {
  const store = new SlotStore();
  store.lease("a", 1);
  assert.equal(slotsExpiryUs(store.slots, store.nowUs), store.nowUs + LEASE_US);
  store.lease("a", 0, 1);
  assert.deepEqual(store.slots, {});
});

test("never more slots are leased than exist, and a process that keeps requesting gets one", () => {
  const step = fc.record({
    processId: fc.constantFrom("a", "b", "c", "d"),
    wanted: fc.integer({ min: 0, max: 4 }),
    returnable: fc.integer({ min: 0, max: 3 }),
    waitUs: fc.constantFrom(0, 1000, 400_000, 1_200_000),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (steps, limit) => {
      const store = new SlotStore();
      const held = new Map<string, number>();
      for (const { processId, wanted, returnable, waitUs } of steps) {
        store.nowUs += waitUs;
        const returned = Math.min(returnable, held.get(processId) ?? 0);
        const given = store.lease(processId, wanted, returned, limit);
        held.set(processId, (held.get(processId) ?? 0) - returned + given);
        assert.ok([...held.values()].reduce((sum, one) => sum + one, 0) <= limit);
        for (const [name, own] of held) assert.equal(store.heldBy(name), own);
      }
      // All processes return their slots in turn and request again: each of them gets one.
      const served = new Set<string>();
      for (let round = 0; round < 8; round += 1) {
        for (const processId of ["a", "b", "c", "d"]) {
          store.nowUs += 100_000;
          const returned = held.get(processId) ?? 0;
          const given = store.lease(processId, 1, returned, limit);
          held.set(processId, given);
          if (given > 0) served.add(processId);
        }
      }
      assert.equal(served.size, 4);
    }),
  );
});
