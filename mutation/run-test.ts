/** Runs one test in a trial process, which must survive whatever a mutant does. */
import { setImmediate } from "node:timers/promises";
import type { CollectedTest } from "./collected-tests.ts";
import { hasTooManySteps, limitSteps, stepsMade } from "./switch.ts";

export interface TestRun {
  /** Without it, the test has passed. */
  readonly failure?: "failed" | "time-out";
  readonly tookMs: number;
  readonly steps: number;
}

/** What ends the running test from outside of its function. */
let interrupt: (failure: "failed" | "time-out") => void = () => undefined;
for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, () => interrupt("failed"));
// No timer and no socket is left, so the promise that the test waits for is never settled.
process.on("beforeExit", () => interrupt("failed"));

/** `limitMs` ends a test that waits for a timer that keeps starting again; endless loops end by `mostSteps`. */
export async function runTest(
  { run }: CollectedTest,
  mostSteps = Number.POSITIVE_INFINITY,
  limitMs = 600_000,
): Promise<TestRun> {
  const before = process.cpuUsage();
  const interrupted = Promise.withResolvers<"failed" | "time-out">();
  interrupt = interrupted.resolve;
  const timer = setTimeout(() => interrupt("time-out"), limitMs).unref();
  limitSteps(mostSteps);
  const ended = (async () => {
    await run();
    // A promise that the test has left behind may be rejected now.
    await setImmediate();
  })().then(
    () => undefined,
    () => "failed" as const,
  );
  const failure = await Promise.race([ended, interrupted.promise]);
  const steps = stepsMade();
  const isEndless = hasTooManySteps();
  clearTimeout(timer);
  interrupt = () => undefined;
  // What a failed test has left behind ends before the next test begins.
  if (failure !== undefined) for (let turn = 0; turn < 3; turn += 1) await setImmediate();
  limitSteps(Number.POSITIVE_INFINITY);
  const { user, system } = process.cpuUsage(before);
  const cost = { tookMs: (user + system) / 1000, steps };
  if (isEndless) return { ...cost, failure: "time-out" };
  return failure === undefined ? cost : { ...cost, failure };
}
