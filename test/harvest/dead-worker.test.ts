import assert from "node:assert/strict";
import { test } from "node:test";
import { PostgresManifest } from "../../src/harvest/manifest/postgres/postgres-manifest.ts";
import { openRun } from "../../src/harvest/run.ts";
import { createHub } from "../../src/http/create-hub.ts";
import { internalsOf } from "../../src/http/hub-internals.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { serve } from "../http/kit.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { eventually } from "./kit.ts";
import { PostgresServer, whyNoPostgres } from "./postgres-server.ts";

test("a worker gets the concurrency slot of one that died, although that slot is leased for longer", {
  skip: whyNoPostgres(),
}, async t => {
  const server = await PostgresServer.start();
  const { promise: firstArrived, resolve: arrive } = Promise.withResolvers<void>();
  let requests = 0;
  const { origin } = await serve(t, (_, response) => {
    requests += 1;
    // The request of the worker that dies has no answer, and keeps its slot.
    if (requests === 1) arrive();
    else response.end();
  });
  const folder = temporaryFolder("dead-worker");
  const policy = { ratelimits: { hosts: { "127.0.0.1": { total: { max_concurrent: 1, shared: true } } } } };
  const hubOf = async () => {
    const hub = await createHub({ policy, store: `sqlite:${folder}/limits.db` });
    t.after(() => hub.destroy());
    return hub;
  };
  const [dead, alive] = [await hubOf(), await hubOf()];
  dead.request(origin).catch(() => undefined);
  await firstArrived;

  const url = server.url({ leaseS: 3600 });
  const schema = String(new URL(url).searchParams.get("schema"));
  const time = new FakeTime();
  const run = await openRun({
    ...{ hub: alive, time, folder, manifest: url, command: "run", sharedSettings: "{}" },
    ...{ order: () => [], resolvers: [] },
  });
  const manifest = await PostgresManifest.open(url, systemTime);
  t.after(async () => {
    await run.close("interrupted");
    await manifest.close();
    await server.stop();
  });
  const workers = () => manifest.reports.workers();
  await eventually(async () => (await server.query(`SELECT session FROM ${schema}.workers`))[0]?.["session"] !== null);
  const answered = alive.request(origin, { maxWaitMs: 3_600_000 });
  await server.query(
    `INSERT INTO ${schema}.workers (run, name, is_listing, started_ms, lease_until_ms, session, store_id)
       VALUES (${run.id}, 'dead:1', false, 0, 9e15, 12345, '${internalsOf(dead)?.processId}')`,
  );
  assert.equal((await workers()).length, 2);
  await eventually(async () => {
    await time.advance(2000);
    return (await workers()).length === 1;
  });
  const { statusCode, body } = await answered;
  await body.dump();
  assert.equal(statusCode, 200);
});
