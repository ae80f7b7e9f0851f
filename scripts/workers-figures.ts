/**
 * Figures of several workers on one PostgreSQL manifest: a simulated internet that enforces the documented limits, random
 * kill -9 of workers, and one restart of PostgreSQL.
 *
 *   npm run workers:figures -- --works 300 --workers 4 --kill-every 5
 *   npm run workers:figures -- --enqueue 1000000
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, createWriteStream, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { PostgresManifest } from "../src/harvest/manifest/postgres/postgres-manifest.ts";
import { startInternet } from "../src/testing/internet/start-internet.ts";
import { systemTime } from "../src/time/system-time.ts";
import { PostgresServer } from "../test/harvest/postgres-server.ts";
import { isQuick, keyOf } from "../test/harvest/processes.ts";
import { RedisServer } from "../test/stores/redis-server.ts";
import { scriptArguments, wholeNumber } from "./script-arguments.ts";
import { printFigures, type StartedProcess, startDocstokg } from "./workers-kit.ts";

const { values } = scriptArguments({
  options: {
    works: { type: "string", default: "300" },
    workers: { type: "string", default: "4" },
    "kill-every": { type: "string", default: "5" },
    seed: { type: "string", default: "1" },
    enqueue: { type: "string" },
  },
});
/** Client and servers share the cores of one machine: a process that waits for a core looks like network jitter. */
const GUARD = ["--rate", "defaults:metadata=guard_ms:300", "--rate", "defaults:artifact=guard_ms:300"];

const folder = mkdtempSync(join(tmpdir(), "docstokg-workers-"));
const server = await PostgresServer.start();
try {
  await (values.enqueue === undefined ? runWorkers() : enqueue(wholeNumber("enqueue", values.enqueue)));
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

async function enqueue(count: number): Promise<void> {
  const list = join(folder, "list.txt");
  await pipeline(function* () {
    for (let index = 0; index < count; index += 1) yield `10.5555/work-${index}\n`;
  }, createWriteStream(list));
  const url = server.url();
  const common = ["--manifest", url, "--json"];
  const fromUs = systemTime.monotonicUs();
  const { child, ended } = startDocstokg([
    "run",
    "--input",
    list,
    "--enqueue-only",
    "-q",
    "--no-telemetry",
    "--out",
    folder,
    ...common,
  ]);
  let mostKib = 0;
  const sampled = setInterval(() => {
    const status = spawn("ps", ["-o", "rss=", "-p", String(child.pid)], { stdio: ["ignore", "pipe", "ignore"] });
    status.stdout.on("data", data => {
      mostKib = Math.max(mostKib, Number(data));
    });
  }, 1000);
  const output = await ended;
  clearInterval(sampled);
  const enqueuedS = (systemTime.monotonicUs() - fromUs) / 1e6;
  const statusUs = systemTime.monotonicUs();
  const status = JSON.parse(await startDocstokg(["status", ...common]).ended);
  const statusS = (systemTime.monotonicUs() - statusUs) / 1e6;
  printFigures({
    enqueued: JSON.parse(output).enqueued,
    enqueuedS,
    listed: status.works.total,
    statusS,
    mostMiB: mostKib / 1024,
  });
}

async function runWorkers(): Promise<void> {
  const wanted = wholeNumber("works", values.works);
  const internet = await startInternet({ seed: wholeNumber("seed", values.seed), works: wanted * 5 });
  const redis = await RedisServer.start();
  try {
    const works = internet.works.filter(work => isQuick(work) && !opensCircuits(work)).slice(0, wanted);
    const ca = join(folder, "ca.pem");
    writeFileSync(ca, internet.network.tls.ca);
    const network = [...internet.network.connectTo.flatMap(entry => ["--connect-to", entry]), "--ca", ca];
    const list = works.map(keyOf).join("\n");
    const quiet = ["--no-telemetry", "-q", "--json"];
    const alone = ["run", "--input", "-", "--resolvers", "openalex", ...quiet, ...network, ...GUARD];
    const aloneUs = systemTime.monotonicUs();
    const aloneText = await startDocstokg([...alone, "--out", join(folder, "alone")], { input: list }).ended;
    const aloneS = (systemTime.monotonicUs() - aloneUs) / 1e6;
    const before = await internet.ledger();

    const url = server.url({ leaseS: 5 });
    const shared = ["--manifest", url, "--rate-backend", "redis", "--rate-dsn", redis.url];
    const out = join(folder, "papers");
    const enqueued = ["run", "--input", "-", "--enqueue-only", "--resolvers", "openalex", "--out", out, ...quiet];
    await startDocstokg([...enqueued, ...shared, ...GUARD], { input: list }).ended;
    const manifest = await PostgresManifest.open(url, systemTime);
    const startedUs = systemTime.monotonicUs();
    const workers: StartedProcess[] = [];
    const startWorker = () => workers.push(startDocstokg(["worker", ...quiet, ...network, ...shared]));
    for (let index = 0; index < wholeNumber("workers", values.workers); index += 1) startWorker();
    let kills = 0;
    let restarts = 0;
    let random = wholeNumber("seed", values.seed);
    for (;;) {
      await systemTime.sleep(wholeNumber("kill-every", values["kill-every"]) * 1000);
      const { works: counts } = await manifest.reports.report();
      if (counts.pending === 0) break;
      random = (random * 1_103_515_245 + 12_345) % 2 ** 31;
      const alive = workers.filter(({ child }) => child.exitCode === null && child.signalCode === null);
      alive[random % Math.max(1, alive.length)]?.child.kill("SIGKILL");
      kills += alive.length > 0 ? 1 : 0;
      startWorker();
      if (restarts === 0 && counts.pending < works.length / 2) {
        restarts += 1;
        await server.kill();
        await server.start();
      }
    }
    await Promise.all(workers.map(({ ended }) => ended));
    const report = await manifest.reports.report();
    const endedMs = report.runs[0]?.endedMs ?? 0;
    const makespanS = (endedMs - (report.runs[0]?.startedMs ?? 0)) / 1000;
    const problems = await problemsOf(manifest, works, out);
    await manifest.close();
    const ledger = await internet.ledger();
    printFigures({
      ...{ works: works.length, done: report.works.done, failed: report.works.failed, pending: report.works.pending },
      reasons: report.reasons,
      ...{ kills, restarts, makespanS, wallS: (systemTime.monotonicUs() - startedUs) / 1e6, aloneS },
      ...{ aloneDone: JSON.parse(aloneText).works.done, rejectedAlone: before.rejected },
      ...{ requests: ledger.requests - before.requests, rejected: ledger.rejected - before.rejected, ...problems },
    });
  } finally {
    await redis.stop();
    await internet.close();
  }
}

/** Truncated transfers open circuits, once for each simulated internet: then the makespan would not depend on limits. */
function opensCircuits({ scenario }: { readonly scenario: string }): boolean {
  return scenario === "truncated-once";
}

async function problemsOf(
  manifest: PostgresManifest,
  works: readonly Parameters<typeof keyOf>[0][],
  out: string,
): Promise<Readonly<Record<string, number>>> {
  const expected = new Map(works.map(work => [keyOf(work), work.file.sha256]));
  let different = 0;
  let storedTwice = 0;
  const paths = new Set<string>();
  for await (const { key, files } of manifest.reports.workRecords()) {
    const [file] = files;
    if (file === undefined) continue;
    paths.add(file.path);
    const hash = createHash("sha256");
    await pipeline(createReadStream(join(out, file.path)), hash);
    if (hash.digest("hex") !== expected.get(key)) different += 1;
  }
  for await (const line of manifest.reports.attemptLines()) {
    const { attempts } = JSON.parse(line) as { readonly attempts: readonly { readonly reason: string }[] };
    if (attempts.filter(({ reason }) => reason === "ok").length > 1) storedTwice += 1;
  }
  const onDisk = readdirSync(out).filter(name => name.endsWith(".pdf"));
  const partsLeft = readdirSync(join(out, ".parts")).length;
  return { different, storedTwice, unknownFiles: onDisk.filter(name => !paths.has(name)).length, partsLeft };
}
