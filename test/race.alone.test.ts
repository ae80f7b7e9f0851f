import assert from "node:assert/strict";
import { test } from "node:test";
import { contestantOf, OURS } from "../bench/race/contestants.ts";
import { runRound } from "../bench/race/round.ts";
import type { Scenario } from "../bench/race/scenario.ts";

const scenario: Scenario = {
  id: "tiny",
  race: "R0",
  title: "tiny",
  what: "5 in 300 ms.",
  limits: { metadata: [{ limit: 5, windowMs: 300 }] },
  loads: [{ metadata: 9 }],
  promises: [],
};

// Two clients that need nothing but what the project has, each with a server in a process of its own.
test("in a tiny race, ours is never rejected, and who asks without a limiter is", async t => {
  const ours = await runRound(scenario, contestantOf(OURS), "1");
  const bare = await runRound(scenario, contestantOf("fetch"), "1");
  t.diagnostic(
    `${ours.outcome?.makespanMs} ms and ${bare.outcome?.makespanMs} ms; optimum ${ours.outcome?.boundMs} ms`,
  );
  const { arrivals, rejections, succeeded, busiest, boundMs, politeMs } = ours.outcome ?? assert.fail();
  assert.deepEqual(
    { arrivals, rejections, succeeded, busiest },
    {
      arrivals: 9,
      rejections: 0,
      succeeded: 9,
      busiest: { count: 5, limit: 5, windowMs: 300 },
    },
  );
  assert.deepEqual({ boundMs, politeMs }, { boundMs: 300, politeMs: 325 });
  assert.ok((ours.outcome?.makespanMs ?? 0) >= boundMs);
  assert.equal(bare.outcome?.succeeded, 9);
  // All nine at once: four too many at the least.
  assert.ok((bare.outcome?.rejections ?? 0) >= 4);
  assert.equal(bare.outcome?.arrivals, 9 + (bare.outcome?.rejections ?? 0));
});

test("an hour of virtual time keeps its windows, and takes no hour", async () => {
  const hours: Scenario = {
    ...scenario,
    limits: {
      metadata: [
        { limit: 5, windowMs: 1000 },
        { limit: 20, windowMs: 3_600_000 },
      ],
    },
    loads: [{ metadata: 50 }],
    isVirtual: true,
  };
  const { outcome } = await runRound(hours, contestantOf(OURS), "1");
  assert.ok(outcome);
  assert.equal(outcome.boundMs, 2 * 3_600_000 + 1000);
  assert.equal(outcome.rejections, 0);
  assert.equal(outcome.succeeded, 50);
  assert.ok(outcome.makespanMs >= outcome.boundMs && outcome.makespanMs < outcome.politeMs * 1.03);
});
