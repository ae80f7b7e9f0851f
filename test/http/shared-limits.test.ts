import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { serve } from "./kit.ts";
import type { MemberReport } from "./shared-limits-process.ts";
import { mostWithin } from "./write-stamps.ts";

const LIMIT = 8;
const WINDOW_MS = 500;
const FETCHES = 8;
const PROCESSES = 4;
const file = resolve(import.meta.dirname, "shared-limits-process.ts");
const run = promisify(execFile);

/** The processes stamp their writes by one clock, so that the union of their writes can be counted exactly. */
async function assertOneLimit(t: TestContext, store: string): Promise<void> {
  const server = await serve(t, (_, response) => response.end());
  const args = [file, store, server.origin, `${LIMIT}/${WINDOW_MS}ms`, String(FETCHES)];
  const outputs = await Promise.all(Array.from({ length: PROCESSES }, () => run(process.execPath, args)));
  const reports = outputs.map(({ stdout, stderr }) => {
    assert.equal(stderr, "");
    return JSON.parse(stdout) as MemberReport;
  });
  for (const { statuses } of reports) assert.deepEqual(statuses, Array(FETCHES).fill(200));
  const writesUs = reports.flatMap(report => report.writesUs);
  assert.equal(writesUs.length, PROCESSES * FETCHES);
  assert.equal(server.requests.length, PROCESSES * FETCHES);
  const most = mostWithin(writesUs, WINDOW_MS * 1000);
  assert.ok(most <= LIMIT, `${most} in ${WINDOW_MS} ms`);
}

test("four processes that share a file write at most one limit together in any window", async t => {
  const folder = temporaryFolder("shared-limits");
  await assertOneLimit(t, `sqlite:${join(folder, "limits.db")}`);
});

test("four processes that share a redis server write at most one limit together in any window", {
  skip: whyNoRedis(),
}, async t => {
  const server = await RedisServer.start();
  t.after(() => server.stop());
  await assertOneLimit(t, server.url);
});
