/** Four processes on one store: no rejection by the server's own clock, and the limit is used fully and evenly. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { startStrictServer } from "../../src/testing/strict-server.ts";
import { mostWithin } from "../../test/http/write-stamps.ts";
import { RedisServer, whyNoRedis } from "../../test/stores/redis-server.ts";
import type { DemandReport } from "./demand-process.ts";

const run = promisify(execFile);
const PROCESSES = 4;
const LIMIT = 8;

async function fetches(t: TestContext, store: string): Promise<void> {
  const server = await startStrictServer({ rate: `${LIMIT}/SECOND` });
  t.after(() => server.close());
  const file = resolve(import.meta.dirname, "../../test/http/shared-limits-process.ts");
  const args = [file, store, server.origin, `${LIMIT}/SECOND`, "16"];
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: PROCESSES }, () => run(process.execPath, args)));
  t.diagnostic(`64 requests in ${Math.round(performance.now() - startedMs)} ms with the start of the processes`);
  t.diagnostic(`${server.rejected} rejected, ${server.busiest} in the busiest second`);
  assert.deepEqual([server.arrivalsMs.length, server.rejected], [64, 0]);
}

async function demand(t: TestContext, store: string): Promise<void> {
  const file = resolve(import.meta.dirname, "demand-process.ts");
  const children = Array.from({ length: PROCESSES }, () => fork(file, [store, String(LIMIT), "7000"]));
  t.after(() => {
    for (const child of children) child.kill("SIGKILL");
  });
  await Promise.all(children.map(child => once(child, "message")));
  const reports = await Promise.all(children.map(reportOf));
  const firstUs = Math.min(...reports.flatMap(({ stampsUs }) => stampsUs));
  // At the start and at the end a single process may use the whole limit.
  const while4 = (us: number) => us - firstUs >= 1_000_000 && us - firstUs < 6_500_000;
  const counts = reports.map(({ stampsUs }) => stampsUs.filter(while4).length);
  const all = reports.flatMap(({ stampsUs }) => stampsUs);
  const mean = counts.reduce((sum, count) => sum + count, 0) / PROCESSES;
  t.diagnostic(`units while all four ran: ${counts.join(", ")}`);
  t.diagnostic(`utilisation ${((mean * PROCESSES) / (5.5 * LIMIT)).toFixed(2)}`);
  t.diagnostic(`longest stalls of the event loop: ${reports.map(({ stallMs }) => stallMs.toFixed(1)).join(", ")} ms`);
  assert.ok(mostWithin(all, 1_000_000) <= LIMIT);
  assert.ok(mean * PROCESSES >= 0.9 * 5.5 * LIMIT, "utilisation of at least 0.9");
  assert.ok(Math.max(...counts) - Math.min(...counts) <= mean / 2, "shared evenly");
}

async function reportOf(child: ChildProcess): Promise<DemandReport> {
  const report = once(child, "message");
  child.send("go");
  return (await report)[0];
}

function sqlite(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "docstokg-soak-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return `sqlite:${join(folder, "limits.db")}`;
}

async function redis(t: TestContext): Promise<string> {
  const server = await RedisServer.start();
  t.after(() => server.stop());
  return server.url;
}

const skip = whyNoRedis();

test("64 fetches of four processes on one file are never rejected", t => fetches(t, sqlite(t)));

test("64 fetches of four processes on one redis server are never rejected", { skip }, async t =>
  fetches(t, await redis(t)),
);

test("four processes on one file use the limit fully and evenly", t => demand(t, sqlite(t)));

test("four processes on one redis server use the limit fully and evenly", { skip }, async t =>
  demand(t, await redis(t)),
);
