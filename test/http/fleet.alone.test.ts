import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { startStrictServer } from "../../src/testing/strict-server.ts";
import { RedisServer, whyNoRedis } from "../stores/redis-server.ts";

const member = resolve(import.meta.dirname, "fleet-member.ts");
const run = promisify(execFile);

/** Four processes, 16 requests each, to a server that enforces 8/SECOND. */
async function assertOneLimit(t: TestContext, store: string): Promise<void> {
  const server = await startStrictServer({ rate: "8/SECOND" });
  t.after(() => server.close());
  const args = [member, store, server.origin, "8/SECOND", "16"];
  const started = performance.now();
  const members = await Promise.all(Array.from({ length: 4 }, () => run(process.execPath, args)));
  t.diagnostic(`64 requests in ${Math.round(performance.now() - started)} ms, with the processes' start`);
  for (const { stdout, stderr } of members) {
    assert.equal(stderr, "");
    assert.deepEqual(JSON.parse(stdout), Array(16).fill(200));
  }
  assert.equal(server.arrivalsMs.length, 64);
  assert.equal(server.rejected, 0);
  assert.ok(server.busiest <= 8, `${server.busiest} in a second`);
}

// On the real clock, with real processes: it is about what they do to each other.
test("four processes that share a file keep one limit together, where the server stands", async t => {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-fleet-"));
  t.after(() => rm(folder, { recursive: true }));
  await assertOneLimit(t, `sqlite:${join(folder, "limits.db")}`);
});

test("four processes that share a redis server keep one limit together", { skip: whyNoRedis() }, async t => {
  const redis = await RedisServer.start();
  t.after(() => redis.stop());
  await assertOneLimit(t, redis.url);
});
