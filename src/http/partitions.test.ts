import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { assertNothingLeft, hubFor, serve } from "../../test/http/kit.ts";
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
  for (let at = 0; at < 100; at += 1) await calls(`later tenant ${at}`);
  assert.ok(hub.snapshot().keys.length < 150, `${hub.snapshot().keys.length} keys`);
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

test("hubs that share a store share the budget of each partition", async t => {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-partitions-"));
  t.after(() => rm(folder, { recursive: true }));
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
