import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf, host, role, roleLimits, totalLimits } from "../../test/limiter/kit.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";
import type { LimiterEvent } from "./limiter-events.ts";

test("a request is refused as soon as it is known that it would start after its bound", async () => {
  for (const [writtenMs, expected] of [
    [0, { atMs: 1000 }],
    [20, { atMs: 1020 }],
    // Until it is written the first request counts as written now: after 20 ms the second can no longer be in time.
    [50, { atMs: 21, retryAfterMs: 1000 }],
  ] as const) {
    const { time, pass, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
    const grant = enterNow();
    let ended = {};
    pass({ maxWaitMs: 1020 }).then(({ retryAfterMs }) => {
      const atMs = Math.ceil(time.monotonicUs() / 1000);
      ended = retryAfterMs === undefined ? { atMs } : { atMs, retryAfterMs };
    });
    await time.advance(writtenMs);
    grant.release();
    await time.advance(2000);
    assert.deepEqual(ended, expected);
  }
});

test("retryAfterMs of a request that is refused while it waits includes the delay of the queue", async () => {
  const { time, pass, enterNow } = gateOf(roleLimits({ rates: "1/s" }));
  const grant = enterNow();
  pass();
  const second = pass({ maxWaitMs: 2000 });
  await time.advance(1100);
  grant.release();
  await time.advance(0);
  assert.equal((await second).retryAfterMs, 2000);
});

test("waitedMs is counted from the arrival", async () => {
  const { time, pass } = gateOf(roleLimits({ rates: "1/s" }));
  await time.advance(5000);
  pass();
  const second = pass({ maxWaitMs: 1000 });
  await time.advance(1000);
  assert.equal(((await second) as Grant).waitedMs, 1000);
});

test("a timer that fires early does not end a wait before its bound", async () => {
  const time = new FakeTime({ earlyUs: () => 1000 });
  const gate = new Gate(limitPoliciesFrom(roleLimits({ rates: "9/s", max_concurrent: 1 }), "test"), time);
  gate.enter({ host, role });
  let endedUs = 0;
  void (gate.enter({ host, role, maxWaitMs: 100 }) as Promise<Grant>).catch(() => {
    endedUs = time.monotonicUs();
  });
  await time.advance(200);
  assert.ok(endedUs >= 100_000, String(endedUs));
});

test("a wait is judged by the later of its role budget and its total", async () => {
  const { time, enterNow, pass } = gateOf(totalLimits({ rates: "99/s" }, { rates: "1/s" }));
  const grant = enterNow();
  const second = pass({ maxWaitMs: 1000 });
  await time.advance(300);
  grant.release();
  await time.advance(0);
  assert.equal((await second).retryAfterMs, 1000);
});

test("a listener that releases a grant on an abort event loses no waiting request", async () => {
  const time = new FakeTime();
  let held: Grant | undefined;
  const listener = (event: LimiterEvent) => {
    if ("outcome" in event && event.outcome === "aborted") held?.release();
  };
  const limits = limitPoliciesFrom({ defaults: { metadata: { rates: "99/s", max_concurrent: 1 } } }, "test");
  const gate = new Gate(limits, time, { listener });
  held = gate.enter({ host, role }) as Grant;
  const abort = new AbortController();
  const aborted = (gate.enter({ host, role, signal: abort.signal }) as Promise<Grant>).catch(() => "aborted");
  const next = gate.enter({ host, role }) as Promise<Grant>;
  abort.abort();
  await time.advance(0);
  assert.equal(await aborted, "aborted");
  assert.equal(gate.waiting, 0);
  (await next).release();
  assert.equal(gate.inFlight, 0);
});
