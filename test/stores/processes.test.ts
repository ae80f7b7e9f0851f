/** Several processes share one store on real clocks. The test merges their stamps and counts every window. */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, describe, type TestContext, test } from "node:test";
import { STORE_FORMAT } from "../../src/stores/sqlite/sqlite-connection.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { damagedDatabase } from "./damaged-file.ts";
import { RedisServer, whyNoRedis } from "./redis-server.ts";
import { assertWithin } from "./store-contract.ts";
import type { StoreProcessReport } from "./store-process.ts";

const folder = mkdtempSync(join(tmpdir(), "docstokg-stores-"));
const children: ChildProcess[] = [];

after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A process that is loaded and waits for the message to start. */
async function started(task: string, store: string, leaseMs = 30_000): Promise<ChildProcess> {
  const file = join(import.meta.dirname, "store-process.ts");
  const child = fork(file, [task, store, String(leaseMs)], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  children.push(child);
  await once(child, "message");
  return child;
}

async function reportOf(child: ChildProcess): Promise<StoreProcessReport> {
  const exit = once(child, "exit");
  const report = await messageOf<StoreProcessReport>(child);
  assert.deepEqual((await exit)[0], 0);
  return report;
}

/** The next message of a process. A process that ends without it must not leave the test waiting. */
async function messageOf<Message>(child: ChildProcess): Promise<Message> {
  const [message] = await Promise.race([
    once(child, "message"),
    // The message may arrive after the end.
    once(child, "close").then(([code]) => assert.fail(`the process ended without a report, with exit code ${code}`)),
  ]);
  return message;
}

/** The reports of four processes that start at the same moment. */
async function reportsOfFour(task: string, store: string): Promise<readonly StoreProcessReport[]> {
  const all = await Promise.all(Array.from({ length: 4 }, () => started(task, store)));
  const reports = Promise.all(all.map(reportOf));
  for (const child of all) child.send("go");
  return reports;
}

async function assertExactly20(store: string): Promise<void> {
  const reports = await reportsOfFour("try", store);
  assert.equal(reports.flatMap(({ stampsUs }) => stampsUs).length, 20);
  assert.deepEqual(
    reports.flatMap(({ troubles }) => troubles),
    [],
  );
}

async function assertAnyWindow(store: string): Promise<void> {
  const reports = await reportsOfFour("send", store);
  const stampsUs = reports.flatMap(report => report.stampsUs);
  assert.ok(stampsUs.length >= 40, `${stampsUs.length}`);
  assertWithin(stampsUs, 8, 300_000);
  assert.ok(reports.some(({ processes }) => processes === 4));
}

function assertIntact(file: string): void {
  const db = new DatabaseSync(file);
  assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  db.close();
}

test("four processes that create one file together lease exactly the limit", async () => {
  const file = join(folder, "new", "budgets.db");
  await assertExactly20(`sqlite:${file}`);
  assertIntact(file);
});

test("four processes that find a damaged file at once rename it once and share a new one", async () => {
  const file = join(folder, "damaged", "budgets.db");
  mkdirSync(dirname(file));
  writeFileSync(file, damagedDatabase(STORE_FORMAT.applicationId));
  const reports = await reportsOfFour("try", `sqlite:${file}`);
  assert.equal(reports.flatMap(({ stampsUs }) => stampsUs).length, 20);
  assert.equal(reports.flatMap(({ troubles }) => troubles).length, 1);
  assert.equal(readdirSync(dirname(file)).filter(name => name.includes(".damaged-")).length, 1);
});

test("four processes that find an empty file with the log of an earlier one all open it", async () => {
  const all = await Promise.all(Array.from({ length: 4 }, () => started("open", "sqlite:")));
  // In every third round two processes delete the log at the same time.
  for (let round = 0; round < 40; round += 1) {
    const file = join(folder, `log-${round}.db`);
    writeFileSync(file, "");
    writeFileSync(`${file}-wal`, Buffer.alloc(4096, 1));
    const opened = Promise.all(all.map(child => messageOf<readonly string[]>(child)));
    for (const child of all) child.send(`sqlite:${file}`);
    assert.deepEqual((await opened).flat(), []);
  }
  for (const child of all) child.kill("SIGKILL");
});

test("four processes on one file write at most the limit in any window", async () => {
  await assertAnyWindow(`sqlite:${join(folder, "sent.db")}`);
});

test("units leased by a killed process count until its lease ends, plus one window", async () => {
  const store = `sqlite:${join(folder, "killed.db")}`;
  const leaseMs = 1000;
  const victim = await started("hold", store, leaseMs);
  const others = await Promise.all([0, 1].map(() => started("one", store, leaseMs)));
  victim.send("go");
  const [{ units, beforeUs }] = await once(victim, "message");
  assert.equal(units, 2);
  victim.kill("SIGKILL");
  await once(victim, "exit");
  const reports = Promise.all(others.map(reportOf));
  for (const child of others) child.send("go");
  for (const { stampsUs } of await reports) {
    const [firstUs = 0] = stampsUs;
    assert.ok(firstUs - beforeUs >= (leaseMs + 200) * 1000, `${firstUs - beforeUs} us`);
  }
});

test("a process killed while writing leaves an intact file, and busy writers do not starve others", async () => {
  const file = join(folder, "hammered.db");
  const hammers = await Promise.all([0, 1, 2].map(() => started("hammer", `sqlite:${file}`)));
  const written = hammers.map(child => once(child, "message"));
  for (const child of hammers) child.send("go");
  await Promise.all(written);
  const [victim, ...others] = hammers as [ChildProcess, ...ChildProcess[]];
  victim.kill("SIGKILL");
  await once(victim, "exit");
  const last = await started("try", `sqlite:${file}`);
  const report = reportOf(last);
  last.send("go");
  assert.deepEqual((await report).troubles, []);
  for (const child of others) {
    assert.equal(child.exitCode, null, "no process lost the file");
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  assertIntact(file);
});

describe("processes on one redis server", { skip: whyNoRedis() }, () => {
  async function server(t: TestContext): Promise<string> {
    const own = await RedisServer.start();
    t.after(() => own.stop());
    return own.url;
  }

  test("four processes on one redis server lease exactly the limit", async t => {
    await assertExactly20(await server(t));
  });

  test("four processes on one redis server write at most the limit in any window", async t => {
    await assertAnyWindow(await server(t));
  });
});

describe("processes on one PostgreSQL database", { skip: whyNoPostgres() }, () => {
  async function database(t: TestContext): Promise<string> {
    const own = await PostgresServer.start();
    t.after(() => own.stop());
    return `postgres://docstokg@127.0.0.1:${own.port}/postgres`;
  }

  test("four processes that create the tables of one database together lease exactly the limit", async t => {
    await assertExactly20(await database(t));
  });

  test("four processes on one PostgreSQL database write at most the limit in any window", async t => {
    await assertAnyWindow(await database(t));
  });
});
