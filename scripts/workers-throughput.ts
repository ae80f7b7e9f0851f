/**
 * Seconds for the same works without limits: single processes, each with a manifest file and its part of the list,
 * against the same number of workers on one PostgreSQL manifest. Both download the same files from a fast server, in
 * turns, so that the load of the machine is the same for both. The numbers of PostgreSQL statements and commits, of bytes
 * of its log and of CPU milliseconds for each work depend little on the load. Both include the start and the end of each
 * process.
 *
 *   npm run workers:throughput -- --works 2000 --processes 4 --rounds 3
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemTime } from "../src/time/system-time.ts";
import { pdf } from "../test/harvest/kit.ts";
import { PostgresServer } from "../test/harvest/postgres-server.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";
import { printFigures, startDocstokg } from "./workers-kit.ts";

const POLICY = `
version: 1
extends: none
defaults:
  metadata: { rates: none, max_concurrent: 1000 }
  landing: { rates: none, max_concurrent: 1000 }
  artifact: { rates: none, max_concurrent: 1000 }
`;
const FILE_BYTES = 100_000;
/** Linux counts CPU time in hundredths of a second. */
const MS_PER_TICK = 10;

if (process.send !== undefined) serveFiles();
else await measure();

/** The server is a process of its own, so that it does not wait for this one. */
function serveFiles(): void {
  const server = createServer(({ url = "" }, response) => {
    response.setHeader("content-type", "application/pdf").end(pdf(url, FILE_BYTES));
  });
  server.listen(0, "127.0.0.1", () => process.send?.((server.address() as AddressInfo).port));
  process.once("disconnect", () => process.exit());
}

async function measure(): Promise<void> {
  const { values } = scriptArguments({
    options: {
      works: { type: "string", default: "2000" },
      processes: { type: "string", default: "4" },
      rounds: { type: "string", default: "3" },
    },
  });
  const [works, processes, rounds] = [
    wholeNumber("works", values.works),
    wholeNumber("processes", values.processes),
    wholeNumber("rounds", values.rounds),
  ];
  const folder = mkdtempSync(join(tmpdir(), "docstokg-throughput-"));
  writeFileSync(join(folder, "ratelimits.yaml"), POLICY);
  const files = fork(import.meta.filename);
  const database = await PostgresServer.start({ shared_preload_libraries: "pg_stat_statements" });
  await database.query("CREATE EXTENSION pg_stat_statements");
  try {
    const [port] = (await once(files, "message")) as [number];
    const env = { DOCSTOKG_RLIMITS_YAML: join(folder, "ratelimits.yaml") };
    const results: RoundResult[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const urls = Array.from({ length: works }, (_, index) => `http://127.0.0.1:${port}/${round}/${index}.pdf`);
      const out = join(folder, String(round));
      const quiet = ["--no-telemetry", "-q", "--json", "--allow-private"];
      const alone = await costOf(
        files.pid,
        async () => {
          const ended = Array.from({ length: processes }, (_, part) => {
            const own = urls.filter((_url, index) => index % processes === part).join("\n");
            const args = ["run", "--input", "-", "--out", join(out, `alone-${part}`), ...quiet];
            return startDocstokg(args, { env, input: own }).ended;
          });
          return counts(await Promise.all(ended));
        },
        works,
      );
      const manifest = ["--manifest", database.url(), ...quiet];
      const enqueue = ["run", "--input", "-", "--enqueue-only", "--out", join(out, "workers"), ...manifest];
      await startDocstokg(enqueue, { env, input: urls.join("\n") }).ended;
      await database.query("SELECT pg_stat_statements_reset()");
      const before = await countersOf(database);
      const workers = await costOf(
        files.pid,
        async () => {
          const worker = () => startDocstokg(["worker", "--sole-worker", ...manifest], { env }).ended;
          const [first = ""] = await Promise.all(Array.from({ length: processes }, worker));
          return first === "" ? works : counts([first]);
        },
        works,
      );
      const after = await countersOf(database);
      const cpuMsPerWork = { alone: alone.cpuMs / works, workers: workers.cpuMs / works };
      const databasePerWork = {
        statements: after.statements / works,
        commits: (after.commits - before.commits) / works,
        logBytes: (after.logBytes - before.logBytes) / works,
      };
      results.push({ aloneS: alone.elapsedS, workersS: workers.elapsedS, cpuMsPerWork, databasePerWork });
    }
    printFigures({
      ...{ works, processes, results },
      medianRatio: medianOf(results.map(({ aloneS, workersS }) => aloneS / workersS)),
      medianCpuRatio: medianOf(results.map(({ cpuMsPerWork: cpu }) => cpu.alone / cpu.workers)),
    });
  } finally {
    files.disconnect();
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface RoundResult {
  readonly aloneS: number;
  readonly workersS: number;
  /** Of the processes, for the workers with their database. */
  readonly cpuMsPerWork: { readonly alone: number; readonly workers: number };
  readonly databasePerWork: DatabaseCounters;
}

interface DatabaseCounters {
  /** Since the last reset. */
  readonly statements: number;
  readonly commits: number;
  /** Of the write-ahead log. */
  readonly logBytes: number;
}

async function countersOf(database: PostgresServer): Promise<DatabaseCounters> {
  const [row = {}] = await database.query(
    `SELECT (SELECT sum(calls) FROM pg_stat_statements)::float8 AS statements, xact_commit::float8 AS commits,
       pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 AS log_bytes
     FROM pg_stat_database WHERE datname = current_database()`,
  );
  return {
    statements: Number(row["statements"]),
    commits: Number(row["commits"]),
    logBytes: Number(row["log_bytes"]),
  };
}

/** @param server the process that serves the files, whose CPU time does not count */
async function costOf(
  server: number | undefined,
  action: () => Promise<number>,
  expected: number,
): Promise<{ readonly elapsedS: number; readonly cpuMs: number }> {
  const fromUs = systemTime.monotonicUs();
  const fromMs = descendantsCpuMs(server);
  const done = await action();
  if (done !== expected) throw new Error(`${done} works of ${expected} are done`);
  return { elapsedS: (systemTime.monotonicUs() - fromUs) / 1e6, cpuMs: descendantsCpuMs(server) - fromMs };
}

/** CPU time of all processes that this one has started, and that those have started, also of those that have ended. */
function descendantsCpuMs(except: number | undefined): number {
  const stats = readdirSync("/proc")
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => statOf(Number(pid)));
  const cpuOf = (parent: number): number =>
    stats
      .filter(({ pid, ppid }) => ppid === parent && pid !== except)
      .reduce((sum, { pid, ownTicks, endedTicks }) => sum + ownTicks + endedTicks + cpuOf(pid), 0);
  const ended = stats.find(({ pid }) => pid === process.pid)?.endedTicks ?? 0;
  return (ended + cpuOf(process.pid)) * MS_PER_TICK;
}

/** From /proc (Linux). Empty if the process has ended. */
function statOf(pid: number) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text
      .slice(text.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [, ppid = 0] = fields;
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11);
    return [{ pid, ppid, ownTicks: user + system, endedTicks: endedUser + endedSystem }];
  } catch {
    return [];
  }
}

function medianOf(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** Done works, from the summaries of processes. */
function counts(summaries: readonly string[]): number {
  return summaries.reduce((sum, text) => sum + Number(JSON.parse(text).works.done), 0);
}
