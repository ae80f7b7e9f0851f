import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, type TestContext, test } from "node:test";
import { PostgresManifest } from "../../src/harvest/manifest/postgres/postgres-manifest.ts";
import type { SimulatedWork } from "../../src/testing/internet/catalogue.ts";
import type { Internet } from "../../src/testing/internet/start-internet.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { internetFor } from "../testing/internet-kit.ts";
import { eventually, sha256 } from "./kit.ts";
import { PostgresServer, whyNoPostgres } from "./postgres-server.ts";
import { type DocstokgProcess, filesIn, isQuick, keyOf, startDocstokg } from "./processes.ts";

const SETTINGS = ["--resolvers", "openalex", "--no-telemetry", "--quiet", "--json"];
const MACHINE = ["--no-telemetry", "--quiet", "--json"];

interface Fleet {
  readonly internet: Internet;
  readonly works: readonly SimulatedWork[];
  readonly folder: string;
  readonly url: string;
  /** Starts a process that shares its limits with the others. */
  readonly start: (args: readonly string[], input?: string) => DocstokgProcess;
}

describe("workers on one PostgreSQL manifest", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  /** @param leaseS short where a test waits for its end: a busy machine can make a process lose a short lease */
  async function fleetFor(t: TestContext, bytesPerSecond: number, leaseS = 60): Promise<Fleet> {
    // Slow, so that downloads are in flight when a process is killed.
    const script = [{ host: "*", effect: "slow", bytesPerSecond }] as const;
    const internet = await internetFor(t, { seed: 7, works: 93, script });
    const folder = temporaryFolder("harvest");
    const url = server.url({ leaseS });
    const shared = ["--manifest", url, "--rate-backend", "sqlite", "--rate-dsn", join(folder, "limits.db")];
    const start = (args: readonly string[], input?: string) =>
      startDocstokg(t, internet, folder, [...args, ...shared], input);
    return { internet, works: internet.works.filter(isQuick), folder, url, start };
  }

  async function assertComplete({ url, folder, works }: Fleet): Promise<void> {
    const manifest = await PostgresManifest.open(url, systemTime);
    try {
      const files = new Map<string, string>();
      for await (const {
        key,
        state,
        files: [file],
      } of manifest.reports.workRecords()) {
        assert.equal(state, "done", key);
        files.set(key, sha256(readFileSync(join(folder, "papers", file?.path ?? ""))));
      }
      assert.deepEqual(files, new Map(works.map(work => [keyOf(work), work.file.sha256])));
      assert.equal(filesIn(folder).length, works.length);
      assert.deepEqual(readdirSync(join(folder, "papers", ".parts")), []);
      for await (const line of manifest.reports.attemptLines()) {
        const { key, attempts } = JSON.parse(line);
        const stored = attempts.filter(({ reason }: { reason: string }) => reason === "ok");
        assert.ok(stored.length <= 1, `${key} was stored ${stored.length} times`);
      }
      // A worker that was killed may still have its lease, but no work.
      for (const { taken } of await manifest.reports.workers()) assert.equal(taken, 0);
      assert.equal((await manifest.reports.report()).runs[0]?.state, "ended");
    } finally {
      await manifest.close();
    }
  }

  test("every work is done exactly once, although workers are killed and the server restarts", async t => {
    const fleet = await fleetFor(t, 150_000, 3);
    const { works, folder, start } = fleet;
    const list = works.map(keyOf).join("\n");
    const enqueued = await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    assert.equal(enqueued.code, 0, enqueued.stderr);
    assert.equal(JSON.parse(enqueued.stdout).enqueued, works.length);
    assert.deepEqual(filesIn(folder), []);

    const [first, second, third] = [1, 2, 3].map(() => start(["worker", "--workers", "4", ...MACHINE]));
    assert.ok(first && second && third);
    await Promise.race([eventually(() => filesIn(folder).length >= works.length / 6), first.ended]);
    first.child.kill("SIGKILL");
    await first.ended;
    await eventually(() => filesIn(folder).length >= works.length / 3);
    await server.kill();
    await server.start();
    const fourth = start(["worker", ...MACHINE]);
    await Promise.race([eventually(() => filesIn(folder).length >= works.length / 2), second.ended]);
    second.child.kill("SIGKILL");
    await second.ended;
    for (const { ended } of [third, fourth]) {
      const { code, stdout, stderr } = await ended;
      assert.equal(code, 0, `${stderr}${stdout}`);
    }
    await assertComplete(fleet);
  });

  test("the works of a worker that is killed are done, although its lease does not end for an hour", async t => {
    const fleet = await fleetFor(t, 150_000, 3600);
    const { works, folder, start } = fleet;
    const list = works.map(keyOf).join("\n");
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    const killed = start(["worker", "--workers", "4", ...MACHINE]);
    await Promise.race([eventually(() => filesIn(folder).length >= 1), killed.ended]);
    killed.child.kill("SIGKILL");
    await killed.ended;
    const { code, stdout, stderr } = await start(["worker", ...MACHINE]).ended;
    assert.equal(code, 0, `${stderr}${stdout}`);
    await assertComplete(fleet);
  });

  test("a worker that joins while another one has every work of a short list gets a part of them", async t => {
    const fleet = await fleetFor(t, 60_000, 4);
    const { works, folder, start } = fleet;
    const list = works.map(keyOf).join("\n");
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    const first = start(["worker", "--workers", "2", ...MACHINE]);
    await Promise.race([eventually(() => filesIn(folder).length >= 1), first.ended]);
    // Stopped until the second worker has joined, so that it has works left on a busy machine too.
    first.child.kill("SIGSTOP");
    const hasEnded = first.child.exitCode !== null;
    const manifest = await PostgresManifest.open(fleet.url, systemTime);
    t.after(() => manifest.close());
    const second = start(["worker", ...MACHINE]);
    const hasJoined = async () => (await manifest.reports.workers()).length === 2;
    await Promise.race([eventually(hasJoined), second.ended]);
    first.child.kill("SIGCONT");
    for (const { ended } of [first, second]) {
      const { code, stdout, stderr } = await ended;
      assert.equal(code, 0, stderr);
      assert.ok(hasEnded || JSON.parse(stdout).traffic.requests > 0, stdout);
    }
    await assertComplete(fleet);
  });

  test("a worker that is interrupted gives its works back at once, and another one continues", async t => {
    const fleet = await fleetFor(t, 300_000);
    const { works, folder, start } = fleet;
    const list = works.map(keyOf).join("\n");
    const run = start(["run", "--input", "-", ...SETTINGS], list);
    await Promise.race([eventually(() => filesIn(folder).length >= 2), run.ended]);
    run.child.kill("SIGINT");
    const interrupted = await run.ended;
    assert.equal(interrupted.code, 130, interrupted.stderr);
    const manifest = await PostgresManifest.open(fleet.url, systemTime);
    t.after(() => manifest.close());
    assert.deepEqual(await manifest.reports.workers(), []);
    assert.equal((await manifest.nextRun())?.id, 1);
    const { code, stderr } = await start(["worker", ...MACHINE]).ended;
    assert.equal(code, 0, stderr);
    await assertComplete(fleet);
    const idle = await start(["worker", ...MACHINE]).ended;
    assert.deepEqual([idle.code, idle.stdout], [0, ""]);
    assert.match(
      idle.stderr,
      /^No run of postgres:\/\/127\.0\.0\.1:\d+\/postgres\?schema=\w+ has works for a worker\.\n$/,
    );
  });

  test("a worker that was suspended for longer than its lease stores nothing, and joins again", async t => {
    const fleet = await fleetFor(t, 150_000, 3);
    const { works, folder, start } = fleet;
    const list = works.map(keyOf).join("\n");
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    const suspended = start(["worker", "--workers", "4", ...MACHINE]);
    await eventually(() => filesIn(folder).length >= 1);
    await suspend(suspended, join(folder, "limits.db"));
    const other = await start(["worker", ...MACHINE]).ended;
    assert.equal(other.code, 0, other.stderr);
    suspended.child.kill("SIGCONT");
    const { code, stderr } = await suspended.ended;
    assert.equal(code, 0, stderr);
    assert.match(
      stderr,
      /the lease of this worker ended: it could not be renewed for 3 s, or its connection broke; its works were given back/,
    );
    await assertComplete(fleet);
  });

  test("a run continues after an outage of the server that was longer than its lease", async t => {
    const leaseS = 2;
    const fleet = await fleetFor(t, 150_000, leaseS);
    const { works, folder, start } = fleet;
    const run = start(["run", "--input", "-", "--workers", "4", ...SETTINGS], works.map(keyOf).join("\n"));
    await eventually(() => filesIn(folder).length >= 1);
    await server.kill();
    // Nothing shows from outside when the lease has ended.
    await systemTime.sleep(2 * leaseS * 1000);
    await server.start();
    const { code, stderr } = await run.ended;
    assert.equal(code, 0, stderr);
    await assertComplete(fleet);
  });

  test("a worker ends within seconds of an interrupt although the server is away", async t => {
    const { works, folder, start } = await fleetFor(t, 150_000);
    const list = works.map(keyOf).join("\n");
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    const worker = start(["worker", "--workers", "4", ...MACHINE]);
    await eventually(() => filesIn(folder).length >= 1);
    await server.kill();
    try {
      worker.child.kill("SIGINT");
      const { code, stderr } = await worker.ended;
      // The summary cannot be read.
      assert.equal(code, 1);
      assert.match(stderr, /cannot reach the manifest postgres:/);
    } finally {
      await server.start();
    }
  });

  test("workers whose limits are not shared are refused, and a run with such limits has no workers", async t => {
    const { folder, url, works, internet } = await fleetFor(t, 10_000_000);
    const alone = (args: readonly string[], input?: string) =>
      startDocstokg(t, internet, folder, [...args, "--manifest", url], input);
    const list = works.slice(0, 2).map(keyOf).join("\n");
    await alone(["run", "--input", "-", "--enqueue-only", ...SETTINGS], list).ended;
    const refused = await alone(["worker", ...MACHINE]).ended;
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /worker: the limits are not shared with other workers: set --rate-backend redis/);
    const sole = await alone(["worker", "--sole-worker", ...MACHINE]).ended;
    assert.equal(sole.code, 0, sole.stderr);
    const run = await alone(["run", "--input", "-", ...SETTINGS], works.slice(2, 4).map(keyOf).join("\n")).ended;
    assert.equal(run.code, 0, run.stderr);
    assert.match(run.stderr, /in the memory of this process, so no worker can join it/);

    const manifest = await PostgresManifest.open(url, systemTime);
    t.after(() => manifest.close());
    await manifest.beginRun("run", "{}");
    const beside = await alone(["run", ...works.slice(4, 5).map(keyOf), ...SETTINGS]).ended;
    assert.equal(beside.code, 2);
    assert.match(beside.stderr, /another docstokg run uses the manifest postgres:/);
  });

  test("a worker that stays waits for the first run and the next one, and ends at an interrupt", async t => {
    const { folder, works, start } = await fleetFor(t, 10_000_000);
    const none = await start(["worker", ...MACHINE]).ended;
    assert.equal(none.code, 2);
    assert.match(none.stderr, /manifest not found: .*; docstokg run creates it/);
    // Started before there is a manifest.
    const staying = start(["worker", "--stay", ...MACHINE]);
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], works.slice(0, 2).map(keyOf).join("\n")).ended;
    await eventually(() => filesIn(folder).length === 2);
    await start(["run", "--input", "-", "--enqueue-only", ...SETTINGS], works.slice(2, 4).map(keyOf).join("\n")).ended;
    await eventually(() => filesIn(folder).length === 4);
    staying.child.kill("SIGINT");
    assert.equal((await staying.ended).code, 130);
  });
});

/** Suspends a process outside of its transactions on a file: the others would wait for the lock, as they should. */
function suspend({ child }: DocstokgProcess, file: string): Promise<void> {
  return eventually(() => {
    child.kill("SIGSTOP");
    if (!isLocked(file)) return true;
    child.kill("SIGCONT");
    return false;
  });
}

function isLocked(file: string): boolean {
  using database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec("BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch (error) {
    assert.match(String(error), /database is locked/);
    return true;
  }
}
