/** User and system time of whole processes, so that the loading of modules and the work of other threads count. */
import { execFileSync } from "node:child_process";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { BenchOptions, PartReport } from "../kit/bench.ts";
import { atMost } from "../kit/report.ts";
import { median } from "../kit/statistics.ts";

const RUNS = 10;
const REGISTER_ADDED_MS_MAX = 150;

const BARE = "node";
const REGISTER = "node --import docstokg/register";
const root = resolve(import.meta.dirname, "../..");
const entry = (name: string) => ["--import", pathToFileURL(resolve(root, "dist", `${name}.js`)).href];

const CASES: Readonly<Record<string, readonly string[]>> = {
  [BARE]: [],
  "node --import undici": ["--import", import.meta.resolve("undici")],
  [REGISTER]: entry("register"),
  "node --import docstokg": entry("index"),
  "node --import docstokg/limiter": entry("limiter"),
  "node --import docstokg/breaker": entry("breaker"),
};

/** At the end of the process: everything that starting costs is over then. */
const PROGRAM = `process.on("exit", () => {
  const { userCPUTime, systemCPUTime } = process.resourceUsage();
  process.stdout.write(String((userCPUTime + systemCPUTime) / 1000));
});`;

export async function measure({ isQuick }: BenchOptions): Promise<PartReport> {
  const times = new Map(Object.keys(CASES).map(name => [name, [] as number[]]));
  // In turns, so that a busy machine affects all cases alike.
  for (let run = 0; run < (isQuick ? 2 : RUNS); run += 1)
    for (const [name, args] of Object.entries(CASES)) times.get(name)?.push(cpuMs(args));
  const of = (name: string) => median(times.get(name) ?? []);
  return {
    tables: [
      {
        title: `CPU milliseconds of a process that does nothing else, median of ${RUNS} runs`,
        columns: ["command", "ms", "added ms", "times bare"],
        rows: Object.keys(CASES).map(name => [name, of(name), of(name) - of(BARE), of(name) / of(BARE)]),
      },
    ],
    figures: [atMost("CPU ms that docstokg/register adds", of(REGISTER) - of(BARE), REGISTER_ADDED_MS_MAX)],
  };
}

function cpuMs(args: readonly string[]): number {
  const env = Object.entries(process.env).filter(([name]) => !/^(?:DOCSTOKG_|NODE_OPTIONS$)/.test(name));
  return Number(
    execFileSync(process.execPath, [...args, "--eval", PROGRAM], { encoding: "utf8", env: Object.fromEntries(env) }),
  );
}
