/**
 * One process, one mutant: runs test files on a source tree in which a single file is read differently.
 * Nothing is written anywhere: the change is made as the file is loaded. `ask.ts` starts this and hears what failed.
 */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { registerHooks } from "node:module";
import { run } from "node:test";
import { pathToFileURL } from "node:url";
import { applied, strippedOf } from "./mutants.ts";

/** What a trial is told. Paths are absolute. */
export interface Task {
  readonly tests: readonly string[];
  readonly change?: { readonly path: string; readonly start: number; readonly end: number; readonly after: string };
  /** Say which code below this folder the tests have run. */
  readonly coverageOf?: string;
}

/** Which ranges of a file ran how often; the innermost around a position counts. */
export interface Ran {
  readonly path: string;
  readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[];
}

/** What a trial tells. */
export interface Told {
  readonly failed?: string;
  readonly passed: number;
  readonly ran?: readonly Ran[];
}

const { tests, change, coverageOf }: Task = JSON.parse(process.argv[2] ?? "{}");
if (change !== undefined) {
  const url = pathToFileURL(change.path).href;
  const source = applied(strippedOf(readFileSync(change.path, "utf8")), change);
  registerHooks({
    load: (asked, context, next) =>
      asked === url ? { format: "module", source, shortCircuit: true } : next(asked, context),
  });
}
// Properties draw the same examples each time, and the first counterexample is enough.
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
events.on("test:fail", ({ name }) => tell({ failed: name, passed }));
events.on("test:pass", () => {
  passed += 1;
});
events.on("end", async () => {
  tell(coverageOf === undefined ? { passed } : { passed, ran: await ranBelow(coverageOf) });
});
events.resume();

let hasTold = false;
function tell(told: Told): void {
  if (hasTold) return;
  hasTold = true;
  process.send?.(told, () => process.exit(0));
}

async function ranBelow(folder: string): Promise<readonly Ran[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const prefix = pathToFileURL(folder).href;
  return result
    .filter(({ url }) => url.startsWith(prefix) && !url.endsWith(".test.ts"))
    .map(({ url, functions }) => ({ path: new URL(url).pathname, ranges: functions.flatMap(({ ranges }) => ranges) }));
}
