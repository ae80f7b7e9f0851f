import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Enforcer, enforcerOf } from "../../sim/servers/enforcer.ts";
import { gateOf, host, role } from "../../test/limiter/kit.ts";
import type { Gate } from "../gate/gate.ts";
import type { FakeTime } from "../testing/fake-time.ts";
import { FirstWindows, shortestWindow } from "./first-windows.ts";

interface Workload {
  readonly limit: number;
  readonly windowMs: number;
  readonly requests: number;
  /** Where in a window of the server's clock the first request arrives. */
  readonly phaseMs: number;
  readonly answerMs: number;
}

/** Sends all requests at once, and those that were rejected again. */
async function sendAll(gate: Gate, time: FakeTime, server: Enforcer, load: Workload) {
  const { requests, phaseMs, answerMs } = load;
  let rejected = 0;
  let lastMs = 0;
  let left = requests;
  const send = async () => {
    for (let isAccepted = false; !isAccepted; ) {
      const grant = await gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY });
      grant.written();
      lastMs = time.monotonicUs() / 1000;
      const arrivedUs = time.monotonicUs() + phaseMs * 1000;
      isAccepted = server.has(1, arrivedUs);
      if (isAccepted) server.count(1, arrivedUs);
      else rejected += 1;
      await time.sleep(answerMs);
      grant.recordResponse({ isThrottled: !isAccepted });
      grant.release();
    }
    left -= 1;
  };
  const all = Array.from({ length: requests }, send);
  while (left > 0) await time.advance(load.windowMs / 2);
  await Promise.all(all);
  return { rejected, lastMs };
}

const rateOf = ({ limit, windowMs }: Workload) => ({
  defaults: { [role]: { rates: `${limit}/${windowMs}ms`, guard_ms: 25 } },
});

test("a server that counts with two buckets rejects one request, wherever its windows begin", async () => {
  const loads = fc.record({
    limit: fc.integer({ min: 3, max: 24 }),
    phaseMs: fc.nat(999),
    requests: fc.integer({ min: 1, max: 60 }),
  });
  await fc.assert(
    fc.asyncProperty(loads, async drawn => {
      const load = { ...drawn, windowMs: 1000, answerMs: 2 };
      const { gate, time } = gateOf(rateOf(load));
      const { rejected } = await sendAll(gate, time, enforcerOf("two-buckets", load), load);
      assert.ok(rejected <= 1, `${rejected} rejected`);
    }),
    { numRuns: 40 },
  );
});

test("a server that keeps the windows as we do is used within 1.1 % of the fastest schedule", async () => {
  for (const answerMs of [2, 20, 100]) {
    const load = { limit: 50, windowMs: 1000, requests: 300, phaseMs: 0, answerMs };
    const { gate, time } = gateOf(rateOf(load));
    const { rejected, lastMs } = await sendAll(gate, time, enforcerOf("sliding-log", load), load);
    assert.equal(rejected, 0);
    assert.ok(lastMs <= 5 * 1025 * 1.011, `${lastMs} ms`);
  }
});

test("a slow answer keeps the next request for a twentieth of the window at most", async () => {
  const load = { limit: 4, windowMs: 1000, requests: 8, phaseMs: 0, answerMs: 600 };
  const { gate, time } = gateOf(rateOf(load));
  const { lastMs } = await sendAll(gate, time, enforcerOf("sliding-log", load), load);
  assert.equal(lastMs, 1025 + 52);
});

test("a request whose own bound ends before a slow answer is sent without it", async () => {
  const { gate, time, log, pass } = gateOf({ hosts: { [host]: { metadata: { rates: "5/s", guard_ms: 0 } } } });
  const enter = async (maxWaitMs: number) => {
    const grant = await gate.enter({ host, role, maxWaitMs });
    grant.written();
    log.push(time.monotonicUs() / 1000);
    return grant;
  };
  for (let call = 0; call < 5; call += 1) {
    const grant = await enter(0);
    grant.recordResponse({ isThrottled: false });
    grant.release();
  }
  for (const maxWaitMs of [1040, 1040, 1050]) void enter(maxWaitMs);
  void pass({ maxWaitMs: 1051 });
  await time.advance(1100);
  assert.deepEqual(log.slice(5), [1000, 1000, 1000, 1050]);
});

test("without recorded responses requests are sent as soon as the windows allow", async () => {
  const { gate, time, log, pass } = gateOf(rateOf({ limit: 4, windowMs: 1000, requests: 0, phaseMs: 0, answerMs: 0 }));
  const grants = Array.from({ length: 8 }, () => pass());
  await time.advance(3000);
  await Promise.all(grants);
  assert.deepEqual(log, [0, 0, 0, 0, 1025, 1025, 1025, 1025]);
  assert.equal(gate.waiting, 0);
});

test("the second and the third window are tried, of keys with at least three requests in the shortest one", () => {
  const window = (limit: number, spanUs = 1000) => ({ limit, spanUs, grain: 1, capacity: limit + 1 });
  assert.deepEqual(
    [4, 5, 12, 13].map(unit => FirstWindows.isTried(unit, window(4))),
    [false, true, true, false],
  );
  assert.equal(FirstWindows.isTried(3, window(2)), false);
  assert.deepEqual(shortestWindow([window(9, 3000), window(4, 1000)]), window(4, 1000));
  assert.equal(shortestWindow([]), undefined);
});
