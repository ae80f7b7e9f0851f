import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BusyError, ConfigError, RateLimitExceeded } from "../errors.ts";
import type { Grant } from "../limiter/grant.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type AcquireRequest, RateLimiter } from "./rate-limiter.ts";

const host = "api.example.org";

function setUp(limits: RatelimitsOptions, fake: FakeTime = new FakeTime()) {
  const events: LimiterEvent[] = [];
  const limiter = new RateLimiter(limits, { time: fake, listener: event => events.push(event) });
  const nowMs = () => fake.monotonicUs() / 1000;
  /** Acquires in the background and notes when it went, or the name of the error. */
  const log: (number | string)[] = [];
  const start = (request: Partial<AcquireRequest> = {}) =>
    limiter
      .acquire({ host, ...request })
      .then(grant => {
        log.push(nowMs());
        return grant;
      })
      .catch(error => {
        log.push(error.name);
        return error;
      });
  return { limiter, time: fake, events, log, start, nowMs };
}

/** One role's limits without a guard, for every host. */
function metadata(options: NonNullable<NonNullable<RatelimitsOptions["defaults"]>["metadata"]>): RatelimitsOptions {
  return { defaults: { metadata: { guard_ms: 0, ...options } } };
}

function key(limiter: RateLimiter, role = "metadata", name = host) {
  const found = limiter.snapshot().keys.find(entry => entry.host === name && entry.role === role);
  assert.ok(found, `${name} ${role} is known`);
  return found;
}

describe("windows", () => {
  test("several windows hold at once, and what they refuse is told with the wait it would need", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "2/SECOND+10/MINUTE", max_delay_ms: 1000 }));
    for (let second = 0; second < 5; second += 1) {
      await time.advance(second === 0 ? 0 : 1000);
      await Promise.all([start(), start()]);
    }
    assert.deepEqual(log, [0, 0, 1000, 1000, 2000, 2000, 3000, 3000, 4000, 4000]);
    const error = await limiter.acquire({ host }).catch(reason => reason);
    assert.ok(error instanceof RateLimitExceeded);
    assert.equal(error.retryAfterMs, 56_000);
    assert.deepEqual(error.constraint, { kind: "window", owner: host, limit: "10/MINUTE" });
    assert.equal(key(limiter).refused, 1);
  });

  test("the ninth of eight in a second waits the whole second: a sliding log, not a paced bucket", async () => {
    const { time, start } = setUp(metadata({ rates: "8/second", max_delay_ms: 5000 }));
    const grants = Array.from({ length: 9 }, () => start());
    await time.advance(1000);
    const waits = (await Promise.all(grants)).map(grant => (grant as Grant).waitedMs);
    assert.deepEqual(waits, [0, 0, 0, 0, 0, 0, 0, 0, 1000]);
  });

  test("eight a second and twelve a minute: eight now, four after a second, the thirteenth after a minute", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "8/s+12/min", max_delay_ms: 60_000 }));
    for (let call = 0; call < 13; call += 1) start();
    await time.advance(60_000);
    assert.deepEqual(log, [...Array(8).fill(0), ...Array(4).fill(1000), 60_000]);
    const refusal = limiter.tryAcquire({ host });
    assert.equal(refusal.isGranted, true);
  });

  test("a refusal names the window that binds longest", () => {
    const { limiter } = setUp(metadata({ rates: "8/s+8/min" }));
    for (let call = 0; call < 8; call += 1) assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.constraint.limit, "8/MINUTE");
    assert.equal(refusal.retryAfterMs, 60_000);
  });

  test("hosts are limited separately, in whatever spelling they come", () => {
    const { limiter } = setUp(metadata({ rates: "1/s" }));
    assert.equal(limiter.tryAcquire({ host: "MÜNCHEN.example." }).isGranted, true);
    assert.equal(limiter.tryAcquire({ host: "xn--mnchen-3ya.example" }).isGranted, false);
    assert.equal(limiter.tryAcquire({ host: "b.example" }).isGranted, true);
    assert.throws(() => limiter.tryAcquire({ host: "not a host" }), RangeError);
  });

  test("the guard widens every window", async () => {
    const { time, start, log } = setUp({ defaults: { metadata: { rates: "1/s", max_delay_ms: 5000 } } });
    start();
    start();
    await time.advance(2000);
    assert.deepEqual(log, [0, 1025]);
  });

  test("a smooth key is spaced evenly and leaves two of its requests unused", async () => {
    const { time, start, log } = setUp(metadata({ rates: "6/s", shape: "smooth", max_delay_ms: 5000 }));
    for (let call = 0; call < 5; call += 1) start();
    await time.advance(2000);
    assert.deepEqual(log, [0, 250, 500, 750, 1000]);
  });
});

describe("roles, hosts and groups", () => {
  const roles: RatelimitsOptions = {
    defaults: {
      metadata: { rates: "1/s", max_delay_ms: 200, guard_ms: 0 },
      artifact: { rates: "1/s", max_delay_ms: 2000, guard_ms: 0 },
    },
  };

  test("each role has its own windows, bound and counters", async () => {
    const { limiter, time, start, log } = setUp(roles);
    start({ role: "metadata" });
    start({ role: "metadata" });
    const first = start({ role: "artifact" });
    const second = start({ role: "artifact" });
    await time.advance(1000);
    assert.deepEqual(log.sort(), [0, 0, 1000, "RateLimitExceeded"].sort());
    assert.equal(((await first) as Grant).waitedMs, 0);
    assert.equal(((await second) as Grant).waitedMs, 1000);
    assert.deepEqual([key(limiter).acquired, key(limiter).refused], [1, 1]);
    assert.deepEqual([key(limiter, "artifact").acquired, key(limiter, "artifact").refused], [2, 0]);
  });

  test("a host's total holds over all its roles, and a refusal charges no window", () => {
    const { limiter } = setUp({
      ...roles,
      hosts: { [host]: { total: { rates: "1/10s", guard_ms: 0 } } },
    });
    assert.equal(limiter.tryAcquire({ host, role: "metadata" }).isGranted, true);
    const refusal = limiter.tryAcquire({ host, role: "artifact" });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.constraint.limit, "1/10SECOND");
    assert.equal(refusal.retryAfterMs, 10_000);
    assert.equal(key(limiter, "artifact").windows[0]?.used, 0);
  });

  test("members of a group share its budget, and only they", () => {
    const { limiter } = setUp({
      groups: { arxiv: { members: ["export.arxiv.org", "arxiv.org"], total: { rates: "1/3SECOND" } } },
    });
    assert.equal(limiter.tryAcquire({ host: "export.arxiv.org" }).isGranted, true);
    assert.equal(limiter.tryAcquire({ host: "arxiv.org", role: "artifact" }).isGranted, false);
    assert.equal(limiter.tryAcquire({ host: "zenodo.org", role: "artifact" }).isGranted, true);
  });

  test("a group can split one host by path", () => {
    const { limiter } = setUp({
      groups: {
        ols4: { members: ["www.ebi.ac.uk/ols4"], metadata: { rates: "1/s" } },
        europepmc: { members: ["www.ebi.ac.uk/europepmc/"], metadata: { rates: "1/s" } },
      },
    });
    const call = (path: string) => limiter.tryAcquire({ host: "www.ebi.ac.uk", path }).isGranted;
    assert.deepEqual(
      [
        call("/ols4/api/x"),
        call("/ols4"),
        call("/europepmc/webservices"),
        call("/ols4x"),
        call("/"),
        call("/europepmc"),
      ],
      [true, false, true, true, true, false],
    );
  });

  test("a listed member keeps its own lanes, inherits what it does not name, and shares the group's total", () => {
    const { limiter } = setUp({
      groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "3/s" }, total: { rates: "4/s" } } },
      hosts: { "a.example": { metadata: { max_delay_ms: 7 } } },
    });
    const grants = (name: string) =>
      Array.from({ length: 5 }, () => limiter.tryAcquire({ host: name }).isGranted).filter(Boolean).length;
    assert.equal(grants("a.example"), 3);
    assert.equal(grants("b.example"), 1);
  });

  test("HEAD spends no token where count_head is false, and does where it is true", async () => {
    const free = setUp(metadata({ rates: "2/s", count_head: false, max_delay_ms: 5000 }));
    for (let call = 0; call < 50; call += 1) free.start({ method: "HEAD" });
    for (let call = 0; call < 3; call += 1) free.start();
    await free.time.advance(1000);
    assert.deepEqual(free.log, [...Array(52).fill(0), 1000]);
    assert.equal(key(free.limiter).headSkipped, 50);
    assert.equal(free.limiter.tryAcquire({ host, method: "head" }).isGranted, true);
    const counted = setUp(metadata({ rates: "2/s", count_head: true, max_delay_ms: 5000 }));
    for (let call = 0; call < 3; call += 1) counted.start({ method: "HEAD" });
    await counted.time.advance(1000);
    assert.deepEqual(counted.log, [0, 0, 1000]);
  });

  test("a HEAD without a token still needs a slot, and does not queue behind those who wait for the rate", async () => {
    const { time, start, log } = setUp(metadata({ rates: "1/10s", max_concurrent: 1, max_delay_ms: 60_000 }));
    const first = (await start()) as Grant;
    start();
    const head = start({ method: "HEAD" });
    await time.advance(100);
    assert.deepEqual(log, [0]);
    first.release();
    assert.equal(((await head) as Grant).waitedMs, 100);
    assert.deepEqual(log, [0, 100]);
  });
});

describe("refusing", () => {
  test("a bounded wait is refused at once when it cannot be met, and leaves nothing behind", async () => {
    const { limiter, time, start, log, nowMs } = setUp(
      metadata({ rates: "1/s", max_delay_ms: 100, max_concurrent: 9 }),
    );
    const grant = (await start()) as Grant;
    await start();
    assert.deepEqual(log, [0, "RateLimitExceeded"]);
    assert.equal(nowMs(), 0);
    grant.release();
    assert.equal(limiter.snapshot().inFlight, 0);
    assert.equal(time.armedTimers, 0);
  });

  test("those ahead in line count: the bound is judged by the place, not by the next free slot", async () => {
    const { time, start, log } = setUp(metadata({ rates: "2/s", max_delay_ms: 2000 }));
    for (let call = 0; call < 7; call += 1) start();
    await time.advance(0);
    assert.deepEqual(log, [0, 0, "RateLimitExceeded"]);
    await time.advance(3000);
    assert.deepEqual(log, [0, 0, "RateLimitExceeded", 1000, 1000, 2000, 2000]);
  });

  test("maxWaitMs of the call overrides the policy: 0 fails fast, Infinity waits", async () => {
    const { time, start, log } = setUp(metadata({ rates: "1/s", max_delay_ms: 100 }));
    start();
    start({ maxWaitMs: 0 });
    start({ maxWaitMs: Number.POSITIVE_INFINITY });
    start({ maxWaitMs: 1999 });
    await time.advance(2000);
    assert.deepEqual(log, [0, "RateLimitExceeded", "RateLimitExceeded", 1000]);
  });

  test("a second window far away refuses those behind a long line", async () => {
    const { time, start, log } = setUp(metadata({ rates: "8/s+12/min", max_delay_ms: 5000 }));
    for (let call = 0; call < 21; call += 1) start();
    await time.advance(2000);
    assert.deepEqual(log, [...Array(8).fill(0), ...Array(9).fill("RateLimitExceeded"), ...Array(4).fill(1000)]);
  });

  test("a shared total forecasts by turns: what waits in the other lane counts too", () => {
    const { limiter, start } = setUp({
      defaults: { metadata: { rates: "99/s", guard_ms: 0 }, artifact: { rates: "99/s", guard_ms: 0 } },
      hosts: { [host]: { total: { rates: "1/3s", guard_ms: 0 } } },
    });
    limiter.tryAcquire({ host });
    for (let call = 0; call < 4; call += 1) start({ role: "artifact", maxWaitMs: Number.POSITIVE_INFINITY });
    for (let call = 0; call < 4; call += 1) start({ role: "metadata", maxWaitMs: Number.POSITIVE_INFINITY });
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.retryAfterMs, 27_000);
  });

  test("a weight that no window could grant, a bad weight and a bad bound are the caller's mistakes", async () => {
    const { limiter } = setUp(metadata({ rates: "8/s+100/min" }));
    await assert.rejects(limiter.acquire({ host, weight: 9 }), /weight 9 can never pass 8\/SECOND of api.example.org/);
    await assert.rejects(limiter.acquire({ host, weight: 0 }), RangeError);
    await assert.rejects(limiter.acquire({ host, weight: 1.5 }), RangeError);
    await assert.rejects(limiter.acquire({ host, maxWaitMs: -1 }), RangeError);
    await assert.rejects(limiter.acquire({ host, maxWaitMs: Number.NaN }), RangeError);
    const pdf = JSON.parse('{ "host": "a.example", "role": "pdf" }');
    assert.throws(() => limiter.tryAcquire(pdf), /"pdf" is no role; the roles are metadata, landing, artifact/);
    assert.throws(() => limiter.tryAcquire(JSON.parse("{}")), /a host must be a string/);
  });

  test("limits that make no sense are all told at once, with their places", () => {
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

  test("a field left undefined is inherited: nothing that is not said means unlimited", () => {
    const options = JSON.parse("{}");
    const limiter = new RateLimiter({ defaults: { metadata: { rates: options.nothing } } }, { time: new FakeTime() });
    const granted = Array.from({ length: 20 }, () => limiter.tryAcquire({ host }).isGranted).filter(Boolean).length;
    assert.equal(granted, 10);
  });
});

describe("waiting", () => {
  test("an aborted waiter is gone at once, with its reason, and nobody waits for it", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "1/s", max_delay_ms: 10_000 }));
    start();
    const abort = new AbortController();
    const aborted = limiter.acquire({ host, signal: abort.signal });
    start();
    await time.advance(500);
    const reason = new Error("no longer needed");
    abort.abort(reason);
    await assert.rejects(aborted, error => error === reason);
    await time.advance(500);
    assert.deepEqual(log, [0, 1000]);
    assert.equal(limiter.snapshot().waiting, 0);
    assert.equal(time.armedTimers, 0);
    await assert.rejects(limiter.acquire({ host, signal: abort.signal }), error => error === reason);
  });

  test("after aborts a newcomer is judged by those who are left", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "1/s", max_delay_ms: 2000 }));
    start();
    const abort = new AbortController();
    const waiting = [1, 2].map(() => limiter.acquire({ host, signal: abort.signal }).catch(() => "aborted"));
    await start();
    assert.deepEqual(log, [0, "RateLimitExceeded"]);
    abort.abort();
    assert.deepEqual(await Promise.all(waiting), ["aborted", "aborted"]);
    start();
    start();
    await time.advance(3000);
    assert.deepEqual(log, [0, "RateLimitExceeded", 1000, 2000]);
  });

  test("after a stall of ten seconds a window's worth goes out, not the backlog", async () => {
    const { time, start, log } = setUp(metadata({ rates: "10/s", max_delay_ms: 60_000 }));
    for (let call = 0; call < 130; call += 1) start();
    await time.advance(0);
    await time.stall(10_000);
    assert.equal(log.length, 20);
    await time.advance(999);
    assert.equal(log.length, 20);
    await time.advance(1);
    assert.equal(log.length, 30);
  });

  test("a timer that comes early lets nobody through early", async () => {
    const time = new FakeTime({ earlyUs: () => 1000 });
    const { start, log } = setUp(metadata({ rates: "1/s", max_delay_ms: 60_000 }), time);
    for (let call = 0; call < 5; call += 1) start();
    await time.advance(10_000);
    for (const [call, sentMs] of log.entries()) assert.ok((sentMs as number) >= call * 1000, `${call} at ${sentMs}`);
  });

  test("a heavy request waits for enough room and is not overtaken by light ones behind it", async () => {
    const { time, start, log } = setUp(metadata({ rates: "4/s", max_delay_ms: 60_000 }));
    for (let call = 0; call < 2; call += 1) start();
    await time.advance(500);
    start();
    start({ weight: 4 });
    start();
    await time.advance(3000);
    assert.deepEqual(log, [0, 0, 500, 1500, 2500]);
  });
});

describe("run", () => {
  /** Two calls one after the other through a window of one; answers when the second began. */
  async function secondBeganMs(send: (time: FakeTime, written: () => void) => Promise<void>) {
    const { limiter, time, nowMs } = setUp(metadata({ rates: "1/s", max_delay_ms: 60_000 }));
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

  test("a request counts until it is answered", async () => {
    assert.equal((await secondBeganMs(time => time.sleep(700))).secondMs, 1700);
  });

  test("a request that says when it was written counts from then", async () => {
    const send = async (time: FakeTime, written: () => void) => {
      await time.sleep(100);
      written();
      await time.sleep(600);
    };
    assert.equal((await secondBeganMs(send)).secondMs, 1100);
  });

  test("a request that fails counts until it failed, and its error is the caller's", async () => {
    const send = async (time: FakeTime) => {
      await time.sleep(300);
      throw new Error("no answer");
    };
    assert.deepEqual(await secondBeganMs(send), { secondMs: 1300, ends: ["no answer", "no answer"] });
  });
});

describe("slots", () => {
  /** Holds each grant for 100 ms and reports the most that were held at once. */
  async function crowd({ limiter, time }: ReturnType<typeof setUp>, calls: number) {
    let held = 0;
    let most = 0;
    const work = async () => {
      using _grant = await limiter.acquire({ host });
      held += 1;
      most = Math.max(most, held);
      await time.sleep(100);
      held -= 1;
    };
    const done = Promise.all(Array.from({ length: calls }, work)).then(() => time.monotonicUs() / 1000);
    await time.advance(5000);
    return { most, doneMs: await done };
  }

  test("ten calls through a ceiling of three all succeed, three at a time", async () => {
    const set = setUp({ ...metadata({ rates: "100/s", max_delay_ms: 100 }), global: { max_inflight: 3 } });
    const { most, doneMs } = await crowd(set, 10);
    assert.equal(most, 3);
    assert.equal(doneMs, 400);
    assert.equal(set.limiter.snapshot().inFlight, 0);
  });

  test("a role's cap holds as a default, and leaves the other roles alone", async () => {
    const { start, log, time } = setUp({
      defaults: { metadata: { rates: "9/s", max_concurrent: 1 }, artifact: { rates: "9/s", max_concurrent: 1 } },
    });
    const first = (await start()) as Grant;
    start();
    start({ role: "artifact" });
    await time.advance(250);
    assert.deepEqual(log, [0, 0]);
    first.release();
    first.release();
    await time.advance(0);
    assert.deepEqual(log, [0, 0, 250]);
  });

  test("who may not wait is told that it is busy, and nobody guesses for how long", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "9/s", max_concurrent: 1 }));
    await start();
    const error = await limiter.acquire({ host, maxWaitMs: 0 }).catch(reason => reason);
    assert.ok(error instanceof BusyError);
    assert.equal(error.retryAfterMs, undefined);
    assert.deepEqual(error.constraint, { kind: "concurrency", owner: host, limit: "max_concurrent 1" });
    const late = limiter.acquire({ host, maxWaitMs: 300 }).catch(reason => reason.name);
    await time.advance(299);
    assert.equal(limiter.snapshot().waiting, 1);
    await time.advance(1);
    assert.equal(await late, "BusyError");
    assert.equal(limiter.snapshot().waiting, 0);
    assert.equal(time.armedTimers, 0);
    assert.deepEqual(log, [0]);
  });

  test("nobody holds a global slot while waiting for a rate", async () => {
    const { limiter, start, time } = setUp({
      ...metadata({ rates: "99/s", max_delay_ms: 60_000 }),
      hosts: { "slow.example": { metadata: { rates: "1/3s" } } },
      global: { max_inflight: 1 },
    });
    ((await start({ host: "slow.example" })) as Grant).release();
    start({ host: "slow.example" });
    await time.advance(0);
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
  });

  test("under the global ceiling hosts take turns, however many of one host wait", async () => {
    const { limiter, time } = setUp({ ...metadata({ rates: "999/s" }), global: { max_inflight: 1 } });
    const order: string[] = [];
    const work = async (name: string, role: "metadata" | "artifact" = "metadata") => {
      using _grant = await limiter.acquire({ host: name, role, maxWaitMs: Number.POSITIVE_INFINITY });
      order.push(name[0] as string);
      await time.sleep(1);
    };
    const all = [
      ...Array.from({ length: 6 }, () => work("a.example")),
      ...Array.from({ length: 2 }, () => work("a.example", "artifact")),
      ...Array.from({ length: 3 }, () => work("b.example")),
      ...Array.from({ length: 2 }, () => work("c.example")),
    ];
    await time.advance(100);
    await Promise.all(all);
    assert.equal(order.join(""), "aabcabcabaaaa");
  });

  test("under a host's total the roles take turns, and a heavy request pays with turns for its weight", async () => {
    const rates = { rates: "999/s", guard_ms: 0, max_delay_ms: 1e9 };
    const { limiter, time } = setUp({
      defaults: { metadata: rates, artifact: rates },
      hosts: { [host]: { total: { rates: "4/s", guard_ms: 0 } } },
    });
    const order: string[] = [];
    const start = (role: "metadata" | "artifact", weight: number, name: string) =>
      limiter.acquire({ host, role, weight }).then(() => order.push(name));
    const all = [start("metadata", 4, "-")];
    for (let call = 0; call < 3; call += 1) all.push(start("artifact", 3, "A"));
    for (let call = 0; call < 9; call += 1) all.push(start("metadata", 1, "m"));
    await time.advance(60_000);
    await Promise.all(all);
    assert.equal(order.join(""), "-AmmmAmmmAmmm");
  });
});

describe("pace", () => {
  const aimd = { enabled: true, window_s: 60 };

  test("429s slow a key down by stretching its windows, and calm windows let it recover", async () => {
    const { limiter, time, events } = setUp({
      ...metadata({ rates: "10/s" }),
      aimd,
    });
    const answers = (ok: number, throttled: number) => {
      for (let call = 0; call < ok; call += 1) limiter.recordSuccess({ host });
      for (let call = 0; call < throttled; call += 1) limiter.record429({ host });
    };
    const seen: number[] = [];
    for (let window = 0; window < 6; window += 1) {
      answers(95, 5);
      await time.advance(60_000);
      limiter.tickAimd();
      seen.push(key(limiter).multiplier);
    }
    assert.deepEqual(seen, [0.8, 0.64, 0.512, 0.41, 0.328, 0.3]);
    answers(96, 4);
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 0.3);
    answers(90, 0);
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 0.35);
    const adjusted = events.filter(event => event.event_type === "aimd_adjust");
    assert.deepEqual(adjusted[0], {
      event_type: "aimd_adjust",
      host,
      role: "metadata",
      old: 1,
      new: 0.8,
      reason: "5 of 100 throttled",
    });
    assert.equal(adjusted.length, 7);
  });

  test("at 0.8 ten in a second become ten in 1250 ms, which is eight in a second", async () => {
    const { limiter, time, start, log } = setUp({ ...metadata({ rates: "10/s", max_delay_ms: 60_000 }), aimd });
    for (let call = 0; call < 10; call += 1) limiter.recordSuccess({ host });
    limiter.record429({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    for (let call = 0; call < 20; call += 1) start();
    await time.advance(3000);
    const guardMs = key(limiter).guardMs;
    assert.deepEqual(
      log.map(ms => (ms as number) - 60_000),
      [...Array(10).fill(0), ...Array(10).fill(1250 + guardMs)],
    );
  });

  test("a key slowed down keeps its history: a minute that is spent stays spent", async () => {
    const { limiter, time } = setUp({ ...metadata({ rates: "10/MINUTE" }), aimd: { enabled: true, window_s: 10 } });
    for (let call = 0; call < 10; call += 1) {
      assert.equal(limiter.tryAcquire({ host }).isGranted, true);
      limiter.record429({ host });
    }
    await time.advance(10_000);
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 0.8);
    for (let second = 0; second < 64; second += 1) {
      assert.equal(limiter.tryAcquire({ host }).isGranted, false);
      await time.advance(1000);
    }
  });

  test("one in three seconds can be slowed down too, and so can a host that nobody listed", async () => {
    const { limiter, time } = setUp({ hosts: { [host]: { metadata: { rates: "1/3SECOND", guard_ms: 0 } } }, aimd });
    for (const name of [host, "unlisted.example"]) {
      for (let call = 0; call < 10; call += 1) limiter.record429({ host: name });
    }
    await time.advance(60_000);
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 0.8);
    assert.equal(key(limiter, "metadata", "unlisted.example").multiplier, 0.8);
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.retryAfterMs, 3750 + 25);
  });

  test("a 429 although the windows were kept widens the guard, a burst of them only once", async () => {
    const { limiter, time, events } = setUp({ defaults: { metadata: { rates: "10/s" } } });
    for (let call = 0; call < 5; call += 1) limiter.record429({ host });
    assert.equal(key(limiter).guardMs, 50);
    await time.advance(2000);
    for (let again = 0; again < 3; again += 1) {
      limiter.record429({ host });
      await time.advance(2000);
    }
    assert.equal(key(limiter).guardMs, 250);
    assert.equal(key(limiter).shape, "burst");
    limiter.record429({ host });
    assert.equal(key(limiter).shape, "smooth");
    assert.deepEqual(
      events.map(event => ("new" in event ? event.new : event.event_type)),
      [50, 100, 200, 250, "smooth"],
    );
    await time.advance(3_600_000);
    limiter.tickAimd();
    assert.equal(key(limiter).guardMs, 125);
  });

  test("a waiter notices at once when its key is allowed to go faster", async () => {
    const { limiter, time, start, log } = setUp({
      ...metadata({ rates: "1/100s", max_delay_ms: 1e9 }),
      aimd: { enabled: true, window_s: 1, decrease_step_pct: 50, increase_step_pct: 50 },
    });
    for (let call = 0; call < 10; call += 1) limiter.record429({ host });
    await time.advance(1000);
    start();
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 0.5);
    start();
    limiter.recordSuccess({ host });
    await time.advance(1000);
    limiter.tickAimd();
    assert.equal(key(limiter).multiplier, 1);
    await time.advance(100_000);
    assert.deepEqual(log, [1000, 101_000 + key(limiter).guardMs]);
  });
});

describe("keeping", () => {
  test("a key is forgotten only when nothing of it could be missed", async () => {
    const { limiter, time } = setUp(metadata({ rates: "1/MINUTE", max_concurrent: 5 }));
    const held = limiter.tryAcquire({ host: "held.example" });
    limiter.record429({ host: "wary.example" });
    const visit = (name: string) => limiter.tryAcquire({ host: name }) as Grant;
    for (let visits = 0; visits < 50; visits += 1) visit(`h${visits}.example`).release();
    assert.equal(limiter.snapshot().keys.length, 52);
    assert.equal(visit("h7.example").isGranted, false);
    await time.advance(60_000);
    for (let visits = 50; visits < 100; visits += 1) visit(`h${visits}.example`).release();
    const names = limiter.snapshot().keys.map(entry => entry.host);
    assert.ok(names.length <= 54, `${names.length} keys`);
    assert.ok(names.includes("held.example"));
    assert.ok(names.includes("wary.example"));
    (held as Grant).release();
  });

  test("a listener hears of every grant, refusal and abort, and one that throws breaks nothing", async () => {
    const { limiter, events, time } = setUp(metadata({ rates: "1/s", max_delay_ms: 5000 }));
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
    assert.equal(rude.tryAcquire({ host }).isGranted, true);
    assert.equal((await warned).message, "the listener is broken");
  });
});

describe("reloading", () => {
  const slow = metadata({ rates: "2/s", max_delay_ms: 60_000 });

  test("new limits hold at once, and what was sent still counts", async () => {
    const { limiter, time } = setUp(metadata({ rates: "10/MINUTE" }));
    for (let call = 0; call < 8; call += 1) assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    await time.advance(1000);
    limiter.reload(metadata({ rates: "9/MINUTE" }));
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.retryAfterMs, 59_000);
    limiter.reload(metadata({ rates: "20/MINUTE" }));
    const more = Array.from({ length: 20 }, () => limiter.tryAcquire({ host }).isGranted).filter(Boolean).length;
    assert.equal(more, 11);
  });

  test("a longer window than was remembered takes the worst for true", async () => {
    const { limiter, time } = setUp(metadata({ rates: "10/s" }));
    for (let second = 0; second < 10; second += 1) {
      for (let call = 0; call < 10; call += 1) limiter.tryAcquire({ host });
      await time.advance(1000);
    }
    limiter.reload(metadata({ rates: "50/HOUR" }));
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.ok((refusal.retryAfterMs ?? 0) > 3_580_000, String(refusal.retryAfterMs));
  });

  test("whoever waits stays in line and goes at the new pace, in the same order", async () => {
    const { limiter, time, log } = setUp(slow);
    const order: string[] = [];
    for (const name of ["a", "b", "c", "d", "e", "f"]) {
      limiter.acquire({ host }).then(() => order.push(`${name} ${time.monotonicUs() / 1000}`));
    }
    await time.advance(500);
    limiter.reload(metadata({ rates: "4/s", max_delay_ms: 60_000 }));
    await time.advance(500);
    assert.deepEqual(order, ["a 0", "b 0", "c 500", "d 500", "e 1000", "f 1000"]);
    assert.deepEqual(log, []);
    assert.equal(time.armedTimers, 0);
  });

  test("newcomers are judged by what holds now, not by what was foretold under the old limits", async () => {
    const { limiter, time, start } = setUp(metadata({ rates: "1/10s", max_delay_ms: 1e9 }));
    for (let call = 0; call < 6; call += 1) start();
    await time.advance(150);
    limiter.reload(metadata({ rates: "1/s", max_delay_ms: 1e9 }));
    const refusal = limiter.tryAcquire({ host });
    assert.ok(!refusal.isGranted);
    assert.equal(refusal.retryAfterMs, 5850);
  });

  test("a reload can end what was learned: the pace without aimd, the shape by policy", async () => {
    const { limiter, time } = setUp({ ...metadata({ rates: "10/s", shape: "smooth" }), aimd: { enabled: true } });
    for (let call = 0; call < 10; call += 1) limiter.record429({ host });
    await time.advance(60_000);
    limiter.tickAimd();
    assert.deepEqual([key(limiter).multiplier, key(limiter).shape], [0.8, "smooth"]);
    limiter.reload(metadata({ rates: "10/s" }));
    assert.deepEqual([key(limiter).multiplier, key(limiter).shape], [1, "burst"]);
  });

  test("a total or a group that is added counts what is in flight, one that is removed is forgotten", async () => {
    const { limiter, time, start, log } = setUp(metadata({ rates: "99/s", max_concurrent: 9, max_delay_ms: 9000 }));
    const held = [(await start()) as Grant, (await start()) as Grant];
    const capped = {
      ...metadata({ rates: "99/s", max_delay_ms: 9000 }),
      hosts: { [host]: { total: { max_concurrent: 2 } } },
    };
    limiter.reload(capped);
    start();
    await time.advance(100);
    assert.deepEqual(log, [0, 0]);
    held[0]?.release();
    await time.advance(0);
    assert.deepEqual(log, [0, 0, 100]);
    limiter.reload(metadata({ rates: "99/s" }));
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    limiter.reload({ ...capped, groups: { one: { members: ["b.example"], total: { rates: "1/s" } } } });
    assert.equal(limiter.tryAcquire({ host }).isGranted, false);
    held[1]?.release();
  });

  test("a host that joins a group takes those who wait along", async () => {
    const { limiter, time, start, log } = setUp(slow);
    for (let call = 0; call < 3; call += 1) start();
    await time.advance(100);
    limiter.reload({
      ...slow,
      groups: { pair: { members: [host, "b.example"], metadata: { rates: "1/10s", guard_ms: 0 } } },
    });
    await time.advance(9000);
    assert.deepEqual(log, [0, 0, 100]);
    assert.equal(limiter.tryAcquire({ host: "b.example" }).isGranted, false);
  });

  test("a total that nobody used when the limits changed has the new numbers all the same", async () => {
    const total = (rates: string) => ({
      ...metadata({ rates: "99/s" }),
      hosts: { [host]: { total: { rates, guard_ms: 0 } } },
    });
    const { limiter, time } = setUp(total("50/s"));
    limiter.tryAcquire({ host });
    await time.advance(60_000);
    for (let visit = 0; visit < 9; visit += 1) limiter.tryAcquire({ host: `h${visit}.example` });
    limiter.reload(total("1/s"));
    const granted = Array.from({ length: 3 }, () => limiter.tryAcquire({ host }).isGranted).filter(Boolean).length;
    assert.equal(granted, 1);
  });

  test("a group keeps its history when the member that was there first leaves it", () => {
    const group = (...members: string[]) => ({
      groups: { pair: { members, metadata: { rates: "1/HOUR", guard_ms: 0 } } },
    });
    const { limiter } = setUp(group("a.example", "b.example"));
    assert.equal(limiter.tryAcquire({ host: "a.example" }).isGranted, true);
    limiter.reload(group("b.example", "c.example"));
    assert.equal(limiter.tryAcquire({ host: "b.example" }).isGranted, false);
    assert.throws(() => limiter.tryAcquire({ host: "group pair" }), RangeError);
  });

  test("hosts that come together in a group are served in the order of their arrival", async () => {
    const { limiter, time } = setUp(slow);
    const order: string[] = [];
    for (const name of ["a.example", "b.example"])
      for (let call = 0; call < 2; call += 1) limiter.tryAcquire({ host: name });
    for (const name of ["a1", "b1", "a2", "b2"]) {
      limiter.acquire({ host: `${name[0]}.example` }).then(() => order.push(name));
      await time.advance(10);
    }
    limiter.reload({
      ...slow,
      groups: { pair: { members: ["a.example", "b.example"], metadata: { rates: "1/s", guard_ms: 0 } } },
    });
    await time.advance(10_000);
    assert.deepEqual(order, ["a1", "b1", "a2", "b2"]);
  });

  test("a weight that the new limits could never grant is told so", async () => {
    const { limiter, time, start } = setUp(metadata({ rates: "4/s", max_delay_ms: 60_000 }));
    start({ weight: 4 });
    const heavy = start({ weight: 4 });
    await time.advance(0);
    limiter.reload(metadata({ rates: "3/s", max_delay_ms: 60_000 }));
    assert.match(String(await heavy), /weight 4 can never pass 3\/SECOND/);
  });

  test("limits that make no sense are refused, and the old ones stay", () => {
    const { limiter } = setUp(metadata({ rates: "1/s" }));
    assert.throws(() => limiter.reload(metadata({ rates: "nonsense" })), ConfigError);
    assert.equal(limiter.tryAcquire({ host }).isGranted, true);
    assert.equal(limiter.tryAcquire({ host }).isGranted, false);
    assert.throws(() => limiter.reload({ backend: { kind: "redis" } }), /keeps its state in memory/);
  });
});

test("a program that never releases is neither stuck nor remembered for ever, as long as nothing is capped", async () => {
  const { limiter, time } = setUp(metadata({ rates: "1/s" }));
  for (let day = 0; day < 5; day += 1) {
    for (let visit = 0; visit < 100; visit += 1) limiter.tryAcquire({ host: `d${day}h${visit}.example` });
    await time.advance(86_400_000);
  }
  assert.equal(limiter.snapshot().inFlight, 0);
  assert.ok(limiter.snapshot().keys.length <= 200, `${limiter.snapshot().keys.length} keys`);
});
