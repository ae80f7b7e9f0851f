import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { only, recordEvents, serve, until } from "../../test/http/kit.ts";
import { RateLimitExceeded } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { createHub } from "./create-hub.ts";
import type { HubOptions } from "./hub-options.ts";

const HOST = "127.0.0.1";
const LIMITS = { rates: "1000/SECOND", guard_ms: 0, max_delay_ms: 0 };

async function setUp(t: TestContext, options: Partial<HubOptions> = {}) {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hubOf = async () => {
    const hub = await createHub({
      env: {},
      cache: false,
      retry: false,
      time,
      policy: {
        ratelimits: { extends: "none", defaults: { metadata: LIMITS, landing: LIMITS, artifact: LIMITS } },
        breakers: { extends: "none" },
      },
      ...options,
    });
    t.after(() => hub.destroy());
    return hub;
  };
  return { time, server, hubOf };
}

test("a hold makes the calls of a host wait or refuses them, for one role or all, until it is released", async t => {
  const { time, server, hubOf } = await setUp(t);
  const hub = await hubOf();
  const events = recordEvents(hub);
  hub.limits.hold(`${HOST}:landing`, 300, { reason: "maintenance" });
  const refused = await hub.fetch(server.origin, { role: "landing" }).catch(error => error);
  assert.ok(refused instanceof RateLimitExceeded);
  assert.equal(
    refused.message,
    "an operator holds 127.0.0.1 (landing) for another 300 s: hold (maintenance), " +
      "but this call waits at most 0 ms (max_delay_ms; pass maxWaitMs to wait longer)",
  );
  assert.equal(refused.retryAfterMs, 300_000);
  assert.deepEqual(refused.decidedBy, {
    limit: "hold (maintenance)",
    value: "hold (maintenance)",
    where: "an operator's order",
    mode: "enforce",
  });
  assert.equal((await hub.fetch(server.origin)).status, 200, "other roles are not held");
  const waiting = hub.fetch(server.origin, { role: "landing", maxWaitMs: 400_000 });
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(1000);
  assert.deepEqual(
    hub.limits.list().map(({ key, role, hold, estimatedWaitMs }) => [key, role, hold, estimatedWaitMs]),
    [
      [HOST, "metadata", undefined, 0],
      [HOST, "landing", { reason: "maintenance", remainingMs: 299_000 }, 299_000],
    ],
  );
  hub.limits.release(HOST);
  assert.equal((await waiting).status, 200);
  assert.equal(only(events, "http_attempt").at(-1)?.decided_by, "hold (maintenance) (an operator's order)");
  assert.deepEqual(
    only(events, "ratelimit.cooldown").map(({ key, role, seconds }) => [key, role, seconds]),
    [[HOST, "landing", 300]],
  );
  assert.equal(hub.breakers.state(HOST).state, "closed", "a hold says nothing about the host");
});

test("of two holds the later end counts, and a hold that ends by itself lets the calls flow", async t => {
  const { time, server, hubOf } = await setUp(t);
  const hub = await hubOf();
  hub.limits.hold(HOST, 60, { reason: "long" });
  hub.limits.hold(HOST, 10, { reason: "short" });
  assert.deepEqual(hub.limits.list()[0]?.hold, { reason: "long", remainingMs: 60_000 });
  const waiting = hub.fetch(server.origin, { maxWaitMs: 60_000 });
  await until(() => hub.snapshot().waiting === 1);
  await time.advance(60_000);
  assert.equal((await waiting).status, 200);
  assert.equal(hub.limits.list()[0]?.hold, undefined);
});

test("a hold is kept in shadow mode too", async t => {
  const policy = { ratelimits: { mode: "shadow" as const }, breakers: { mode: "shadow" as const } };
  const { server, hubOf } = await setUp(t, { policy });
  const hub = await hubOf();
  hub.limits.hold(HOST, 60);
  await assert.rejects(hub.fetch(server.origin), RateLimitExceeded);
  assert.equal(server.requests.length, 0);
});

test("without a store a hold is for its own hub; with one, for all processes, until one of them releases it", async t => {
  const alone = await setUp(t);
  const [one, two] = [await alone.hubOf(), await alone.hubOf()];
  one.limits.hold(HOST, 60);
  assert.equal((await two.fetch(alone.server.origin)).status, 200);

  const folder = await mkdtemp(join(tmpdir(), "docstokg-holds-"));
  t.after(() => rm(folder, { recursive: true }));
  const { server, hubOf } = await setUp(t, { store: `sqlite:${join(folder, "shared.db")}`, time: systemTime });
  const [a, b] = [await hubOf(), await hubOf()];
  const send = async (hub: typeof a) => (await hub.fetch(server.origin).catch(error => error)).code ?? "sent";
  assert.equal(await send(b), "sent");
  a.limits.hold(HOST, 60, { reason: "quota" });
  // A record that was read a moment ago is not read again.
  while ((await send(b)) === "sent") await systemTime.sleep(20);
  assert.equal(b.limits.list()[0]?.hold?.reason, "quota");
  const late = await hubOf();
  assert.equal(await send(late), "DOCSTOKG_RATE_LIMITED", "also a process that starts later");
  b.limits.release(HOST);
  while ((await send(a)) !== "sent") await systemTime.sleep(20);
  assert.equal(await send(b), "sent");
});

test("a target without rate limits and a wrong duration are RangeErrors", async t => {
  const { hubOf } = await setUp(t);
  const { limits } = await hubOf();
  assert.throws(() => limits.hold("resolver:crossref", 9), /expected a host, <host>:<role>, a URL or service:<name>/);
  assert.throws(() => limits.release("not a host"), /"not a host" is neither a host nor a URL/);
  for (const seconds of [0, Number.NaN, Number.POSITIVE_INFINITY])
    assert.throws(() => limits.hold(HOST, seconds), /seconds must be a finite number greater than 0/);
});
