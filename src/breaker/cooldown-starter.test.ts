import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";

test("only consecutive long Retry-Afters raise the reset time", async () => {
  const { answer, time, events } = setUp({
    defaults: { fail_max: 99, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  for (const ms of [60_000, 5000, 60_000, 10_000, 60_000, 3000]) {
    answer(429, {}, ms);
    await time.advance(ms);
  }
  assert.deepEqual(
    events.filter(event => event.event_type === "breaker_reset_raised"),
    [],
  );
});

test("a cooldown that does not end later emits no event", () => {
  const { registry, events } = setUp();
  for (const seconds of [60, 60, 5]) registry.open(host, seconds);
  assert.equal(events.filter(event => event.event_type === "breaker_cooldown_set").length, 1);
});

test("after a raise, only consecutive longer Retry-Afters raise the reset time again", async () => {
  const { answer, time, events } = setUp({
    defaults: { fail_max: 99, reset_timeout_s: 10 },
    advanced: { rolling_window: { enabled: false } },
  });
  for (const ms of [60_000, 60_000, 120_000]) {
    answer(429, {}, ms);
    await time.advance(ms);
  }
  const raises = events.filter(event => event.event_type === "breaker_reset_raised");
  assert.deepEqual(
    raises.map(({ old_s, new_s }) => [old_s, new_s]),
    [[10, 60]],
  );
});
