import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { burst, host, limiterOf, metadataLimits } from "../../test/limiter/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { ConfigError } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { RateLimiter } from "./rate-limiter.ts";

/** Two calls through a window of one request; returns when the second began. */
async function secondBeganMs(send: (time: FakeTime, written: () => void) => Promise<void>) {
  const { limiter, time, nowMs } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 60_000 }));
  const beganMs: number[] = [];
  const call = () =>
    limiter.run({ host }, async grant => {
      beganMs.push(nowMs());
      await send(time, () => grant.written());
    });
  const calls = [call().catch(error => error.message), call().catch(error => error.message)];
  await time.advance(10_000);
  const ends = await Promise.all(calls);
  assert.equal(limiter.snapshot().inFlight, 0);
  return { secondMs: beganMs[1], ends };
}

test("tryAcquire returns a grant, or undefined when the request cannot be sent now", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "1/s" }));
  assert.equal(limiter.tryAcquire({ host })?.waitedMs, 0);
  assert.equal(limiter.tryAcquire({ host }), undefined);
  await time.advance(1000);
  assert.ok(limiter.tryAcquire({ host }));
});

test("check says which limit refuses and for how long, and undefined when the request would be granted", async () => {
  const { limiter, time } = limiterOf(metadataLimits({ rates: "1/s" }));
  assert.equal(limiter.check({ host }), undefined);
  limiter.tryAcquire({ host });
  await time.advance(400);
  assert.deepEqual(limiter.check({ host }), {
    retryAfterMs: 600,
    constraint: { kind: "window", owner: host, limit: "1/SECOND" },
  });
});

test("check takes no unit and no slot, counts no refusal and emits no event", () => {
  const { limiter, events } = limiterOf(metadataLimits({ rates: "1/s", max_concurrent: 1 }));
  for (let call = 0; call < 3; call += 1) assert.equal(limiter.check({ host }), undefined);
  assert.ok(limiter.tryAcquire({ host }));
  assert.ok(limiter.check({ host }));
  const { acquired, refused, inFlight } = limiter.snapshot().keys[0] ?? {};
  assert.deepEqual({ acquired, refused, inFlight }, { acquired: 1, refused: 0, inFlight: 1 });
  assert.equal(events.length, 1);
});

test("check cannot say when a slot becomes free", () => {
  const { limiter } = limiterOf(metadataLimits({ rates: "9/s", max_concurrent: 1 }));
  limiter.tryAcquire({ host });
  assert.deepEqual(limiter.check({ host }), {
    retryAfterMs: undefined,
    constraint: { kind: "concurrency", owner: host, limit: "max_concurrent 1" },
  });
});

test("a request of run counts until it is answered", async () => {
  assert.equal((await secondBeganMs(time => time.sleep(700))).secondMs, 1700);
});

test("a request of run that calls written() counts from then", async () => {
  const send = async (time: FakeTime, written: () => void) => {
    await time.sleep(100);
    written();
    await time.sleep(600);
  };
  assert.equal((await secondBeganMs(send)).secondMs, 1100);
});

test("a request of run that fails counts until it failed, and rejects with the caller's error", async () => {
  const send = async (time: FakeTime) => {
    await time.sleep(300);
    throw new Error("no answer");
  };
  assert.deepEqual(await secondBeganMs(send), { secondMs: 1300, ends: ["no answer", "no answer"] });
});

test("all problems of invalid limits are reported at once, with their paths", () => {
  const make = () =>
    new RateLimiter({
      defaults: { metadata: { rates: "8" } },
      hosts: { "bad host": {}, "a.example": { metadata: { max_concurrent: 0 } } },
      aimd: { min_multiplier: 2 },
    });
  assert.throws(make, (error: unknown) => {
    assert.ok(error instanceof ConfigError);
    assert.deepEqual(
      error.problems.map(({ path }) => path),
      ["defaults.metadata.rates", "hosts.bad host", "hosts.a.example.metadata.max_concurrent", "aimd.min_multiplier"],
    );
    return true;
  });
  assert.throws(() => new RateLimiter(JSON.parse('{"host": {}}')), /RateLimiter: .*host/);
  assert.throws(() => new RateLimiter({ defaults: { metadata: { rates: [] } } }), /no rate given: the list is empty/);
});

test("a field that is undefined is inherited and never means unlimited", () => {
  const options = JSON.parse("{}");
  const limiter = new RateLimiter({ defaults: { metadata: { rates: options.nothing } } }, { time: new FakeTime() });
  const granted = burst(limiter, 20);
  assert.equal(granted, 10);
});

test("invalid limits of a reload are refused, and the old ones stay in force", () => {
  const { limiter } = limiterOf(metadataLimits({ rates: "1/s" }));
  assert.throws(() => limiter.reload(metadataLimits({ rates: "nonsense" })), ConfigError);
  assert.ok(limiter.tryAcquire({ host }));
  assert.equal(limiter.tryAcquire({ host }), undefined);
  assert.throws(() => limiter.reload({ backend: { kind: "redis" } }), /pass the option store to share limits/);
});

test("a listener receives every grant, refusal and abort, and one that throws has no other effect", async () => {
  const { limiter, events, time } = limiterOf(metadataLimits({ rates: "1/s", max_delay_ms: 5000 }));
  const abort = new AbortController();
  limiter.tryAcquire({ host });
  limiter.tryAcquire({ host });
  const waiting = limiter.acquire({ host, signal: abort.signal });
  await time.advance(10);
  abort.abort();
  await assert.rejects(waiting);
  assert.deepEqual(
    events.map(event => "outcome" in event && [event.outcome, event.mode, event.blocked_ms, event.rates]),
    [
      ["granted", "fail", 0, "1/SECOND"],
      ["refused", "fail", 0, "1/SECOND"],
      ["aborted", "block", 10, "1/SECOND"],
    ],
  );
  const warned = new Promise<Error>(resolve => process.once("warning", resolve));
  const rude = new RateLimiter(
    {},
    {
      time,
      listener: () => {
        throw new Error("the listener is broken");
      },
    },
  );
  assert.ok(rude.tryAcquire({ host }));
  assert.match((await warned).message, /^an event listener failed: the listener is broken;/);
});

test("cooldownFor stops a host and role for its time, and refuses other times than finite ones above 0", async () => {
  const time = new FakeTime();
  const limiter = new RateLimiter({ defaults: { metadata: { rates: "10/s" } } }, { time });
  const host = "api.example.org";
  limiter.cooldownFor({ host, ms: 5000 });
  assert.equal(limiter.check({ host })?.retryAfterMs, 5000);
  assert.equal(limiter.check({ host })?.constraint.kind, "cooldown");
  assert.equal(limiter.check({ host, role: "landing" }), undefined);
  await time.advance(5000);
  assert.ok(limiter.tryAcquire({ host }));
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => limiter.cooldownFor({ host, ms }), /^RangeError: cooldownFor: ms must be a finite number/);
});

test("a request of run that gives its grant back uses no unit, and one that was written does", async () => {
  const limiter = new RateLimiter({ defaults: { metadata: { rates: "1/HOUR" } } }, { time: new FakeTime() });
  const host = "api.example.org";
  for (let unsent = 0; unsent < 3; unsent += 1) await limiter.run({ host }, async grant => grant.giveBack());
  await limiter.run({ host }, async grant => {
    grant.written();
    grant.giveBack();
  });
  assert.equal(limiter.tryAcquire({ host }), undefined);
});

test("rates: none is no rate limit for its host, and leaves the others theirs", () => {
  const limits = {
    defaults: { metadata: { rates: "1/HOUR" } },
    hosts: { "free.example": { metadata: { rates: "none" } } },
  };
  const limiter = new RateLimiter(limits, { time: new FakeTime() });
  for (let call = 0; call < 1000; call += 1) assert.ok(limiter.tryAcquire({ host: "free.example" }));
  assert.deepEqual(limiter.snapshot().keys[0]?.windows, []);
  assert.ok(limiter.tryAcquire({ host: "other.example" }));
  assert.equal(limiter.tryAcquire({ host: "other.example" }), undefined);
});

test("limiters with one SQLite store keep one limit together, and a file of another program rejects", async () => {
  const folder = temporaryFolder("limiter");
  const limits = { defaults: { metadata: { rates: "3/HOUR", max_delay_ms: 0 } } };
  const limiters = [0, 1].map(() => new RateLimiter(limits, { store: `sqlite:${join(folder, "limits.db")}` }));
  const outcomes: string[] = [];
  for (let round = 0; round < 3; round += 1)
    for (const limiter of limiters) outcomes.push(await outcomeOf(limiter.acquire({ host: "a.example" })));
  assert.deepEqual(outcomes.toSorted(), [
    "RateLimitExceeded",
    "RateLimitExceeded",
    "RateLimitExceeded",
    ...Array(3).fill("granted"),
  ]);
  await Promise.all(limiters.map(limiter => limiter.close()));
  const file = join(folder, "list.csv");
  writeFileSync(file, "a list of the user\n".repeat(100));
  const wrong = new RateLimiter(limits, { store: `sqlite:${file}` });
  assert.equal(await outcomeOf(wrong.acquire({ host: "a.example", maxWaitMs: 1000 })), "StoreError");
  await wrong.close();
});

async function outcomeOf(acquired: Promise<unknown>): Promise<string> {
  try {
    await acquired;
    return "granted";
  } catch (error) {
    return (error as Error).name;
  }
}

test("an unknown option or an invalid value is an error, so that a misspelled store is noticed", () => {
  const invalid = (options: object) => () => new RateLimiter({}, options);
  assert.throws(
    invalid({ stroe: "multiprocess" }),
    /^ConfigError: RateLimiter: stroe: unknown option: did you mean store\?/,
  );
  assert.throws(
    invalid({ whenStoreAway: "wiat" }),
    /whenStoreAway: expected "share", "wait" or "refuse", found "wiat"/,
  );
  assert.throws(invalid({ fleetSize: 0 }), /fleetSize: expected a whole number of at least 1, found 0/);
});
