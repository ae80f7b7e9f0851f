import assert from "node:assert/strict";
import { test } from "node:test";
import { key } from "../../../test/dashboard/facts.ts";
import type { KeySnapshot } from "../../limiter/key-snapshot.ts";
import { withSharedUse } from "./shared-use.ts";
import type { ProcessFacts } from "./why-facts.ts";

const FULL = { kind: "window", owner: "a.example", limit: "10/SECOND (shared by all processes)" } as const;

function published(known: Partial<KeySnapshot>, of: Partial<ProcessFacts> = {}, isSharing = true) {
  const facts: ProcessFacts = {
    ...{ pid: 1, program: "x", maxDelayMs: 1000, ageMs: 0, readyMs: 0, constraint: known.constraint, decidedBy: null },
    ...{ waiting: 0, inFlight: 0, windowFailures: 0 },
    ...{ learnedFrom: undefined, order: undefined, totalOrder: undefined },
    ...of,
  };
  return { facts, key: key("a.example", { nextFreeMs: 0, ...known }), isSharing };
}

const used = (units: number) => ({
  windows: [{ rate: "10/SECOND", unit: "requests", used: units, limit: 10, isLearned: false }],
});
const shown = (all: readonly ProcessFacts[]) =>
  all.map(({ pid, readyMs, constraint, isUsedUp }) => [pid, readyMs, constraint?.limit, isUsedUp]);

test("a window that one process has found full is full for the processes that have not asked since", () => {
  const told = published({ constraint: FULL, nextFreeMs: 900 }, { pid: 2, ageMs: 300, readyMs: 2000 });
  assert.deepEqual(shown(withSharedUse([published({}), told])), [
    [1, 600, FULL.limit, undefined],
    [2, 2000, FULL.limit, undefined],
  ]);
  const over = published({ constraint: FULL, nextFreeMs: 900 }, { pid: 2, ageMs: 900, readyMs: 1100 });
  assert.deepEqual(shown(withSharedUse([published({}), over]))[0], [1, 0, undefined, undefined]);
});

test("a window is used up if the processes together have used its units, and when it is free again is not known", () => {
  const [first] = withSharedUse([published(used(4)), published(used(6), { pid: 2 })]);
  assert.deepEqual(first?.constraint, { kind: "window", owner: "a.example", limit: "10/SECOND" });
  assert.deepEqual([first?.readyMs, first?.isUsedUp], [0, true]);
  assert.deepEqual(shown(withSharedUse([published(used(4)), published(used(5), { pid: 2 })]))[0], [
    ...[1, 0, undefined, undefined],
  ]);
});

test("processes that keep their limits in their own memory have windows of their own", () => {
  const all = [published(used(10), {}, false), published({ constraint: FULL, nextFreeMs: 900 }, { pid: 2 }, false)];
  assert.deepEqual(shown(withSharedUse(all)), [
    [1, 0, undefined, undefined],
    [2, 0, FULL.limit, undefined],
  ]);
});
