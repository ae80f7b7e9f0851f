import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { at, attempt, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import { RunTally } from "./run-tally.ts";

const change = { reset_timeout_s: 60, last_rate_delay_ms: undefined } as const;

test("the timeline keeps every call and the longest wait when steps are merged", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 50_000_000 }), { minLength: 1, maxLength: 200 }), times => {
      const tally = new RunTally(RUN);
      for (const ms of times) {
        tally.take(attempt(ms, "a.example", { rate_wait_ms: ms }));
        tally.take(call(ms, "a.example", { rate_delay_ms: ms }));
      }
      const { hosts, stepMs } = tally.timeline();
      const [track] = hosts;
      assert.equal(
        track?.outcomes.answered.reduce((sum, count) => sum + count, 0),
        times.length,
      );
      assert.equal(Math.max(...(track?.waitMs ?? [])), Math.max(...times));
      assert.ok((track?.waitMs.length ?? 0) <= 240 && stepMs >= 50);
    }),
  );
});

test("the timeline has the periods in which a circuit was open or half-open, or a host in cooldown", () => {
  const of = { ...change, host: "a.example", role: "metadata" } as const;
  const tally = new RunTally(RUN);
  for (const event of [
    at(0, "breaker_state_change", { ...of, old: "closed", new: "open", reset_timeout_s: 10 }),
    at(12_000, "breaker_state_change", { ...of, old: "open", new: "half_open" }),
    at(13_000, "breaker_state_change", { ...of, old: "half_open", new: "closed" }),
    at(14_000, "breaker_cooldown_set", { host: "a.example", until: START_MS + 15_000, reason: "retry-after" }),
    at(14_500, "breaker_cooldown_set", { host: "a.example", until: START_MS + 19_000, reason: "retry-after" }),
    at(18_000, "breaker_cooldown_ended", { host: "a.example", by: "operator" }),
    at(20_000, "run_ended", {}),
  ])
    tally.take(event);
  const periods = tally.timeline().hosts[0]?.periods ?? [];
  assert.deepEqual(
    periods.map(({ kind, fromMs, toMs, about }) => [kind, fromMs - START_MS, toMs - START_MS, about]),
    [
      ["open", 0, 10_000, "metadata"],
      ["half_open", 12_000, 13_000, "metadata"],
      ["cooldown", 14_000, 18_000, "retry-after"],
    ],
  );
});

test("a cooldown in the timeline ends with the shorter one that is left when an operator's order was ended", () => {
  const host = "a.example";
  const tally = new RunTally(RUN);
  for (const event of [
    at(0, "breaker_cooldown_set", { host, until: START_MS + 10_000, reason: "retry-after" }),
    at(1000, "breaker_cooldown_set", { host, until: START_MS + 60_000, reason: "cli-open:x" }),
    at(2000, "breaker_cooldown_set", { host, until: START_MS + 10_000, reason: "retry-after" }),
    at(20_000, "run_ended", {}),
  ])
    tally.take(event);
  const periods = tally.timeline().hosts[0]?.periods ?? [];
  assert.deepEqual(
    periods.map(({ fromMs, toMs }) => [fromMs - START_MS, toMs - START_MS]),
    [[0, 10_000]],
  );
});

test("a period beyond those that are kept changes none of them", () => {
  const host = "a.example";
  const tally = new RunTally(RUN);
  for (let i = 0; i < 1010; i += 1) {
    const [ms, until] = [i * 20_000, START_MS + i * 20_000 + 1000];
    tally.take(at(ms, "breaker_cooldown_set", { host, until, reason: "retry-after" }));
    tally.take(at(ms + 500, "breaker_cooldown_set", { host, until: until + 500, reason: "retry-after" }));
  }
  tally.take(at(1010 * 20_000, "run_ended", {}));
  const periods = tally.timeline().hosts[0]?.periods ?? [];
  assert.equal(periods.length, 1000);
  assert.ok(periods.every(({ fromMs, toMs }) => toMs - fromMs === 1500));
});

test("an operator's order for one role ends without ending the cooldown of its host", () => {
  const host = "a.example";
  const tally = new RunTally(RUN);
  for (const event of [
    at(0, "breaker_cooldown_set", { host, until: START_MS + 10_000, reason: "retry-after" }),
    at(1000, "breaker_cooldown_set", { host, role: "landing", until: START_MS + 60_000, reason: "cli-open:x" }),
    at(2000, "breaker_cooldown_ended", { host, role: "landing", by: "operator" }),
    at(3000, "breaker_cooldown_set", { host, until: START_MS + 15_000, reason: "retry-after" }),
    // The first call of another role after the cooldown of the host.
    at(16_000, "breaker_success", { host, role: "metadata", status: 200, state: "closed", fail_counter: 0 }),
    at(20_000, "run_ended", {}),
  ])
    tally.take(event);
  const periods = tally.timeline().hosts[0]?.periods ?? [];
  assert.deepEqual(
    periods.map(({ kind, fromMs, toMs, about }) => [kind, fromMs - START_MS, toMs - START_MS, about]),
    [
      ["cooldown", 0, 15_000, "retry-after"],
      ["cooldown", 1000, 2000, "cli-open"],
    ],
  );
  const { opens, afterOpen } = tally.summary().breaker;
  assert.deepEqual([opens, afterOpen.succeeded], [2, 1]);
});
