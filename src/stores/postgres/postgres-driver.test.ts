import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { eventually } from "../../../test/harvest/kit.ts";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import { loadPgDriver } from "./postgres-driver.ts";

/** The port of a server that accepts connections and says nothing. */
async function silentServer(t: TestContext): Promise<number> {
  const server = createServer(socket => t.after(() => socket.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

test("a connection without traffic is probed after ten seconds, so that a lost one is noticed and opened again", async t => {
  const url = `postgres://user@127.0.0.1:${await silentServer(t)}/database`;
  const driver = await loadPgDriver({ url, schema: "docstokg", idleInTransactionMs: 1000, connectTimeoutMs: 0 });
  const client = driver.client();
  client.on("error", () => undefined);
  const stream = client.connection.stream as Socket;
  const probed = new Promise(resolve => {
    stream.setKeepAlive = (...settings) => {
      resolve(settings);
      return stream;
    };
  });
  client.connect().catch(() => undefined);
  assert.deepEqual(await probed, [true, 10_000]);
  stream.destroy();
});

test("a connection whose settings the server refuses is closed", { skip: whyNoPostgres() }, async t => {
  const server = await PostgresServer.start();
  t.after(() => server.stop());
  const url = server.url();
  const driver = await loadPgDriver({ url, schema: "docstokg", idleInTransactionMs: 1000, lockTimeoutMs: -1000 });
  const pool = driver.pool(1);
  pool.on("error", () => undefined);
  for (let tries = 0; tries < 3; tries += 1) await assert.rejects(pool.connect(), /lock_timeout/);
  await eventually(async () => {
    const sql = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'docstokg' AND pid <> pg_backend_pid()";
    return (await server.query(sql)).length === 0;
  });
  await pool.end();
});
