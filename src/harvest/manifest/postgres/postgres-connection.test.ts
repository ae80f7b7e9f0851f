import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { eventually } from "../../../../test/harvest/kit.ts";
import { IS_PRESENT } from "../../../../test/harvest/manifest-kit.ts";
import { PostgresProxy } from "../../../../test/harvest/postgres-proxy.ts";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { FakeTime } from "../../../testing/fake-time.ts";
import { systemTime } from "../../../time/system-time.ts";
import type { Time } from "../../../time/time.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import { PostgresManifest } from "./postgres-manifest.ts";
import { parsePostgresUrl } from "./postgres-url.ts";

describe("connections to a PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  /** The connections of a process to a manifest that has the table `notes`. */
  const connectedTo = async (t: TestContext, schema: string, proxy?: PostgresProxy, time: Time = systemTime) => {
    const url = server.url({ schema });
    await (await PostgresManifest.open(url, systemTime)).close();
    await server.query(`CREATE TABLE ${schema}.notes (id bigint)`);
    const connection = await PostgresConnection.open(parsePostgresUrl(proxy?.urlOf(url) ?? url), time);
    t.after(() => connection.close());
    return connection;
  };
  const INSERT = "INSERT INTO notes (id) VALUES ($1)";

  test("statements whose commit is not known are not sent again, also if the server comes back", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const connection = await connectedTo(t, "unknown", proxy);
    const first = connection.apply(1, INSERT, []);
    const others = Promise.allSettled([connection.apply(2, INSERT, []), connection.apply(3, INSERT, [])]);
    await first;
    const committed = Promise.withResolvers<void>();
    let refused = 0;
    proxy.accepts = () => ++refused > 1;
    proxy.toClient = () => {
      committed.resolve();
      return undefined;
    };
    await committed.promise;
    connection.stopWaiting();
    proxy.toClient = bytes => bytes;
    proxy.break();
    for (const each of await others)
      assert.equal(each.status === "rejected" && each.reason.name, "StoreError", JSON.stringify(each));
    assert.deepEqual(await server.query("SELECT id FROM unknown.notes ORDER BY id"), [{ id: 1 }, { id: 2 }, { id: 3 }]);
  });

  test("statements that wait for an earlier one fail together with it when the server stays away", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const time = new FakeTime();
    const connection = await connectedTo(t, "away", proxy, time);
    proxy.accepts = () => false;
    let isFailed = false;
    const first = connection.apply(1, INSERT, []).finally(() => {
      isFailed = true;
    });
    const all = Promise.allSettled([first, connection.apply(2, INSERT, []), connection.apply(3, INSERT, [])]);
    // The time stands still for the others.
    await eventually(async () => {
      if (!isFailed) await time.advance(60_000);
      return isFailed;
    });
    for (const each of await all) assert.equal(each.status === "rejected" && each.reason.name, "StoreError");
  });

  test("a server that never answers is given up soon after an interrupt", async t => {
    const proxy = await PostgresProxy.start(server.port);
    t.after(() => proxy.stop());
    const time = new FakeTime();
    const url = server.url({ schema: "silent" });
    await (await PostgresManifest.open(url, systemTime)).close();
    const manifest = await PostgresManifest.open(proxy.urlOf(url), time);
    const run = await manifest.beginRun("run", "{}");
    manifest.watch(() => undefined);
    await eventually(async () => (await server.query("SELECT session FROM silent.workers"))[0]?.["session"] !== null);
    await manifest.beginList();
    proxy.toServer = () => undefined;
    const operations = Promise.allSettled([
      manifest.reports.report(),
      manifest.queue.isFinished(run),
      manifest.works.add(run, [{ key: "doi:10.5555/a", ids: { doi: "10.5555/a" } }], IS_PRESENT),
    ]);
    manifest.stopWaiting();
    const closed = operations.then(() => manifest.close());
    let isClosed = false;
    void closed.then(() => {
      isClosed = true;
    });
    await eventually(async () => {
      if (!isClosed) await time.advance(1000);
      return isClosed;
    });
    await closed;
    // Otherwise the limit of pg for a statement would end them, after a minute.
    for (const each of await operations) {
      assert.equal(each.status, "rejected");
      assert.match(String(each.status === "rejected" && each.reason), /Connection terminated unexpectedly/);
    }
  });
});
