import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type SharedSlots, slotsForgettableUs, tradeSlots } from "./shared-slots.ts";

const LEASE_US = 30_000_000;

/** Several parties at one store, with what each believes to hold. */
class Table {
  slots: SharedSlots = {};
  nowUs = 1;

  trade(party: string, wanted: number, returned = 0, limit = 3): number {
    const holds = Math.max(0, this.heldBy(party) - returned);
    const traded = tradeSlots(this.slots, party, { wanted, holds, limit }, this.nowUs, LEASE_US);
    this.slots = traded.slots;
    return traded.given;
  }

  heldBy(party: string): number {
    return this.slots[party]?.held ?? 0;
  }
}

test("slots are given until there are no more, and again when one has come back", () => {
  const table = new Table();
  assert.equal(table.trade("a", 2), 2);
  assert.equal(table.trade("b", 2), 1);
  assert.equal(table.trade("a", 1), 0);
  assert.equal(table.trade("b", 0, 1), 0);
  assert.equal(table.trade("a", 1), 1);
});

test("what is free is kept for whoever has less, and then for whoever has waited longer", () => {
  const table = new Table();
  assert.equal(table.trade("a", 3), 3);
  assert.equal(table.trade("b", 1), 0);
  table.nowUs += 10;
  assert.equal(table.trade("c", 1), 0);
  assert.equal(table.trade("a", 1, 1), 0, "a has two, and the others none");
  assert.equal(table.trade("c", 1), 0, "b came first");
  assert.equal(table.trade("b", 1), 1);
  assert.equal(table.trade("a", 0, 1), 0);
  assert.equal(table.trade("c", 1), 1);
});

test("one who does not come back for it is not waited for", () => {
  const table = new Table();
  table.trade("a", 3);
  table.trade("b", 1);
  table.nowUs += 1_000_000;
  assert.equal(table.trade("a", 1, 1), 1);
});

test("a party that is not heard of loses what it has when its lease is over", () => {
  const table = new Table();
  table.trade("a", 3);
  table.nowUs += LEASE_US - 1;
  assert.equal(table.trade("b", 1), 0);
  table.nowUs += 1;
  assert.equal(table.trade("b", 3), 3);
});

test("a party that says it is alive keeps what it has", () => {
  const table = new Table();
  table.trade("a", 3);
  table.nowUs += LEASE_US - 1;
  table.trade("a", 0);
  table.nowUs += LEASE_US - 1;
  assert.equal(table.trade("b", 1), 0);
});

test("what a party says it has counts, also where the store has lost it", () => {
  const { slots, given } = tradeSlots({}, "a", { holds: 2, wanted: 3, limit: 3 }, 1, LEASE_US);
  assert.equal(given, 1);
  assert.equal(slots["a"]?.held, 3);
});

test("of two limits the smaller counts while the party that has it is there", () => {
  const table = new Table();
  assert.equal(table.trade("a", 1, 0, 1), 1);
  assert.equal(table.trade("b", 2, 0, 3), 0);
  assert.equal(table.trade("a", 0, 1, 1), 0);
  assert.equal(table.trade("b", 2, 0, 3), 2);
});

test("when nobody holds or wants anything there is nothing left to remember", () => {
  const table = new Table();
  table.trade("a", 1);
  assert.equal(slotsForgettableUs(table.slots, table.nowUs), table.nowUs + LEASE_US);
  table.trade("a", 0, 1);
  assert.deepEqual(table.slots, {});
});

test("never more slots are out than there are, and whoever keeps asking gets one", () => {
  const act = fc.record({
    party: fc.constantFrom("a", "b", "c", "d"),
    wanted: fc.integer({ min: 0, max: 4 }),
    back: fc.integer({ min: 0, max: 3 }),
    waitUs: fc.constantFrom(0, 1000, 400_000, 1_200_000),
  });
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), fc.integer({ min: 1, max: 5 }), (acts, limit) => {
      const table = new Table();
      const held = new Map<string, number>();
      for (const { party, wanted, back, waitUs } of acts) {
        table.nowUs += waitUs;
        const returned = Math.min(back, held.get(party) ?? 0);
        const given = table.trade(party, wanted, returned, limit);
        held.set(party, (held.get(party) ?? 0) - returned + given);
        assert.ok([...held.values()].reduce((sum, one) => sum + one, 0) <= limit);
        for (const [name, own] of held) assert.equal(table.heldBy(name), own);
      }
      // Everybody gives back in turn and asks again: nobody is left out.
      const served = new Set<string>();
      for (let round = 0; round < 8; round += 1) {
        for (const party of ["a", "b", "c", "d"]) {
          table.nowUs += 100_000;
          const returned = held.get(party) ?? 0;
          const given = table.trade(party, 1, returned, limit);
          held.set(party, given);
          if (given > 0) served.add(party);
        }
      }
      assert.equal(served.size, 4);
    }),
  );
});
