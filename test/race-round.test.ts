import assert from "node:assert/strict";
import { test } from "node:test";
import { clientSpecOf, OURS } from "../bench/race/client-spec.ts";
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

test("a round with a real clock and a server process accounts for every request", async () => {
  const { outcome } = await runRound(scenario, clientSpecOf(OURS), "1");
  assert.ok(outcome);
  const { arrivals = 0, rejections = 0, succeeded, failed, makespanMs, boundMs, politeMs } = outcome;
  assert.equal(succeeded + failed, 9);
  assert.ok(arrivals - rejections >= succeeded, `${arrivals} arrived, ${rejections} rejected, ${succeeded} succeeded`);
  assert.deepEqual({ boundMs, politeMs }, { boundMs: 300, politeMs: 325 });
  // Nine requests at five in 300 ms cannot be written faster. Whether any was rejected, `npm run bench:race` measures.
  assert.ok(makespanMs >= boundMs, `${makespanMs} ms`);
});

test("in simulated time our client is never rejected, and a client without a limiter is", async () => {
  const virtual = { ...scenario, isVirtual: true };
  const ours = (await runRound(virtual, clientSpecOf(OURS), "1")).outcome;
  const bare = (await runRound(virtual, clientSpecOf("fetch"), "1")).outcome;
  assert.ok(ours && bare);
  const { arrivals, rejections, succeeded, busiest } = ours;
  assert.deepEqual({ arrivals, rejections, succeeded }, { arrivals: 9, rejections: 0, succeeded: 9 });
  assert.deepEqual(busiest, { count: 5, limit: 5, windowMs: 300 });
  assert.equal(bare.succeeded, 9);
  // Nine arrive together where five are allowed.
  assert.ok((bare.rejections ?? 0) >= 4);
  assert.equal(bare.arrivals, 9 + (bare.rejections ?? 0));
});

test("hours of simulated time keep every window and stay within 3 % of the fastest polite schedule", async () => {
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
  const { outcome } = await runRound(hours, clientSpecOf(OURS), "1");
  assert.ok(outcome);
  assert.equal(outcome.boundMs, 2 * 3_600_000 + 1000);
  assert.equal(outcome.rejections, 0);
  assert.equal(outcome.succeeded, 50);
  assert.ok(outcome.makespanMs >= outcome.boundMs && outcome.makespanMs < outcome.politeMs * 1.03);
});
