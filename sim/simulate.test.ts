import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { plainCall, plainPlan } from "../test/sim/kit.ts";
import { drawPlan } from "./draw-plan.ts";
import type { Plan, Sabotage } from "./plan.ts";
import { parsePlan, planText } from "./plan-text.ts";
import { Random } from "./random.ts";
import { enforcerOf } from "./servers/enforcer.ts";
import { shrink } from "./shrink.ts";
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

test("a seed is the same world every time, byte for byte, whatever runs beside it", async () => {
  for (const seed of [3, 14, 15, 92, 65]) {
    const alone = await traceOf(seed);
    assert.ok(alone.length > 1000);
    const [again] = await Promise.all([traceOf(seed), traceOf(seed + 1), traceOf(seed + 2)]);
    assert.equal(again, alone);
  }
});

test("seeds differ, and cover every fault, server and number of processes", () => {
  const plans = Array.from({ length: 2000 }, (_, seed) => drawPlan(seed));
  const seen = (facts: (plan: Plan) => readonly (string | number)[]) => new Set(plans.flatMap(facts)).size;
  assert.equal(
    seen(({ faults }) => faults.map(({ kind }) => kind)),
    12,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "throttle" ? [fault.form] : []))),
    13,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "outage" ? [fault.how] : []))),
    5,
  );
  assert.equal(
    seen(({ faults }) => faults.flatMap(fault => (fault.kind === "lie" ? [fault.lie] : []))),
    5,
  );
  assert.equal(
    seen(({ hosts }) => hosts.map(({ server }) => server.model)),
    5,
  );
  assert.equal(
    seen(({ processes }) => [processes.length]),
    3,
  );
  assert.equal(new Set(plans.map(plan => JSON.stringify({ ...plan, seed: 0 }))).size, 2000);
});

test("luck is even, and its streams have nothing to do with one another", () => {
  const luck = new Random(7);
  const counts = [0, 0, 0, 0];
  for (let draw = 0; draw < 40_000; draw += 1) {
    const drawn = luck.whole(0, 3);
    counts[drawn] = (counts[drawn] ?? 0) + 1;
  }
  assert.ok(
    counts.every(count => Math.abs(count - 10_000) < 500),
    `${counts}`,
  );
  assert.notEqual(new Random(7, 1).next(), new Random(7, 2).next());
  assert.notEqual(new Random(7).next(), new Random(8).next());
});

// Each part of a hub that is broken on purpose, and the law that notices.
const sabotages: readonly (readonly [Sabotage, string])[] = [
  ["loose-rates", "any window, at each process"],
  ["loose-rates", "any window, at the server"],
  ["loose-rates", "no rejection by an honest server"],
  ["no-guard", "any window, at each process"],
  ["no-guard", "any window, at the server"],
  ["many-probes", "probes within trial_calls"],
  ["short-cooldowns", "no send in a cooldown"],
  ["short-resets", "no send while a circuit is open"],
  ["wide-slots", "in flight within the slots"],
  ["generous-store", "any window, at the server"],
  ["forgetful-cache", "a hit costs nothing"],
  ["lost-ends", "liveness after the last fault"],
  ["lost-ends", "conservation"],
];
const SEEDS_TRIED = 600;

for (const [sabotage, law] of sabotages) {
  test(`a hub with ${sabotage} is caught: ${law}`, async () => {
    for (let seed = 0; seed < SEEDS_TRIED; seed += 1) {
      const { violations } = await simulate({ ...drawPlan(seed), sabotage });
      if (violations.some(violation => violation.law === law)) return;
    }
    assert.fail(`${SEEDS_TRIED} seeds did not notice`);
  });
}

test("a failing plan shrinks to a few lines that fail the same way, and survives being saved", async () => {
  const law = "any window, at each process";
  for (let seed = 0; ; seed += 1) {
    const plan: Plan = { ...drawPlan(seed), sabotage: "loose-rates" };
    const { violations } = await simulate(plan);
    if (!violations.some(violation => violation.law === law)) continue;
    const small = await shrink(plan, law);
    assert.ok(small.calls.length < plan.calls.length);
    assert.deepEqual(small.faults, []);
    const saved = parsePlan(planText(small));
    const { violations: after } = await simulate(saved);
    assert.ok(after.some(violation => violation.law === law));
    return;
  }
});

// Plans that once broke a law, as small as they could be made.
for (const file of globSync("sim/kept/*.json").sort()) {
  test(`what was mended stays mended: ${file}`, async () => {
    const { violations, requests } = await simulate(parsePlan(readFileSync(file, "utf8")));
    assert.ok(requests > 0);
    assert.deepEqual(violations, []);
  });
}

test("servers count as their kind does", () => {
  const rate = { limit: 2, windowMs: 1000 };
  const passes = (model: Parameters<typeof enforcerOf>[0], ...atMs: readonly number[]) => {
    const server = enforcerOf(model, rate);
    return atMs.map(ms => {
      const has = server.has(1, ms * 1000);
      if (has) server.count(1, ms * 1000);
      return has ? "yes" : "no";
    });
  };
  assert.deepEqual(passes("fixed-window", 900, 950, 999, 1000), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("sliding-log", 900, 950, 1000, 1899, 1900), ["yes", "yes", "no", "no", "yes"]);
  assert.deepEqual(passes("tokens", 0, 0, 499, 500), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("gcra", 0, 0, 499, 500), ["yes", "yes", "no", "yes"]);
  assert.deepEqual(passes("two-buckets", 900, 950, 1000, 1499, 1500), ["yes", "yes", "no", "no", "yes"]);
});

test("a plain world serves every call at the pace of its limits", async () => {
  const calls = [0, 1, 2, 3].map(id => plainCall({ id, page: id, maxWaitMs: Number.POSITIVE_INFINITY }));
  const arrivedMs: number[] = [];
  const { violations } = await simulate(plainPlan({ calls }), fact => {
    if (fact.kind === "written" && fact.sending.call.id < 4) arrivedMs.push(Math.floor(fact.atUs / 1000));
  });
  assert.deepEqual(violations, []);
  // Two over new connections, which count until their answers come, and two when the window has passed since.
  assert.equal(arrivedMs.length, 4);
  assert.ok(arrivedMs.slice(0, 2).every(ms => ms < 10));
  assert.ok(
    arrivedMs.slice(2).every(ms => ms >= 1025 && ms < 1100),
    `${arrivedMs}`,
  );
});
