/** Four members on a real store that is lost: counted at the write, over all of them (law S4). */
import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { Gate } from "../../src/gate/gate.ts";
import { limitPoliciesFrom } from "../../src/policy/limits.ts";
import type { AwayPolicy } from "../../src/sharing/store-outage.ts";
import { RedisStore } from "../../src/stores/redis/redis-store.ts";
import { SqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import type { Store } from "../../src/stores/store.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { ReplicatedServer } from "./redis-replica.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { assertWithin } from "./store-contract.ts";

const LIMIT = 20;
const folder = temporaryFolder("outages");

interface Outcome {
  readonly stampsUs: readonly number[];
  readonly warnings: readonly string[];
}

/** Four busy members send while `fault` runs, and until the limit is used again afterwards. */
async function sendDuring(
  t: TestContext,
  mode: AwayPolicy["mode"],
  open: () => Promise<Store>,
  fault: () => Promise<void>,
): Promise<Outcome> {
  const stampsUs: number[] = [];
  const warnings: string[] = [];
  const metadata = { rates: `${LIMIT}/SECOND`, max_delay_ms: 3_600_000 };
  const limits = limitPoliciesFrom({ defaults: { metadata } }, "test");
  const stores = await Promise.all([0, 1, 2, 3].map(open));
  const stop = new AbortController();
  const gates = stores.map(
    store =>
      new Gate(limits, systemTime, {
        store,
        awayPolicy: () => ({ mode, fleetSize: undefined }),
        warn: message => warnings.push(message),
      }),
  );
  t.after(async () => {
    stop.abort();
    await Promise.all(gates.map(gate => gate.close()));
  });
  const send = async (gate: Gate) => {
    while (!stop.signal.aborted) {
      const grant = await gate.enter({ host: "a.example", role: "metadata", maxWaitMs: 600_000, signal: stop.signal });
      grant.written();
      stampsUs.push(systemTime.monotonicUs());
      grant.release();
    }
  };
  const callers = gates.flatMap(gate => Array.from({ length: 8 }, () => send(gate).catch(() => undefined)));
  await systemTime.sleep(1500);
  await fault();
  // Until the store is back for all, and the full limit is used again.
  for (let full = 0; full < 2; ) {
    const before = stampsUs.length;
    await systemTime.sleep(1000);
    full = stampsUs.length - before >= LIMIT * 0.7 ? full + 1 : 0;
  }
  stop.abort();
  await Promise.all(callers);
  return { stampsUs, warnings };
}

/** One line for each member when the store is lost, and one when it is back. */
function assertReportedOnce({ warnings }: Outcome): void {
  const back = warnings.filter(message => message.includes("is used again"));
  assert.equal(back.length, 4, warnings.join("\n"));
  assert.equal(warnings.length, 8, warnings.join("\n"));
}

async function assertDeleted(t: TestContext, mode: AwayPolicy["mode"], suffixes: readonly string[]): Promise<void> {
  const file = join(folder, `${mode}${suffixes.length}.db`);
  const { stampsUs } = await sendDuring(
    t,
    mode,
    () => SqliteStore.open(file, { time: systemTime }),
    async () => {
      for (const suffix of suffixes) rmSync(file + suffix, { force: true });
    },
  );
  assertWithin(stampsUs, LIMIT, 1_000_000);
}

test("sqlite: with share, a deleted file does not let more than the limit through", t =>
  assertDeleted(t, "share", ["", "-wal", "-shm"]));
test("sqlite: with wait, a deleted file does not let more than the limit through", t =>
  assertDeleted(t, "wait", ["", "-wal", "-shm"]));
test("sqlite: with share, a deleted log does not let more than the limit through", t =>
  assertDeleted(t, "share", ["-wal", "-shm"]));

async function assertEmptyRestart(t: TestContext, mode: AwayPolicy["mode"]): Promise<void> {
  const server = await RedisServer.start();
  t.after(() => server.stop());
  const { stampsUs } = await sendDuring(
    t,
    mode,
    () => RedisStore.open(server.url),
    async () => {
      await server.stop();
      await systemTime.sleep(1500);
      await server.start();
    },
  );
  assertWithin(stampsUs, LIMIT, 1_000_000);
}

async function assertFlushed(t: TestContext, mode: AwayPolicy["mode"]): Promise<void> {
  const server = await RedisServer.start();
  t.after(() => server.stop());
  const { stampsUs } = await sendDuring(
    t,
    mode,
    () => RedisStore.open(server.url),
    async () => void server.cli("FLUSHALL"),
  );
  assertWithin(stampsUs, LIMIT, 1_000_000);
}

/** The replica is promoted a while after it was detached, as sentinels do. Both servers answer meanwhile. */
async function assertPromoted(t: TestContext, mode: AwayPolicy["mode"]): Promise<void> {
  const servers = await ReplicatedServer.start();
  t.after(() => servers[Symbol.asyncDispose]());
  const { stampsUs } = await sendDuring(
    t,
    mode,
    () => RedisStore.open(servers.url),
    async () => {
      await servers.hasCaughtUp();
      servers.detach();
      await systemTime.sleep(900);
      servers.promote();
    },
  );
  assertWithin(stampsUs, LIMIT, 1_000_000);
}

describe("redis", { skip: whyNoRedis() }, () => {
  test("redis: with share, a server that is away and restarts empty does not let more than the limit through", t =>
    assertEmptyRestart(t, "share"));
  test("redis: with wait, a server that is away and restarts empty does not let more than the limit through", t =>
    assertEmptyRestart(t, "wait"));
  test("redis: with share, FLUSHALL does not let more than the limit through", t => assertFlushed(t, "share"));
  test("redis: with wait, FLUSHALL does not let more than the limit through", t => assertFlushed(t, "wait"));

  test("redis: with share, a promoted replica without the last changes does not let more than the limit through", t =>
    assertPromoted(t, "share"));
  test("redis: with wait, a promoted replica without the last changes does not let more than the limit through", t =>
    assertPromoted(t, "wait"));

  test("redis: a server without memory is reported once, and does not let more than the limit through", async t => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const outcome = await sendDuring(
      t,
      "share",
      () => RedisStore.open(server.url),
      async () => {
        server.cli("CONFIG", "SET", "maxmemory", "1");
        await systemTime.sleep(3000);
        server.cli("CONFIG", "SET", "maxmemory", "0");
      },
    );
    assertWithin(outcome.stampsUs, LIMIT, 1_000_000);
    assertReportedOnce(outcome);
  });

  test("redis: a key of another type or with a truncated value is set aside, and the store stays in use", async t => {
    const server = await RedisServer.start();
    t.after(() => server.stop());
    const { stampsUs } = await sendDuring(
      t,
      "share",
      () => RedisStore.open(server.url),
      async () => {
        const [key = ""] = server.cli("KEYS", "docstokg:v3:lane*").split("\n");
        server.cli("HSET", key, "s", "truncated");
        await systemTime.sleep(3000);
        server.cli("DEL", key);
        server.cli("SET", key, "a text");
      },
    );
    assertWithin(stampsUs, LIMIT, 1_000_000);
    assert.match(server.cli("KEYS", "*:damaged"), /lane a\.example metadata:damaged/);
  });
});
