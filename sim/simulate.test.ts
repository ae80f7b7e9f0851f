import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { HOST, plainCall, plainPlan } from "../test/sim/kit.ts";
import { drawPlan } from "./draw-plan.ts";
import type { CallPlan, Plan, Sabotage } from "./plan.ts";
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

/** Four calls of which the host allows two in a second. */
const fourCalls = (changes: Partial<CallPlan>) => {
  const plan = plainPlan({ calls: [0, 1, 2, 3].map(id => plainCall({ id, page: id, ...changes })), maxInFlight: 500 });
  const limits = { rates: [{ limit: 2, windowMs: 1000 }], maxDelayMs: 200, maxConcurrent: 100, countsHead: true };
  return { ...plan, hosts: plan.hosts.map(host => ({ ...host, roleLimits: { metadata: limits } })) };
};

/** One call for each page, 100 ms apart, to a host with limits and responses for each partition. */
const partitionedCalls = (pages: readonly number[], ...partitions: readonly string[]): Plan => {
  const plan = fourCalls({});
  const calls = pages.map((page, id) =>
    plainCall({ id, page, atMs: 100 * id, partition: partitions[id % partitions.length], maxWaitMs: 5000 }),
  );
  const hosts = plan.hosts.map(host => ({
    ...host,
    isPerPartition: true as const,
    server: { ...host.server, maxAgeS: 60 },
  }));
  return { ...plan, hosts, calls };
};

/** Two partitions of a host that fails, or that throttles with Retry-After, whose breakers are common or not. */
const failingPartitions = (fault: Plan["faults"][number], hasPartitionBreakers: boolean): Plan => {
  const plan = partitionedCalls([0, 1, 2, 3, 4, 5], "a", "b");
  const hosts = plan.hosts.map(host => ({
    ...host,
    ...(hasPartitionBreakers && { hasPartitionBreakers: true as const }),
  }));
  return { ...plan, hosts, retryAttempts: 1, faults: [fault], breakers: { ...plan.breakers, failMax: 3 } };
};
const FAILS = { kind: "outage", atMs: 0, ms: 1000, host: HOST, how: "error" } as const;
/** Two processes, of which one opens its circuit alone, by failures that count for all after its next one. */
const ALONE_THEN_ALL = parsePlan(readFileSync("sim/kept/circuit-of-one-process-then-of-all.json", "utf8"));
const THROTTLES = { kind: "throttle", atMs: 0, ms: 50, host: HOST, status: 429, form: "seconds", seconds: 2 } as const;

// Each fault that is built into the hub, the law that detects it, and a plan where that can be seen; else some seed.
const sabotages: readonly (readonly [Sabotage, string, Plan?])[] = [
  ["loose-rates", "any window, at each process"],
  ["loose-rates", "any window, at the server"],
  ["loose-rates", "no rejection by an honest server"],
  ["no-guard", "any window, at each process"],
  ["no-guard", "any window, at the server"],
  ["many-probes", "probes within trial_calls"],
  ["short-cooldowns", "no send in a cooldown"],
  ["no-ramp-up", "traffic resumes slowly after a cooldown"],
  ["deaf-to-slow-calls", "too many slow calls start a cooldown"],
  ["hasty-slow-calls", "too many slow calls start a cooldown"],
  ["short-resets", "no send while a circuit is open"],
  ["wide-slots", "in flight within the slots"],
  ["generous-store", "any window, at the server"],
  ["forgetful-cache", "a cache hit costs nothing"],
  ["forgetful-reload", "what was sent counts after a reload"],
  ["loose-costs", "costs within every window"],
  ["loose-costs", "any window, at the server"],
  ["unheard-costs", "costs within every window"],
  ["early-stamps", "any window, at each process"],
  ["share-when-away", "nothing is sent without the store if calls wait for it"],
  ["long-delays", "no call waits longer than its bound", fourCalls({})],
  ["exhausted-bounds", "no call waits for its whole bound and is refused then", fourCalls({ maxWaitMs: 500 })],
  ["early-estimates", "a refusal gives a possible time", fourCalls({})],
  ["late-estimates", "a refusal gives a possible time", fourCalls({})],
  ["split-partitions", "any window, at each process", partitionedCalls([0, 1, 2, 3], "a")],
  ["deaf-to-partitions", "partitions share no response", partitionedCalls([7, 7], "a", "b")],
  ["common-breakers", "throttles of one burst count once", failingPartitions(FAILS, true)],
  ["hasty-circuits", "throttles of one burst count once", ALONE_THEN_ALL],
  ["split-breakers", "no send in a cooldown", failingPartitions(THROTTLES, false)],
  ["lost-ends", "liveness after the last fault"],
  ["lost-ends", "conservation"],
];
const SEEDS_TRIED = 600;

for (const [sabotage, law, plan] of sabotages) {
  test(`a hub with ${sabotage} violates: ${law}`, async () => {
    if (plan !== undefined) assert.deepEqual((await simulate(plan)).violations, [], "without the fault");
    const seeds = plan === undefined ? SEEDS_TRIED : 1;
    for (let seed = 0; seed < seeds; seed += 1) {
      const { violations } = await simulate({ ...(plan ?? drawPlan(seed)), sabotage });
      if (violations.some(violation => violation.law === law)) return;
    }
    assert.fail(`no violation in ${seeds} seeds`);
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
