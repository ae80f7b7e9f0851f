/**
 * Works per second with limits out of the way: single processes, each with a manifest file and its part of the list,
 * against the same number of workers on one PostgreSQL manifest. Both download the same files from a fast server, in
 * turns, so that the load of the machine is the same for both. Statements of the server for each work do not depend on the
 * load; they include those of the start and the end of each worker.
 *
 *   npm run workers:throughput -- --works 2000 --processes 4 --rounds 3
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemTime } from "../src/time/system-time.ts";
import { pdf } from "../test/harvest/kit.ts";
import { PostgresServer } from "../test/harvest/postgres-server.ts";
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
  const { values } = parseArgs({
    options: {
      works: { type: "string", default: "2000" },
      processes: { type: "string", default: "4" },
      rounds: { type: "string", default: "3" },
    },
  });
  const [works, processes, rounds] = [Number(values.works), Number(values.processes), Number(values.rounds)];
  const folder = mkdtempSync(join(tmpdir(), "docstokg-throughput-"));
  writeFileSync(join(folder, "ratelimits.yaml"), POLICY);
  const files = fork(import.meta.filename);
  const database = await PostgresServer.start({ shared_preload_libraries: "pg_stat_statements" });
  await database.query("CREATE EXTENSION pg_stat_statements");
  try {
    const [port] = (await once(files, "message")) as [number];
    const env = { DOCSTOKG_RLIMITS_YAML: join(folder, "ratelimits.yaml") };
    const results: { readonly aloneS: number; readonly workersS: number; readonly statementsPerWork: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const urls = Array.from({ length: works }, (_, index) => `http://127.0.0.1:${port}/${round}/${index}.pdf`);
      const out = join(folder, String(round));
      const quiet = ["--no-telemetry", "-q", "--json", "--allow-private"];
      const aloneS = await secondsOf(async () => {
        const ended = Array.from({ length: processes }, (_, part) => {
          const own = urls.filter((_url, index) => index % processes === part).join("\n");
          const args = ["run", "--input", "-", "--out", join(out, `alone-${part}`), ...quiet];
          return startDocstokg(args, { env, input: own }).ended;
        });
        return counts(await Promise.all(ended));
      }, works);
      const manifest = ["--manifest", database.url(), ...quiet];
      const enqueue = ["run", "--input", "-", "--enqueue-only", "--out", join(out, "workers"), ...manifest];
      await startDocstokg(enqueue, { env, input: urls.join("\n") }).ended;
      await database.query("SELECT pg_stat_statements_reset()");
      const workersS = await secondsOf(async () => {
        const worker = () => startDocstokg(["worker", "--sole-worker", ...manifest], { env }).ended;
        const [first = ""] = await Promise.all(Array.from({ length: processes }, worker));
        return first === "" ? works : counts([first]);
      }, works);
      const [row = {}] = await database.query("SELECT sum(calls)::float8 AS calls FROM pg_stat_statements");
      results.push({ aloneS, workersS, statementsPerWork: Number(row["calls"]) / works });
    }
    const ratios = results.map(({ aloneS, workersS }) => aloneS / workersS).sort((one, other) => one - other);
    printFigures({ works, processes, results, medianRatio: ratios[Math.floor(ratios.length / 2)] });
  } finally {
    files.disconnect();
    await database.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function secondsOf(action: () => Promise<number>, expected: number): Promise<number> {
  const fromUs = systemTime.monotonicUs();
  const done = await action();
  if (done !== expected) throw new Error(`${done} works of ${expected} are done`);
  return (systemTime.monotonicUs() - fromUs) / 1e6;
}

/** Done works, from the summaries of processes. */
function counts(summaries: readonly string[]): number {
  return summaries.reduce((sum, text) => sum + Number(JSON.parse(text).works.done), 0);
}
