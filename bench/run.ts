/**
 * `npm run bench -- [name…] [--quick] [--json]`: runs benchmarks of docstokg and of other
 * libraries, each part in its own process.
 * Every other file of this folder is a benchmark, named like its file.
 * Exit codes: 0 done, 1 a benchmark failed, 2 wrong arguments. A missed target is no failure: the machine may be busy.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { Bench, BenchOptions, PartReport } from "./kit/bench.ts";
import { installPeers, peerVersions } from "./kit/peers.ts";
import { formatFigures, formatTable } from "./kit/report.ts";

const here = import.meta.dirname;

interface Job {
  readonly bench: string;
  readonly part: string;
}

class UsageError extends Error {}

process.exitCode = await main(process.argv.slice(2)).catch(error => {
  console.error(error instanceof UsageError ? error.message : error);
  return error instanceof UsageError ? 2 : 1;
});

async function main(args: readonly string[]): Promise<number> {
  const jobs = await allJobs();
  const { names, isQuick, isJson } = readArgs(args);
  const chosen = names.length === 0 ? jobs : names.flatMap(name => jobsNamed(name, jobs));
  installPeers();
  const machine = `Node ${process.version}, ${availableParallelism()} x ${cpus()[0]?.model ?? "unknown"}`;
  const peers = Object.entries(peerVersions()).map(([name, version]) => `${name} ${version}`);
  if (!isJson)
    console.log(
      `${machine}${isQuick ? "; a quick run, too short for reliable numbers" : ""}\ncompared with ${peers.join(", ")}\n`,
    );
  const reports: (Job & PartReport)[] = [];
  for (const job of new Set(chosen)) {
    const report = await runJob(job, { isQuick });
    reports.push({ ...job, ...report });
    if (!isJson) for (const table of report.tables) console.log(`${job.bench}/${job.part}: ${formatTable(table)}`);
  }
  if (isJson) console.log(JSON.stringify({ machine, peers, isQuick, reports }, undefined, 2));
  else console.log(formatFigures(reports.flatMap(({ figures }) => figures)));
  return 0;
}

function readArgs(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { quick: { type: "boolean" }, json: { type: "boolean" } },
    });
    return { names: positionals, isQuick: values.quick ?? false, isJson: values.json ?? false };
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

async function allJobs(): Promise<readonly Job[]> {
  const names = globSync("*.ts", { cwd: here })
    .map(file => basename(file, ".ts"))
    .filter(name => name !== "run")
    .sort();
  const jobs: Job[] = [];
  for (const name of names) {
    const { bench } = (await import(`./${name}.ts`)) as { readonly bench: Bench };
    for (const part of Object.keys(bench.parts)) jobs.push({ bench: name, part });
  }
  return jobs;
}

/** `limiter` selects all parts, `limiter/memory` one. */
function jobsNamed(name: string, jobs: readonly Job[]): readonly Job[] {
  const named = jobs.filter(({ bench, part }) => name === bench || name === `${bench}/${part}`);
  if (named.length > 0) return named;
  const valid = [...new Set(jobs.flatMap(({ bench, part }) => [bench, `${bench}/${part}`]))];
  throw new UsageError(`unknown benchmark ${JSON.stringify(name)}; expected ${valid.join(", ")}`);
}

async function runJob({ bench, part }: Job, options: BenchOptions): Promise<PartReport> {
  console.error(`running ${bench}/${part} …`);
  const child = fork(resolve(here, "kit/child.ts"), [bench, part, JSON.stringify(options)], {
    execArgv: ["--expose-gc", ...process.execArgv],
    stdio: ["ignore", 2, 2, "ipc"],
    // JSON has no undefined: an empty cell arrives as null.
    serialization: "advanced",
  });
  let report: PartReport | undefined;
  child.on("message", message => {
    report = message as PartReport;
    child.disconnect();
  });
  const [code] = await once(child, "exit");
  if (report === undefined || code !== 0) throw new Error(`${bench}/${part} ended with code ${code}`);
  return report;
}
