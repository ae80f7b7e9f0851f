import assert from "node:assert/strict";
import { test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../test/harvest/postgres-server.ts";
import { openManifest } from "../harvest/manifest/manifest.ts";
import { systemTime } from "../time/system-time.ts";
import { readRunState } from "./run-state.ts";

test("a run whose works are left to workers waits for one", { skip: whyNoPostgres() }, async t => {
  const server = await PostgresServer.start();
  t.after(() => server.stop());
  const url = server.url();
  const first = await openManifest(url, systemTime);
  const run = await first.beginRun("run --enqueue-only list.csv", "{}");
  await first.works.add(run, [{ key: "doi:10.1/a", ids: { doi: "10.1/a" } }], { isPresent: () => false });
  assert.equal((await readRunState(first, { folder: "x" }))?.state, "running");
  await first.close();
  const later = await openManifest(url, systemTime);
  assert.equal((await readRunState(later, { folder: "x" }))?.state, "waiting");
  await later.close();
});
