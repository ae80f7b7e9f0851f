import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { BreakerOpenError } from "../errors.ts";
import { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerEvent } from "./breaker-events.ts";

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

test("a listener can be removed, and a listener that throws does not affect calls", async () => {
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

test("breaker_failure has the state, the count and the network error; breaker_success the state and the count", async () => {
  const { time, events, registry, answer } = setUp();
  const cause = Object.assign(new Error("connect ECONNREFUSED 10.0.0.1:443"), { code: "ECONNREFUSED" });
  registry.onFailure({ host, error: new TypeError("fetch failed", { cause }) });
  answer(503);
  answer(200);
  for (let call = 0; call < 5; call += 1) answer(503);
  await time.advance(60_000);
  const secret = Object.assign(new Error("reset by https://a.example/?key=123"), { code: "ECONNRESET" });
  registry.onFailure({ host, error: secret });
  const shown = events.flatMap(event => {
    if (event.event_type === "breaker_failure") return [[event.state, event.fail_counter, event.exc_type, event.msg]];
    return event.event_type === "breaker_success" ? [[event.state, event.fail_counter, event.status]] : [];
  });
  assert.deepEqual(shown, [
    ["closed", 1, "ECONNREFUSED", "connect ECONNREFUSED 10.0.0.1:443"],
    ["closed", 2, undefined, undefined],
    ["closed", 0, 200],
    ...[1, 2, 3, 4, 5].map(count => ["closed", count, undefined, undefined]),
    ["half_open", 1, "ECONNRESET", "ECONNRESET"],
  ]);
});

test("breaker_failure has the Retry-After of the response, and the shorter cooldown that the policy allows", () => {
  const { events, answer } = setUp();
  answer(429, {}, 7_200_000);
  const failure = events.find(event => event.event_type === "breaker_failure");
  assert.deepEqual([failure?.retry_after_s, failure?.cooldown_s], [7200, 900]);
});

test("events have a role and a peer only where they concern one", () => {
  const events: BreakerEvent[] = [];
  const emitter = new BreakerEmitter();
  emitter.add(event => events.push(event));
  emitter.cooldownSet(host, 5, "retry-after", false);
  emitter.cooldownSet(host, 5, "retry-after", true, "landing");
  emitter.cooldownEnded(host, "success");
  emitter.cooldownEnded(host, "operator", "landing");
  const set = { event_type: "breaker_cooldown_set", host, until: 5, reason: "retry-after" };
  const ended = { event_type: "breaker_cooldown_ended", host };
  assert.deepEqual(events, [
    set,
    { ...set, role: "landing", from_peer: true },
    { ...ended, by: "success" },
    { ...ended, by: "operator", role: "landing" },
  ]);
});

test("a response without Retry-After has neither a delay nor a cooldown, and a throttle counts apart from other failures", () => {
  const { events, answer } = setUp();
  answer(503);
  answer(503);
  answer(429);
  const shown = events.flatMap(event =>
    event.event_type === "breaker_failure" ? [[event.fail_counter, event.retry_after_s, event.cooldown_s]] : [],
  );
  assert.deepEqual(shown, [
    [1, undefined, undefined],
    [2, undefined, undefined],
    [2, undefined, undefined],
  ]);
});
