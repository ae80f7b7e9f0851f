import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { assertNothingLeft, hubFor, serve } from "../../test/http/kit.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { FakeTime } from "../testing/fake-time.ts";

const HOST = "127.0.0.1";
const metadata = { rates: "2/MINUTE", guard_ms: 0, max_delay_ms: 0, per: "partition" } as const;

/** A hub with a limit per partition, and a function that tells how a call of a partition ends. */
async function world(t: Parameters<typeof serve>[0], hosts: object, options: Parameters<typeof hubFor>[1] = {}) {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const hub = await hubFor(t, { time, cache: false, retry: false, limits: { hosts: { [HOST]: hosts } }, ...options });
  const call = async (partition?: string) => {
    try {
      await (await hub.fetch(server.origin, { partition })).text();
      return "sent";
    } catch (error) {
      return (error as { readonly constraint?: { readonly owner: string } }).constraint?.owner ?? String(error);
    }
  };
  const calls = async (...partitions: readonly (string | undefined)[]) => {
    const ends = [];
    for (const partition of partitions) ends.push(await call(partition));
    return ends;
  };
  return { time, server, hub, calls };
}

test("each partition has a budget of its own, and calls without one share the common budget", async t => {
  const { calls, hub } = await world(t, { metadata });
  const keys = () => hub.snapshot().keys.map(({ key }) => key);
  assert.deepEqual(await calls("a", "a", "b", "b", undefined, undefined), Array(6).fill("sent"));
  const [refusedA, refusedB, refused] = await calls("a", "b", undefined);
  assert.match(refusedA ?? "", /^127\.0\.0\.1#[0-9a-f]{16}$/);
  assert.notEqual(refusedA, refusedB);
  assert.equal(refused, HOST);
  assert.deepEqual(keys().sort(), [HOST, refusedA, refusedB].sort());
  assertNothingLeft(hub);
});

test("the total of the host stays common to all partitions", async t => {
  const { calls } = await world(t, { metadata, total: { rates: "3/MINUTE", guard_ms: 0 } });
  assert.deepEqual(await calls("a", "b", "c", "d"), ["sent", "sent", "sent", HOST]);
});

test("without per: partition all partitions share the budget", async t => {
  const { calls } = await world(t, { metadata: { ...metadata, per: "all" } });
  assert.deepEqual(await calls("a", "b", "c"), ["sent", "sent", HOST]);
});

test("partitions of a service share the total of the service, and a role inherits per from the defaults", async t => {
  const time = new FakeTime();
  const server = await serve(t, (_, response) => response.end("ok"));
  const service = { members: [HOST], metadata, total: { rates: "3/MINUTE", guard_ms: 0 } };
  const hub = await hubFor(t, { time, cache: false, limits: { defaults: { metadata }, services: { g: service } } });
  for (const partition of ["a", "b", "a"]) await (await hub.fetch(server.origin, { partition })).text();
  await assert.rejects(hub.fetch(server.origin, { partition: "c" }), {
    constraint: { kind: "window", owner: "service g", limit: "3/MINUTE" },
  });
  assert.equal(hub.policyFor("other.example", "metadata").role, "metadata");
});

test("an idle partition is forgotten, and its window is not reset by that", async t => {
  const { calls, hub, time } = await world(t, { metadata });
  await calls("a", "a");
  await time.advance(59_999);
  for (let at = 0; at < 50; at += 1) await calls(`tenant ${at}`);
  assert.notEqual((await calls("a"))[0], "sent", "its window has not passed");
  await time.advance(60_001);
  // A hub keeps 1,024 idle keys.
  for (let at = 0; at < 1000; at += 1) await calls(`later tenant ${at}`);
  await time.advance(60_001);
  for (let at = 0; at < 100; at += 1) await calls(`last tenant ${at}`);
  assert.ok(hub.snapshot().keys.length < 1050, `${hub.snapshot().keys.length} keys`);
  assert.deepEqual(await calls("a"), ["sent"]);
});

test("a reload changes the limit of every partition and keeps what it has used", async t => {
  const { calls, hub } = await world(t, { metadata });
  await calls("a", "a", "b");
  const ratelimits = { extends: "none", hosts: { [HOST]: { metadata: { ...metadata, rates: "3/MINUTE" } } } } as const;
  await hub.reload({ ratelimits, breakers: { extends: "none" } });
  const ends = await calls("a", "a", "b", "b", "b");
  assert.deepEqual(
    ends.map(end => end === "sent"),
    [true, false, true, true, false],
  );
});

test("after a reload that ends per: partition, what the partitions have sent counts in the common budget", async t => {
  const { calls, hub } = await world(t, { metadata: { ...metadata, rates: "3/MINUTE" } });
  await calls("a", "a", "b");
  const ratelimits = {
    extends: "none",
    hosts: { [HOST]: { metadata: { ...metadata, rates: "4/MINUTE", per: "all" } } },
  } as const;
  await hub.reload({ ratelimits, breakers: { extends: "none" } });
  assert.deepEqual(await calls("a", "b", "c"), ["sent", HOST, HOST]);
});

test("hubs that share a store share the budget of each partition", async t => {
  const folder = temporaryFolder("partitions");
  const server = await serve(t, (_, response) => response.end("ok"));
  const store = `sqlite:${join(folder, "state.db")}` as const;
  const shared = { rates: "2/HOUR", guard_ms: 0, max_delay_ms: 0, per: "partition" } as const;
  const make = () =>
    hubFor(t, { store, cache: false, retry: false, limits: { hosts: { [HOST]: { metadata: shared } } } });
  const [one, two] = [await make(), await make()];
  const send = async (hub: typeof one, partition: string) =>
    hub.fetch(server.origin, { partition, maxWaitMs: 60_000 }).then(
      async response => (await response.text()) === "ok",
      () => false,
    );
  assert.deepEqual(
    [await send(one, "a"), await send(two, "a"), await send(one, "a"), await send(two, "a"), await send(two, "b")],
    [true, true, false, false, true],
  );
  await one.close();
  await two.close();
});

/** A server that throttles or fails the tenants it is told to. */
async function tenants(t: Parameters<typeof serve>[0], breakers: object, options: Parameters<typeof hubFor>[1] = {}) {
  const failing = new Map<string, readonly [status: number, fields: Record<string, string>]>();
  const server = await serve(t, (request, response) => {
    const [status, fields] = failing.get(String(request.headers["x-tenant"])) ?? [200, {}];
    response.writeHead(status, fields).end();
  });
  const make = (more: Parameters<typeof hubFor>[1] = {}) =>
    hubFor(t, { cache: false, retry: false, breakers: { hosts: { [HOST]: breakers } }, ...options, ...more });
  const sender = (hub: Awaited<ReturnType<typeof make>>) => async (tenant: string) => {
    try {
      const response = await hub.fetch(server.origin, { partition: tenant, headers: { "x-tenant": tenant } });
      await response.text();
      return response.status;
    } catch (error) {
      return (error as { readonly reason?: string }).reason ?? String(error);
    }
  };
  return { failing, server, make, sender };
}

const PER_PARTITION = { per: "partition", roles: { metadata: { fail_max: 2, reset_timeout_s: 600 } } } as const;

test("with per: partition a tenant's 429 and failures do not stop another tenant", async t => {
  const { failing, make, sender } = await tenants(t, PER_PARTITION);
  const hub = await make();
  const send = sender(hub);
  failing.set("a", [429, { "retry-after": "60" }]);
  failing.set("b", [500, {}]);
  assert.deepEqual([await send("a"), await send("a")], [429, "retry-after"]);
  assert.deepEqual([await send("b"), await send("b"), await send("b")], [500, 500, "failures"]);
  assert.equal(await send("c"), 200);
  const open = hub.snapshot().hosts.filter(({ state }) => state !== "closed");
  assert.deepEqual(
    open.map(({ host }) => /^127\.0\.0\.1#[0-9a-f]{16}$/.test(host)),
    [true, true],
  );
  assertNothingLeft(hub);
});

test("without per: partition a tenant's 429 stops every tenant of the host", async t => {
  const { failing, make, sender } = await tenants(t, {});
  const send = sender(await make());
  failing.set("a", [429, { "retry-after": "60" }]);
  assert.deepEqual([await send("a"), await send("b")], [429, "retry-after"]);
});

test("a retry checks the circuit of its own partition", async t => {
  const time = new FakeTime();
  const { failing, make, sender, server } = await tenants(t, PER_PARTITION, { time });
  const send = sender(await make({ retry: { attempts: 2, baseMs: 0 }, random: () => 0 }));
  failing.set("a", [500, {}]);
  const first = send("a");
  while (server.requests.length < 1) await new Promise(resolve => setImmediate(resolve));
  await time.advance(1000);
  assert.equal(await first, 500);
  assert.equal(await send("a"), "failures");
});

test("processes that share a store share the circuits of each partition", async t => {
  const folder = temporaryFolder("partitions");
  const { failing, make, sender } = await tenants(t, PER_PARTITION, { store: `sqlite:${join(folder, "state.db")}` });
  const [one, two] = [await make(), await make()];
  failing.set("a", [429, { "retry-after": "60" }]);
  assert.equal(await sender(one)("a"), 429);
  // The record is written when the response has been read; the next call of this hub waits for it.
  assert.equal(await sender(one)("a"), "retry-after");
  assert.equal(await sender(two)("a"), "retry-after");
  assert.equal(await sender(two)("b"), 200);
  await one.close();
  await two.close();
});

test("partitions of a service have circuits of their own, and its calls to all hosts share them", async t => {
  const failing = new Map([["a", 500]]);
  const handler = (
    request: { headers: Record<string, unknown> },
    response: { writeHead(status: number): { end(): void } },
  ) => response.writeHead(failing.get(String(request.headers["x-tenant"])) ?? 200).end();
  const [one, two] = [await serve(t, handler), await serve(t, handler)];
  const service = {
    members: [`${HOST}:${one.port}`, `${HOST}:${two.port}`],
    metadata: { ...metadata, rates: "100/MINUTE" },
  };
  const hub = await hubFor(t, {
    cache: false,
    retry: false,
    limits: { services: { pair: service } },
    breakers: { services: { pair: PER_PARTITION } },
  });
  const send = async (origin: string, partition: string) => {
    const sent = hub.fetch(origin, { partition, headers: { "x-tenant": partition } });
    return sent.then(
      ({ status }) => status,
      error => error.constraint.owner.replace(/#.*/, "#"),
    );
  };
  assert.deepEqual([await send(one.origin, "a"), await send(two.origin, "a")], [500, 500]);
  assert.deepEqual([await send(one.origin, "a"), await send(two.origin, "a")], ["service pair#", "service pair#"]);
  assert.deepEqual([await send(one.origin, "b"), await send(two.origin, "b")], [200, 200]);
});
