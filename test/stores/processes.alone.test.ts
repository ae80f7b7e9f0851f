/** Several processes on one SQLite file, on real clocks: what each wrote, and when, is put together and counted. */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, type TestContext, test } from "node:test";
import { assertWithin } from "./suite.ts";

interface Report {
  readonly stampsUs: readonly number[];
  readonly troubles: readonly string[];
  readonly stallMs: number;
  readonly processes: number;
}

const SECOND = 1_000_000;
const folder = mkdtempSync(join(tmpdir(), "docstokg-stores-"));
const children: ChildProcess[] = [];

after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** Loaded and waiting for its start. */
async function started(task: string, file: string, leaseMs: number, amount = 0): Promise<ChildProcess> {
  const args = [task, file, String(leaseMs), String(amount)];
  const child = fork(join(import.meta.dirname, "store-process.ts"), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.push(child);
  await once(child, "message");
  return child;
}

async function reportOf(child: ChildProcess): Promise<Report> {
  const exit = once(child, "exit");
  const [report] = await once(child, "message");
  assert.deepEqual((await exit)[0], 0);
  return report;
}

/** Four that start at the same moment. */
async function four(t: TestContext, task: string, file: string, amount: number): Promise<readonly Report[]> {
  const all = await Promise.all(Array.from({ length: 4 }, () => started(task, file, 30_000, amount)));
  for (const child of all) child.send("go");
  const reports = await Promise.all(all.map(reportOf));
  t.diagnostic(`each got ${reports.map(({ stampsUs }) => stampsUs.length).join(", ")}`);
  t.diagnostic(`longest stalls of the event loop: ${reports.map(({ stallMs }) => stallMs.toFixed(1)).join(", ")} ms`);
  return reports;
}

function assertSound(file: string): void {
  const db = new DatabaseSync(file);
  assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  db.close();
}

test("four processes that open one new file together get exactly what the limit is", async t => {
  const file = join(folder, "new", "budgets.db");
  const reports = await four(t, "try", file, 60);
  assert.equal(reports.flatMap(({ stampsUs }) => stampsUs).length, 20);
  assert.deepEqual(
    reports.flatMap(({ troubles }) => troubles),
    [],
  );
  assertSound(file);
});

test("four processes that meet a damaged file together set it aside once, and share the next", async t => {
  const file = join(folder, "damaged", "budgets.db");
  mkdirSync(dirname(file));
  writeFileSync(file, "somebody's notes ".repeat(500));
  const reports = await four(t, "try", file, 30);
  assert.equal(reports.flatMap(({ stampsUs }) => stampsUs).length, 20);
  assert.equal(reports.flatMap(({ troubles }) => troubles).length, 1);
  assert.equal(readdirSync(dirname(file)).filter(name => name.includes(".damaged-")).length, 1);
});

test("four hungry processes never write more than the limit in any second, waste little, and share it evenly", async t => {
  const reports = await four(t, "eat", join(folder, "eaten.db"), 5000);
  const stampsUs = reports.flatMap(report => report.stampsUs);
  assertWithin(stampsUs, 8, SECOND);
  assert.ok(stampsUs.length >= 8 * 4, `${stampsUs.length} in 5 s`);
  // The first to come was alone, and took everything that there was in the first second; so may be the last to go.
  const firstUs = Math.min(...stampsUs);
  const got = reports.map(
    report => report.stampsUs.filter(us => us - firstUs >= SECOND && us - firstUs < 4.9 * SECOND).length,
  );
  t.diagnostic(`while all were there each got ${got.join(", ")}`);
  assert.ok(Math.max(...got) - Math.min(...got) <= got.reduce((sum, each) => sum + each) / 4 / 4, String(got));
  assert.ok(reports.some(({ processes }) => processes === 4));
});

test("what a killed process had out is kept from the others until its lease is over, and no longer", async t => {
  const file = join(folder, "killed.db");
  const leaseMs = 1500;
  const victim = await started("hold", file, leaseMs);
  const others = await Promise.all([0, 1].map(() => started("wait", file, leaseMs, 15_000)));
  victim.send("go");
  const [{ units, atUs }] = await once(victim, "message");
  assert.equal(units, 2);
  victim.kill("SIGKILL");
  await once(victim, "exit");
  for (const child of others) child.send("go");
  const reports = await Promise.all(others.map(reportOf));
  for (const { stampsUs } of reports) {
    const [firstUs = 0] = stampsUs;
    // The lease began a little before the victim heard of it.
    assert.ok(firstUs - atUs >= leaseMs * 1000 + SECOND - 100_000, `${firstUs - atUs} us`);
    t.diagnostic(`one of them got its unit ${((firstUs - atUs) / 1000).toFixed(0)} ms after the victim`);
  }
});

test("a process that is killed while it writes leaves a sound file, and those who always write leave others room", async () => {
  const file = join(folder, "hammered.db");
  const hammers = await Promise.all([0, 1, 2].map(() => started("hammer", file, 30_000)));
  const written = hammers.map(child => once(child, "message"));
  for (const child of hammers) child.send("go");
  await Promise.all(written);
  const [victim, ...witnesses] = hammers as [ChildProcess, ...ChildProcess[]];
  victim.kill("SIGKILL");
  await once(victim, "exit");
  const last = await started("try", file, 30_000, 60);
  last.send("go");
  assert.deepEqual((await reportOf(last)).troubles, []);
  for (const witness of witnesses) {
    assert.equal(witness.exitCode, null, "none was refused the file");
    witness.kill("SIGKILL");
    await once(witness, "exit");
  }
  assertSound(file);
});
