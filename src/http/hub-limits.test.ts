import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { only, recordEvents, serve, until } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { RateLimitExceeded } from "../errors.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { createHub } from "./create-hub.ts";
import type { Hub } from "./hub.ts";
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
  hub.limits.hold(`${HOST}:landing`, { seconds: 300, reason: "maintenance" });
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
      [HOST, "landing", { target: HOST, reason: "maintenance", remainingMs: 299_000 }, 299_000],
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
  hub.limits.hold(HOST, { seconds: 60, reason: "long" });
  hub.limits.hold(HOST, { seconds: 10, reason: "short" });
  assert.deepEqual(hub.limits.list()[0]?.hold, { target: HOST, reason: "long", remainingMs: 60_000 });
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
  hub.limits.hold(HOST, { seconds: 60 });
  await assert.rejects(hub.fetch(server.origin), RateLimitExceeded);
  assert.equal(server.requests.length, 0);
});

test("without a store a hold is for its own hub; with one, for all processes, until one of them releases it", async t => {
  const alone = await setUp(t);
  const [one, two] = [await alone.hubOf(), await alone.hubOf()];
  one.limits.hold(HOST, { seconds: 60 });
  assert.equal((await two.fetch(alone.server.origin)).status, 200);

  const folder = temporaryFolder("holds");
  const { server, hubOf } = await setUp(t, { store: `sqlite:${join(folder, "shared.db")}`, time: systemTime });
  const [a, b] = [await hubOf(), await hubOf()];
  const send = async (hub: typeof a) => (await hub.fetch(server.origin).catch(error => error)).code ?? "sent";
  assert.equal(await send(b), "sent");
  a.limits.hold(HOST, { seconds: 60, reason: "quota" });
  // A record that was read a moment ago is not read again.
  while ((await send(b)) === "sent") await systemTime.sleep(20);
  assert.equal(b.limits.list()[0]?.hold?.reason, "quota");
  const late = await hubOf();
  assert.equal(await send(late), "DOCSTOKG_RATE_LIMITED", "also a process that starts later");
  b.limits.release(HOST);
  while ((await send(a)) !== "sent") await systemTime.sleep(20);
  assert.equal(await send(b), "sent");
});

test("an unknown option of an order is an error: a mistyped duration would last a year", async t => {
  const { hubOf } = await setUp(t);
  const { limits, breakers } = await hubOf();
  const mistyped = { second: 5 } as object;
  assert.throws(
    () => limits.set(HOST, "1/HOUR", mistyped),
    /hub\.limits\.set: second: unknown option: did you mean seconds/,
  );
  assert.throws(() => limits.hold(HOST, { seconds: 1, ...mistyped }), /hub\.limits\.hold: second: unknown option/);
  assert.throws(() => breakers.open(HOST, { seconds: 1, ...mistyped }), /hub\.breakers\.open: second: unknown option/);
});

test("a target without rate limits and a wrong duration are RangeErrors", async t => {
  const { hubOf } = await setUp(t);
  const { limits } = await hubOf();
  assert.throws(
    () => limits.hold("resolver:crossref", { seconds: 9 }),
    /expected a host, <host>:<role>, a URL or service:<name>/,
  );
  assert.throws(() => limits.release("not a host"), /"not a host" is neither a host nor a URL/);
  assert.throws(() => limits.set(`${HOST}:max_concurrent`, "1/SECOND"), {
    name: "RangeError",
    message: `"${HOST}:max_concurrent": unknown role "max_concurrent"; expected metadata, landing or artifact; max_concurrent is an option of orders, not a target`,
  });
  assert.throws(
    () => limits.hold(`${HOST}:total`, { seconds: 9 }),
    /the total of 127\.0\.0\.1 has limits, but no circuit, cooldown or hold: name a role, or leave it out to mean all roles/,
  );
  assert.throws(
    () => limits.hold("api.example.org:8443:landng", { seconds: 9 }),
    /expected metadata, landing or artifact, "total" for the limits of all roles together, or no role/,
  );
  for (const target of ["fe80::abc", "https://api.example.org/x:total", "api.example.org/x:y"]) limits.release(target);
  // A later end could not be read from a store again.
  for (const seconds of [0, Number.NaN, Number.POSITIVE_INFINITY, 1e10])
    assert.throws(
      () => limits.hold(HOST, { seconds }),
      /seconds must be greater than 0 and at most 31622400 \(a year\)/,
    );
});

const TEN = { rates: "10/SECOND", guard_ms: 0, max_delay_ms: 0 };
const TEN_A_SECOND = {
  policy: {
    ratelimits: {
      extends: "none" as const,
      defaults: { metadata: TEN, landing: TEN, artifact: { ...TEN, rates: "1/SECOND" } },
    },
    breakers: { extends: "none" as const },
  },
};

/** Sends requests until one is refused. Returns how many were sent, and the refusal. */
async function burst(hub: Hub, origin: string) {
  for (let sent = 0; ; sent += 1) {
    const refused = await hub.fetch(origin).then(
      () => undefined,
      error => error as RateLimitExceeded,
    );
    if (refused !== undefined) return { sent, refused };
  }
}

test("an ordered rate applies at once, counts what was sent before, and ends by its time or by reset", async t => {
  const { time, server, hubOf } = await setUp(t, TEN_A_SECOND);
  const hub = await hubOf();
  const events = recordEvents(hub);
  for (let sent = 0; sent < 3; sent += 1) await hub.fetch(server.origin);
  hub.limits.set(`${HOST}:metadata`, "4/SECOND", { seconds: 60, reason: "quota", by: "ann@ops" });
  const { sent, refused } = await burst(hub, server.origin);
  assert.equal(sent, 1, "three of four were sent before the order");
  assert.equal(
    refused.message,
    "rate limit 4/SECOND of 127.0.0.1 (metadata) reached: next slot in 1.0 s, " +
      "but this call waits at most 0 ms (max_delay_ms; pass maxWaitMs to wait longer)",
  );
  assert.deepEqual(refused.decidedBy, {
    ...{ limit: "4/SECOND", value: "4/SECOND", where: "an operator's order: quota (ann@ops)", mode: "enforce" },
  });
  const [key] = hub.limits.list();
  assert.deepEqual(key?.order, {
    ...{ rates: "4/SECOND", reason: "quota", by: "ann@ops" },
    ...{ remainingMs: 60_000, isLooser: false, policyRates: "10/SECOND" },
  });
  assert.deepEqual(key?.windows, [{ rate: "4/SECOND", unit: "requests", used: 4, limit: 4, isLearned: false }]);
  await time.advance(1000);
  assert.equal((await burst(hub, server.origin)).sent, 4);
  await time.advance(58_999);
  assert.equal((await burst(hub, server.origin)).sent, 4, "just before its end");
  await time.advance(1);
  assert.equal((await burst(hub, server.origin)).sent, 6, "after its end: ten in any second");
  assert.equal(hub.limits.list()[0]?.order, undefined);
  hub.limits.set(HOST, "2/SECOND", { by: "ann@ops" });
  await time.advance(1000);
  assert.equal((await burst(hub, server.origin)).sent, 2);
  hub.limits.reset(HOST, { reason: "all is well", by: "bob@ops" });
  assert.equal((await burst(hub, server.origin)).sent, 8);
  assert.deepEqual(
    only(events, "limit_ordered")
      .filter(({ role }) => role === "metadata")
      .map(({ old, new: now, seconds, reason, by, is_looser }) => [old, now, seconds, reason, by, is_looser]),
    [
      ["10/SECOND", "4/SECOND", 60, "quota", "ann@ops", false],
      ["4/SECOND", "10/SECOND", 0, "the time of the order is over", "", false],
      ["10/SECOND", "2/SECOND", 31_622_400, "operator", "ann@ops", false],
      ["2/SECOND", "10/SECOND", 0, "all is well", "bob@ops", false],
    ],
  );
});

test("a rate that is looser than the policy needs force, and is shown as looser; a role with a stricter one keeps it", async t => {
  const { server, hubOf } = await setUp(t, TEN_A_SECOND);
  const hub = await hubOf();
  assert.throws(() => hub.limits.set(`${HOST}:artifact`, "2/SECOND"), {
    name: "RangeError",
    message: "2/SECOND is looser than 1/SECOND of 127.0.0.1 (artifact) in the policy; pass force to set it anyway",
  });
  assert.throws(
    () => hub.limits.set(HOST, "700/MINUTE"),
    /700\/MINUTE is looser than 10\/SECOND of 127\.0\.0\.1 \(metadata\)/,
  );
  hub.limits.set(HOST, "2/SECOND");
  const inForce = () => hub.limits.list().map(({ role, windows }) => [role, windows.map(({ rate }) => rate).join("+")]);
  assert.deepEqual(inForce(), [
    ["metadata", "2/SECOND"],
    ["landing", "2/SECOND"],
    ["artifact", "1/SECOND"],
  ]);
  hub.limits.set(`${HOST}:metadata`, "20/SECOND", { force: true, reason: "a load test" });
  assert.equal((await burst(hub, server.origin)).sent, 20);
  const [key] = hub.limits.list();
  assert.deepEqual(
    [key?.order?.isLooser, key?.order?.policyRates, key?.order?.reason],
    [true, "10/SECOND", "a load test"],
  );
});

test("a waiting call is refused when an order makes it too late, and starts earlier when the order ends", async t => {
  const { time, server, hubOf } = await setUp(t, TEN_A_SECOND);
  const hub = await hubOf();
  await burst(hub, server.origin);
  const impatient = hub.fetch(server.origin, { maxWaitMs: 5000 });
  const patient = hub.fetch(server.origin, { maxWaitMs: 3_600_000 });
  await until(() => hub.snapshot().waiting === 2);
  hub.limits.set(HOST, "1/HOUR", { reason: "pause" });
  const error = await impatient.catch(refused => refused);
  assert.ok(error instanceof RateLimitExceeded);
  assert.equal(error.decidedBy?.where.startsWith("an operator's order: pause ("), true);
  await time.advance(60_000);
  assert.equal(hub.snapshot().waiting, 1);
  hub.limits.reset(HOST);
  assert.equal((await patient).status, 200);
});

test("an order for a host is for the budget that counts its requests, and an order of a service for its members", async t => {
  const rates = { rates: "10/SECOND", guard_ms: 0, max_delay_ms: 0 };
  const { server, hubOf } = await setUp(t, {
    policy: {
      ratelimits: { extends: "none", services: { loop: { members: [HOST, "localhost"], metadata: rates } } },
      breakers: { extends: "none" },
    },
  });
  const hub = await hubOf();
  hub.limits.set(`${HOST}:metadata`, "3/SECOND");
  assert.equal(hub.limits.list()[0]?.key, "service loop");
  assert.equal((await burst(hub, server.origin)).sent, 3);
  assert.equal((await burst(hub, server.origin.replace(HOST, "localhost"))).sent, 0);
  hub.limits.reset("service:loop");
  assert.equal((await burst(hub, server.origin)).sent, 7);
});

test("bad rates, durations and targets of an order are RangeErrors that name them", async t => {
  const { hubOf } = await setUp(t, TEN_A_SECOND);
  const { limits } = await hubOf();
  assert.throws(() => limits.set(HOST, "fast"), /"fast" is not a rate; write <count>\/<unit>/);
  assert.throws(() => limits.set(HOST, []), /an order needs rates, such as 2\/SECOND, or max_concurrent/);
  for (const maxConcurrent of [0, 1.5, -1, Number.NaN])
    assert.throws(() => limits.set(HOST, [], { maxConcurrent }), /max_concurrent must be a whole number of at least 1/);
  assert.throws(() => limits.set("resolver:crossref", "1/SECOND"), /expected a host, <host>:<role>, a URL or service/);
  for (const seconds of [0, Number.NaN, 1e9])
    assert.throws(
      () => limits.set(HOST, "1/SECOND", { seconds }),
      /seconds must be greater than 0 and at most 31622400/,
    );
});

test("a hold is shown where it acts: at the hosts of a held service, and at the service of a held host", async t => {
  const { server, hubOf } = await setUp(t, {
    policy: {
      ratelimits: {
        extends: "none",
        services: { loop: { members: [HOST, "localhost", "c.example"], metadata: LIMITS } },
        hosts: { [HOST]: { metadata: { rates: "500/SECOND" } } },
      },
      breakers: { extends: "none" },
    },
  });
  const hub = await hubOf();
  const local = server.origin.replace(HOST, "localhost");
  await hub.fetch(server.origin);
  await hub.fetch(local);
  const shown = () =>
    hub.limits
      .list()
      .filter(({ role }) => role === "metadata")
      .map(({ key, hold, estimatedWaitMs }) => [key, hold?.target, estimatedWaitMs]);
  hub.limits.hold("service:loop", { seconds: 60 });
  assert.deepEqual(shown(), [
    [HOST, "service loop", 60_000],
    ["service loop", "service loop", 60_000],
  ]);
  hub.limits.release("service:loop");
  hub.limits.hold("localhost", { seconds: 60 });
  assert.deepEqual(shown(), [
    [HOST, undefined, 0],
    ["service loop", "localhost", 0],
  ]);
  await assert.rejects(hub.fetch(local), RateLimitExceeded);
  assert.equal((await hub.fetch(server.origin)).status, 200);
});

test("an unknown service, and a hold or circuit of a service with per_host, are errors instead of orders without effect", async t => {
  const services = { each: { per_host: true, metadata: LIMITS } };
  const policy = {
    ratelimits: { extends: "none" as const, defaults: { metadata: LIMITS }, services },
    breakers: { extends: "none" as const },
  };
  const { hubOf } = await setUp(t, { policy });
  const { limits, breakers } = await hubOf();
  const perHost =
    /service each has per_host: each of its hosts has a circuit, cooldowns and holds of its own; name the host/;
  assert.throws(() => limits.hold("service:each", { seconds: 9 }), perHost);
  assert.throws(() => breakers.open("service:each", { seconds: 9 }), perHost);
  limits.set("service:each", "1/MINUTE");
  for (const order of [
    () => limits.hold("service:eahc", { seconds: 9 }),
    () => limits.set("service:eahc", "1/MINUTE"),
    () => breakers.open("service:eahc", { seconds: 9 }),
  ])
    assert.throws(order, /unknown service "eahc"; did you mean each\?/);
});
