import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../testing/fake-time.ts";
import type { AcquireRequest } from "./acquire-request.ts";
import { RateLimiter } from "./rate-limiter.ts";

const host = "api.example.org";

function limiterOf(rates = "9/s"): RateLimiter {
  return new RateLimiter({ defaults: { metadata: { rates } } }, { time: new FakeTime() });
}

/** Options as a program without types passes them. */
function untyped(options: object): AcquireRequest {
  return options as AcquireRequest;
}

test("every documented option is accepted", async () => {
  const limiter = limiterOf();
  const immediate = { host, role: "metadata", path: "/works", method: "GET", weight: 1 } as const;
  const waiting = { ...immediate, signal: new AbortController().signal, maxWaitMs: 100 };
  assert.equal(limiter.check(immediate), undefined);
  assert.ok(limiter.tryAcquire(immediate));
  assert.ok(await limiter.acquire(waiting));
  assert.equal(await limiter.run(waiting, async grant => grant.host), host);
});

test("a text in place of the request is an error that shows the form of a request", async () => {
  const message = 'acquire: expected an object such as { host: "api.example.org" }, found a string';
  await assert.rejects(limiterOf().acquire(host as unknown as AcquireRequest), { name: "TypeError", message });
});

test("a missing request is an error that shows the form of a request", async () => {
  const message = (caller: string, found: string) =>
    `${caller}: expected an object such as { host: "api.example.org" }, found ${found}`;
  const missing = undefined as unknown as AcquireRequest;
  await assert.rejects(limiterOf().acquire(missing), { name: "TypeError", message: message("acquire", "undefined") });
  const none = null as unknown as AcquireRequest;
  assert.throws(() => limiterOf().check(none), { name: "TypeError", message: message("check", "null") });
});

test("an unknown option is an error that suggests the option it resembles", async () => {
  const limiter = limiterOf();
  const unknown = (caller: string, option: string, hint: string) =>
    new TypeError(`${caller}: unknown option "${option}": ${hint}`);
  await assert.rejects(
    limiter.acquire(untyped({ host, maxWait: 0 })),
    unknown("acquire", "maxWait", "did you mean maxWaitMs?"),
  );
  await assert.rejects(
    limiter.run(untyped({ host, wieght: 2 }), async () => "sent"),
    unknown("run", "wieght", "did you mean weight?"),
  );
  assert.throws(() => limiter.tryAcquire(untyped({ Host: host })), unknown("tryAcquire", "Host", "did you mean host?"));
  assert.throws(
    () => limiter.check(untyped({ host, priority: 1 })),
    unknown("check", "priority", "the options are host, role, path, method, weight, costs"),
  );
  assert.equal(limiter.snapshot().keys.length, 0);
});

test("options about waiting are unknown to methods that never wait", () => {
  const limiter = limiterOf();
  assert.throws(
    () => limiter.tryAcquire(untyped({ host, maxWaitMs: 100 })),
    new TypeError('tryAcquire: unknown option "maxWaitMs": the options are host, role, path, method, weight, costs'),
  );
  assert.throws(() => limiter.check(untyped({ host, signal: AbortSignal.abort() })), TypeError);
});

test("options that a request object inherits are checked like its own", () => {
  const limiter = limiterOf("1/s");
  const request = untyped(Object.create({ host, weigth: 1 }));
  assert.throws(() => limiter.tryAcquire(request), /did you mean weight\?/);
});
