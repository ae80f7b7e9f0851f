import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { plainCall, plainPlan } from "../test/sim/kit.ts";
import { drawPlan } from "./draw-plan.ts";
import type { Sabotage } from "./plan.ts";
import { parsePlan } from "./plan-text.ts";
import { simulate } from "./simulate.ts";
import { traceLine } from "./trace.ts";

async function traceOf(seed: number): Promise<string> {
  const lines: string[] = [];
  await simulate(drawPlan(seed), fact => {
    const line = traceLine(fact);
    if (line !== undefined) lines.push(line);
  });
  return lines.join("\n");
}

test("a seed gives the same trace every time, also when other seeds run at the same time", async () => {
  for (const seed of [3, 14, 15, 92, 65]) {
    const alone = await traceOf(seed);
    assert.ok(alone.length > 1000);
    const [again] = await Promise.all([traceOf(seed), traceOf(seed + 1), traceOf(seed + 2)]);
    assert.equal(again, alone);
  }
});

// Each fault that is built into the hub, and the law that detects it.
const sabotages: readonly (readonly [Sabotage, string])[] = [
  ["loose-rates", "any window, at each process"],
  ["loose-rates", "any window, at the server"],
  ["loose-rates", "no rejection by an honest server"],
  ["no-guard", "any window, at each process"],
  ["no-guard", "any window, at the server"],
  ["many-probes", "probes within trial_calls"],
  ["short-cooldowns", "no send in a cooldown"],
  ["no-ramp-up", "traffic resumes slowly after a cooldown"],
  ["short-resets", "no send while a circuit is open"],
  ["wide-slots", "in flight within the slots"],
  ["generous-store", "any window, at the server"],
  ["forgetful-cache", "a cache hit costs nothing"],
  ["lost-ends", "liveness after the last fault"],
  ["lost-ends", "conservation"],
];
const SEEDS_TRIED = 600;

for (const [sabotage, law] of sabotages) {
  test(`a hub with ${sabotage} violates: ${law}`, async () => {
    for (let seed = 0; seed < SEEDS_TRIED; seed += 1) {
      const { violations } = await simulate({ ...drawPlan(seed), sabotage });
      if (violations.some(violation => violation.law === law)) return;
    }
    assert.fail(`no violation in ${SEEDS_TRIED} seeds`);
  });
}

// Plans that violated a law before a fix, after shrinking.
for (const file of globSync("sim/kept/*.json").sort()) {
  test(`a fixed bug stays fixed: ${file}`, async () => {
    const { violations, requests } = await simulate(parsePlan(readFileSync(file, "utf8")));
    assert.ok(requests > 0);
    assert.deepEqual(violations, []);
  });
}

test("without faults every call is sent at the pace of its limits", async () => {
  const calls = [0, 1, 2, 3].map(id => plainCall({ id, page: id, maxWaitMs: Number.POSITIVE_INFINITY }));
  const arrivedMs: number[] = [];
  const { violations } = await simulate(plainPlan({ calls }), fact => {
    if (fact.kind === "written" && fact.request.call.id < 4) arrivedMs.push(Math.floor(fact.atUs / 1000));
  });
  assert.deepEqual(violations, []);
  // Two over new connections, which count until their responses arrive, and two after the window has passed.
  assert.equal(arrivedMs.length, 4);
  assert.ok(arrivedMs.slice(0, 2).every(ms => ms < 10));
  assert.ok(
    arrivedMs.slice(2).every(ms => ms >= 1025 && ms < 1100),
    `${arrivedMs}`,
  );
});
