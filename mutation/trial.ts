/**
 * The program of a trial process: runs test files with one mutant.
 * The change is applied when the file is loaded, so nothing is written to disk. `run-trial.ts` starts this program.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { registerHooks } from "node:module";
import { run } from "node:test";
import { pathToFileURL } from "node:url";
import { applied, strippedOf } from "./mutants.ts";

/** The input of a trial. Paths are absolute. */
export interface TrialTask {
  readonly tests: readonly string[];
  readonly change?: { readonly path: string; readonly start: number; readonly end: number; readonly after: string };
  /** Report which code below this folder the tests ran. */
  readonly coverageOf?: string;
}

/** How often each range of a file ran. The innermost range around a position applies. */
export interface FileCoverage {
  readonly path: string;
  readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
}

/** The result of a trial. */
export interface TrialReport {
  readonly failed?: string;
  readonly passed: number;
  readonly coverage?: readonly FileCoverage[];
}

const { tests, change, coverageOf }: TrialTask = JSON.parse(process.argv[2] ?? "{}");
if (change !== undefined) {
  const url = pathToFileURL(change.path).href;
  const source = applied(strippedOf(readFileSync(change.path, "utf8")), change);
  registerHooks({
    load: (specifier, context, next) =>
      specifier === url ? { format: "module", source, shortCircuit: true } : next(specifier, context),
  });
}
// The same examples in every trial, and no shrinking of counterexamples.
const { configureGlobal } = await import("fast-check");
configureGlobal({ seed: 1, endOnFailure: true });

const session = new Session();
if (coverageOf !== undefined) {
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
}

let passed = 0;
const events = run({ files: [...tests], isolation: "none" });
events.on("test:fail", ({ name }) => sendReport({ failed: name, passed }));
events.on("test:pass", () => {
  passed += 1;
});
events.on("end", async () => {
  sendReport(coverageOf === undefined ? { passed } : { passed, coverage: await coverageBelow(coverageOf) });
});
events.resume();

let hasReported = false;
function sendReport(report: TrialReport): void {
  if (hasReported) return;
  hasReported = true;
  process.send?.(report, () => process.exit(0));
}

async function coverageBelow(folder: string): Promise<readonly FileCoverage[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const prefix = pathToFileURL(folder).href;
  return result
    .filter(({ url }) => url.startsWith(prefix) && !url.endsWith(".test.ts"))
    .map(({ url, functions }) => ({ path: new URL(url).pathname, ranges: functions.flatMap(({ ranges }) => ranges) }));
}
