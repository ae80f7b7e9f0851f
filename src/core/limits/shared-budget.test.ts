import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { BudgetClaim } from "./budget-claim.ts";
import { emptyTables } from "./budget-tables.ts";
import { type BudgetState, SharedBudget } from "./shared-budget.ts";

const SECOND = 1_000_000;
const LEASE = 30 * SECOND;

function claimOf(...rates: readonly (readonly [limit: number, windowUs: number])[]): BudgetClaim {
  return { windows: rates.map(([limit, windowUs]) => ({ limit, windowUs, spanUs: windowUs })), spacingUs: 0 };
}

/** The calls that a store makes for one request. */
function requestUnits(
  budget: SharedBudget,
  process: string,
  claim: BudgetClaim,
  most: number,
  nowUs: number,
  least = 1,
): number {
  budget.join(process, claim, nowUs + LEASE, nowUs);
  const { units } = budget.offer(process, claim, { least, most }, nowUs);
  if (units > 0) budget.reserve(process, units, nowUs);
  const dueUs = budget.dueUs(process, least, nowUs);
  budget.setWaiting(process, units < most ? { least, most } : undefined, Math.max(nowUs, dueUs), nowUs);
  return units;
}

test("units leased to one process are not available to others until the window has passed since the write", () => {
  const budget = new SharedBudget();
  const claim = claimOf([3, SECOND]);
  assert.equal(requestUnits(budget, "a", claim, 2, 0), 2);
  assert.equal(requestUnits(budget, "b", claim, 2, 0), 1);
  assert.equal(requestUnits(budget, "b", claim, 1, 900_000), 0);
  budget.settle("a", 2, 0, 900_000);
  budget.settle("b", 0, 1, 900_000);
  budget.setWaiting("b", undefined, 900_000, 900_000);
  assert.equal(requestUnits(budget, "c", claim, 3, 900_000), 1);
  assert.equal(requestUnits(budget, "c", claim, 3, 1_899_999), 0);
  assert.equal(requestUnits(budget, "c", claim, 3, 1_900_000), 2);
});

test("the units of a dead process count as written when its lease ends, not before", () => {
  const budget = new SharedBudget();
  const claim = claimOf([1, SECOND]);
  assert.equal(requestUnits(budget, "a", claim, 1, 0), 1);
  assert.equal(requestUnits(budget, "b", claim, 1, LEASE - 1), 0);
  assert.equal(requestUnits(budget, "b", claim, 1, LEASE), 0, "it counts as written at the end of the lease");
  assert.equal(requestUnits(budget, "b", claim, 1, LEASE + SECOND), 1);
  // A process that returns after its lease ended: its old units were counted already.
  budget.settle("a", 1, 0, LEASE + SECOND);
  budget.settle("b", 0, 1, LEASE + SECOND);
  assert.equal(requestUnits(budget, "c", claim, 1, LEASE + SECOND), 1);
});

test("the units of a process that is reported dead count as written then, and its claim and its turn end", () => {
  const budget = new SharedBudget();
  const [claim, stricter] = [claimOf([3, SECOND]), claimOf([2, SECOND])];
  assert.equal(requestUnits(budget, "a", stricter, 2, 0), 2);
  assert.equal(requestUnits(budget, "a", stricter, 1, 0), 0, "it waits for its turn");
  budget.settle("a", 1, 0, 500_000);
  budget.join("b", claim, 600_000 + LEASE, 600_000, ["a", "unknown", "b"]);
  assert.deepEqual(budget.usedUnits(claim, 600_000), [2]);
  assert.equal(budget.isStricterThan(claim), false);
  assert.equal(budget.othersWait("b"), false);
  assert.equal(requestUnits(budget, "b", claim, 3, 600_000), 1);
  budget.settle("b", 0, 1, 600_000);
  assert.deepEqual(budget.usedUnits(claim, 1_599_999), [1], "the one that was leased counts from the report on");
  assert.deepEqual(budget.usedUnits(claim, 1_600_000), [0]);
  // It was not dead after all: what it settles was counted already.
  budget.settle("a", 1, 0, 1_600_000);
  assert.deepEqual(budget.usedUnits(claim, 1_600_000), [0]);
});

test("the stricter of two policies applies for as long as its process lives", () => {
  const budget = new SharedBudget();
  const loose = claimOf([10, SECOND]);
  const strict = claimOf([2, SECOND], [5, 60 * SECOND]);
  assert.equal(requestUnits(budget, "a", loose, 1, 0), 1);
  budget.settle("a", 1, 0, 0);
  assert.equal(budget.isStricterThan(loose), false);
  assert.equal(requestUnits(budget, "b", strict, 9, 0), 1);
  assert.equal(budget.isStricterThan(loose), true);
  assert.equal(budget.isStricterThan(strict), false);
  budget.settle("b", 1, 0, 0);
  budget.setWaiting("b", undefined, 0, 0);
  assert.equal(requestUnits(budget, "a", loose, 9, LEASE - 1), 2);
  budget.settle("a", 2, 0, LEASE - 1);
  assert.equal(requestUnits(budget, "a", loose, 20, LEASE + 2 * SECOND), 10);
});

test("while others are waiting a process gets at most its share, and all take turns", () => {
  const budget = new SharedBudget();
  const claim = claimOf([8, SECOND]);
  const got = { a: 0, b: 0, c: 0, d: 0 };
  const names = ["a", "b", "c", "d"] as const;
  // All processes request every millisecond in the same order: without turns the first would get everything.
  for (let nowUs = 0; nowUs < 20 * SECOND; nowUs += 1000) {
    for (const name of names) {
      const given = requestUnits(budget, name, claim, 50, nowUs);
      budget.settle(name, given, 0, nowUs);
      got[name] += given;
    }
  }
  const all = Object.values(got);
  const mean = all.reduce((sum, n) => sum + n, 0) / all.length;
  assert.ok(Math.max(...all) - Math.min(...all) <= mean / 4, JSON.stringify(got));
  assert.ok(mean * 4 >= 8 * 19, "nothing is lost by it");
});

test("the state is the same after a dump and a restore", () => {
  const claim = claimOf([3, SECOND], [250, 60 * SECOND]);
  const direct = new SharedBudget();
  let kept: BudgetState | undefined;
  const tables = emptyTables();
  for (let step = 0; step < 400; step += 1) {
    const nowUs = step * 137_000;
    const name = `p${step % 3}`;
    const read = new SharedBudget(kept === undefined ? undefined : structuredClone(kept), tables);
    const given = requestUnits(direct, name, claim, 1 + (step % 2), nowUs);
    assert.equal(requestUnits(read, name, claim, 1 + (step % 2), nowUs), given);
    direct.settle(name, given, 0, nowUs + 1);
    read.settle(name, given, 0, nowUs + 1);
    kept = read.dump();
  }
});

test("never more than the limit is written in any window over all processes, with deaths, returns and stalls", () => {
  const step = fc.record({
    process: fc.constantFrom("a", "b", "c"),
    kind: fc.constantFrom("request", "request", "request", "write", "write", "return", "die"),
    units: fc.integer({ min: 1, max: 4 }),
    afterUs: fc.integer({ min: 0, max: 700_000 }),
  });
  const rates = fc.array(fc.tuple(fc.integer({ min: 4, max: 9 }), fc.constantFrom(SECOND, 3 * SECOND, 10 * SECOND)), {
    minLength: 1,
    maxLength: 2,
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 120 }), rates, (steps, limits) => {
      const budget = new SharedBudget();
      const byLength = new Map(limits.map(([limit, windowUs]) => [windowUs, limit]));
      const claim = claimOf(...Array.from(byLength, ([windowUs, limit]) => [limit, windowUs] as const));
      const held = new Map<string, { units: number; leaseUs: number }>();
      const writtenUs: number[] = [];
      let nowUs = 0;
      for (const { process, kind, units, afterUs } of steps) {
        nowUs += afterUs;
        const mine = held.get(process);
        if (kind === "request") {
          const given = requestUnits(budget, process, claim, units + 2, nowUs, units);
          assert.ok(given === 0 || given >= units);
          const left = mine !== undefined && mine.leaseUs > nowUs ? mine.units : 0;
          held.set(process, { units: left + given, leaseUs: nowUs + LEASE });
        } else if (mine !== undefined && mine.leaseUs > nowUs && kind !== "die") {
          const some = Math.min(units, mine.units);
          if (kind === "write") for (let unit = 0; unit < some; unit += 1) writtenUs.push(nowUs);
          budget.settle(process, kind === "write" ? some : 0, kind === "return" ? some : 0, nowUs);
          mine.units -= some;
        } else if (kind === "die") held.delete(process);
      }
      for (const { limit, windowUs } of claim.windows) {
        for (const fromUs of writtenUs) {
          const inside = writtenUs.filter(us => us >= fromUs && us < fromUs + windowUs).length;
          assert.ok(inside <= limit, `${inside} of ${limit} in ${windowUs}`);
        }
      }
    }),
    { numRuns: 2000 },
  );
});

test("two processes that wait for a slow rate take turns, even if one always asks first", () => {
  const budget = new SharedBudget();
  const claim = claimOf([1, 3 * SECOND]);
  const got = { a: 0, b: 0 };
  const nextUs = { a: 0, b: 10 };
  for (let nowUs = 0; nowUs < 60 * SECOND; nowUs += 10) {
    for (const name of ["a", "b"] as const) {
      if (nowUs < nextUs[name]) continue;
      const given = requestUnits(budget, name, claim, 50, nowUs);
      budget.settle(name, given, 0, nowUs);
      nextUs[name] = Math.max(nowUs + 10, budget.dueUs(name, 1, nowUs));
      got[name] += given;
    }
  }
  assert.ok(Math.abs(got.a - got.b) <= 2 && got.a + got.b >= 19, JSON.stringify(got));
});

test("what a process used before a second one started waiting gives neither of them priority", () => {
  const budget = new SharedBudget();
  const claim = claimOf([10, SECOND]);
  const got = { a: 0, b: 0 };
  for (let nowUs = 0; nowUs < 100 * SECOND; nowUs += 100_000) {
    budget.settle("a", requestUnits(budget, "a", claim, 1, nowUs), 0, nowUs);
  }
  for (let nowUs = 100 * SECOND; nowUs < 120 * SECOND; nowUs += 1000) {
    for (const name of ["b", "a"] as const) {
      const given = requestUnits(budget, name, claim, 50, nowUs);
      budget.settle(name, given, 0, nowUs);
      got[name] += given;
    }
  }
  assert.ok(Math.abs(got.a - got.b) <= 20, JSON.stringify(got));
});

test("a budget with units of dead processes only expires one window after the end of their lease", () => {
  const budget = new SharedBudget();
  const claim = claimOf([2, SECOND], [9, 60 * SECOND]);
  assert.equal(requestUnits(budget, "a", claim, 2, 0), 2);
  assert.equal(budget.isExpired(LEASE + 60 * SECOND - 1), false);
  assert.equal(budget.isExpired(LEASE + 60 * SECOND), true);
});

test("a process that renews its lease keeps its leased units", () => {
  const budget = new SharedBudget();
  const claim = claimOf([1, SECOND]);
  assert.equal(requestUnits(budget, "a", claim, 1, 0), 1);
  budget.renew("a", 2 * LEASE, LEASE);
  assert.equal(requestUnits(budget, "b", claim, 1, LEASE + 5 * SECOND), 0);
  budget.settle("a", 0, 1, LEASE + 5 * SECOND);
  assert.equal(requestUnits(budget, "b", claim, 1, LEASE + 5 * SECOND), 1);
});

test("a wider spacing is stricter", () => {
  const budget = new SharedBudget();
  const claim = claimOf([5, SECOND]);
  budget.join("a", claim, LEASE, 0);
  budget.join("b", { ...claim, spacingUs: 250_000 }, LEASE, 0);
  assert.equal(budget.isStricterThan(claim), true);
  assert.equal(budget.isStricterThan({ ...claim, spacingUs: 250_000 }), false);
});

test("a process waits one turn while another is waiting, and none when it is the only one", () => {
  const budget = new SharedBudget();
  const claim = claimOf([2, SECOND]);
  for (const name of ["a", "b"]) budget.join(name, claim, LEASE, 0);
  budget.setWaiting("a", { least: 2, most: 2 }, 1000, 1000);
  assert.equal(budget.dueUs("a", 1, 1000), 0);
  assert.equal(budget.dueUs("b", 1, 1000), 1_001_000, "the two free units are those of the other");
  assert.equal(budget.offer("b", claim, { least: 1, most: 1 }, 20_999).units, 0);
  assert.equal(budget.offer("b", claim, { least: 1, most: 1 }, 21_000).units, 1, "the other has not come");
});

test("a process that needs two units is not starved by one that takes each unit as soon as it is free", () => {
  const budget = new SharedBudget();
  const claim = claimOf([2, SECOND]);
  for (const name of ["heavy", "light"]) budget.join(name, claim, LEASE, 0);
  for (const us of [0, SECOND / 2]) {
    budget.reserve("light", 1, us);
    budget.settle("light", 1, 0, us);
  }
  const dueUs = budget.dueUs("heavy", 2, SECOND / 2);
  assert.equal(dueUs, 1.5 * SECOND);
  budget.setWaiting("heavy", { least: 2, most: 2 }, dueUs, SECOND / 2);
  assert.equal(budget.offer("light", claim, { least: 1, most: 1 }, 1.4 * SECOND).units, 0);
  assert.equal(budget.offer("heavy", claim, { least: 2, most: 2 }, dueUs).units, 2);
  assert.equal(budget.offer("light", claim, { least: 1, most: 1 }, dueUs + 20_000).units, 1, "heavy has not come");
});

test("returned units leave no stamp", () => {
  const budget = new SharedBudget();
  budget.join("a", { ...claimOf([9, SECOND]), spacingUs: SECOND }, LEASE, 0);
  budget.reserve("a", 2, 0);
  budget.settle("a", 1, 0, 0);
  budget.settle("a", 0, 1, 2 * SECOND);
  assert.equal(budget.dueUs("a", 1, 2 * SECOND), SECOND);
});

test("a budget expires one window after its last write when no process is live", () => {
  const budget = new SharedBudget();
  assert.equal(budget.isExpired(0), true);
  budget.join("a", claimOf([1, SECOND]), 10, 0);
  budget.reserve("a", 1, 0);
  budget.settle("a", 1, 0, 5);
  assert.equal(budget.isExpired(9), false);
  assert.equal(budget.isExpired(SECOND + 4), false);
  assert.equal(budget.isExpired(SECOND + 5), true);
});

test("units of dead processes count until one window after the end of their lease", () => {
  const budget = new SharedBudget();
  budget.join("a", claimOf([2, SECOND]), 10, 0);
  budget.reserve("a", 2, 0);
  budget.settle("a", 1, 0, 5);
  assert.equal(budget.isExpired(SECOND + 9), false);
  assert.equal(budget.isExpired(SECOND + 10), true);
});
