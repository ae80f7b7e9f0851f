import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { eventually } from "../../../../test/harvest/kit.ts";
import { PostgresProxy } from "../../../../test/harvest/postgres-proxy.ts";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { loadPgDriver } from "../../../stores/postgres/postgres-driver.ts";
import { FakeTime } from "../../../testing/fake-time.ts";
import { systemTime } from "../../../time/system-time.ts";
import type { Work } from "../../work.ts";
import type { Manifest } from "../manifest.ts";
import { PostgresManifest } from "./postgres-manifest.ts";

const LISTED: readonly Work[] = ["a", "b", "c"].map(name => ({
  key: `doi:10.1/${name}`,
  ids: { doi: `10.1/${name}` },
}));
const IS_PRESENT = { isPresent: () => true };

describe("takeover of the works of a PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
    // No lease counts as ended before.
    await eventually(async () => {
      const [row] = await server.query("SELECT clock_timestamp() - pg_postmaster_start_time() > '2 s' AS is_up");
      return row?.["is_up"] === true;
    });
  });
  after(() => server?.stop());

  const taken = async (manifest: Manifest, run: number) =>
    (await manifest.queue.take(run, "", systemTime.wallMs(), 100)).map(({ work }) => work.id);
  const open = async (t: TestContext, url: string, time: FakeTime | typeof systemTime = new FakeTime()) => {
    const manifest = await PostgresManifest.open(url, time);
    t.after(() => manifest.close());
    return manifest;
  };
  /** A worker that has taken all works of a run and renews no lease, and another worker of the run. */
  const workersFor = async (t: TestContext, schema: string, proxy?: PostgresProxy) => {
    const url = server.url({ schema, leaseS: 2 });
    const other = await open(t, url);
    const lost = await open(t, proxy?.urlOf(url) ?? url);
    const run = await lost.beginRun("run", "{}");
    await lost.works.add(run, LISTED, IS_PRESENT);
    const ids = await taken(lost, run);
    await other.joinRun(run);
    /** The lease of the lost worker ends, and the other worker takes over its works. */
    const takeOver = async () => {
      await server.query(
        `UPDATE ${schema}.workers SET lease_until_ms = 0 WHERE id = (SELECT min(id) FROM ${schema}.workers)`,
      );
      await other.recover(async () => undefined);
      return taken(other, run);
    };
    return { lost, other, ids, run, takeOver };
  };

  test("the works of a machine that is lost while it sends statements are taken over", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const { lost, ids, takeOver } = await workersFor(t, "cut", proxy);
    const [a = 0, b = 0, c = 0] = ids;
    const alone = lost.saveProgress(a, "", "{}");
    const together = [
      lost.saveProgress(b, "", "{}"),
      lost.saveProgress(c, "", JSON.stringify({ text: "x".repeat(4_000_000) })),
    ];
    const failed = Promise.allSettled(together);
    await alone;
    let left = 60_000;
    proxy.toServer = bytes => {
      const sent = bytes.subarray(0, left);
      left -= sent.length;
      return sent;
    };
    proxy.toClient = () => undefined;
    await eventually(async () => {
      const locks = await server.query("SELECT id FROM cut.works FOR UPDATE SKIP LOCKED");
      return locks.length === 2;
    });
    assert.deepEqual(await takeOver(), ids);
    assert.deepEqual(await server.query("SELECT name FROM cut.workers WHERE lease_until_ms = 0"), []);
    lost.stopWaiting();
    proxy.accepts = () => false;
    proxy.break();
    await failed;
  });

  test("a work that another connection has locked is taken over when the lock has ended", async t => {
    const { ids, takeOver } = await workersFor(t, "locked");
    const holder = (await loadPgDriver({ url: server.url(), schema: "locked", idleInTransactionMs: 0 })).client();
    await holder.connect();
    t.after(() => holder.end());
    await holder.query("BEGIN");
    await holder.query("SELECT 1 FROM works WHERE id = $1 FOR UPDATE", [ids[0] ?? 0]);
    assert.deepEqual(await takeOver(), ids.slice(1));
    await holder.query("COMMIT");
    assert.deepEqual(await takeOver(), ids.slice(0, 1));
  });

  test("a worker goes on if a takeover does not reach the server", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const time = new FakeTime();
    const manifest = await open(t, proxy.urlOf(server.url({ leaseS: 2 })), time);
    await manifest.joinRun(await manifest.beginRun("run", "{}"));
    let changed = Promise.withResolvers<unknown>();
    manifest.watch(
      () => changed.resolve("goes on"),
      error => changed.resolve(error),
    );
    await changed.promise;
    changed = Promise.withResolvers();
    proxy.toServer = bytes => {
      if (!bytes.includes("pg_postmaster_start_time")) return bytes;
      proxy.accepts = () => false;
      manifest.stopWaiting();
      proxy.break();
      return undefined;
    };
    await time.advance(500);
    assert.equal(await changed.promise, "goes on");
  });
});
