import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { BreakerOpenError } from "../errors.ts";

test("an outage emits closed, open, half_open, closed, and each denial has its remaining time", async () => {
  const { time, events, registry, answers, answer } = setUp();
  answers(503, 5);
  await time.advance(20_000);
  assert.throws(() => registry.allow({ host }), BreakerOpenError);
  await time.advance(40_000);
  answer(200);
  const changes = events.filter(event => event.event_type === "breaker_state_change");
  assert.deepEqual(
    changes.map(change => [change.old, change.new, change.host, change.role, change.reset_timeout_s]),
    [
      ["closed", "open", host, "metadata", 60],
      ["open", "half_open", host, "metadata", 60],
      ["half_open", "closed", host, "metadata", 60],
    ],
  );
  const denied = events.filter(event => event.event_type === "breaker_before_call" && !event.allowed);
  assert.deepEqual(
    denied.map(event => "remaining_ms" in event && [event.reason, event.remaining_ms]),
    [["failures", 40_000]],
  );
  assert.equal(events.filter(event => event.event_type === "breaker_failure").length, 5);
  assert.equal(events.filter(event => event.event_type === "breaker_success").length, 1);
});

test("a listener can be removed, and one that throws breaks nothing", async () => {
  const { registry, answers } = setUp();
  const received: string[] = [];
  const stop = registry.listen(event => received.push(event.event_type));
  const warned = new Promise<Error>(resolve => process.once("warning", resolve));
  registry.listen(() => {
    throw new Error("this listener is broken too");
  });
  answers(503, 1);
  assert.match((await warned).message, /^an event listener failed: this listener is broken too;/);
  assert.deepEqual(received, ["breaker_before_call", "breaker_failure"]);
  stop();
  const warnedLater = new Promise<Error>(resolve => process.once("warning", resolve));
  registry.listen((async () => {
    throw new Error("an asynchronous one, too");
  }) as () => void);
  answers(503, 4);
  assert.match((await warnedLater).message, /^an event listener failed: an asynchronous one, too;/);
  assert.equal(received.length, 2);
  assert.equal(registry.state(host).state, "open");
});
