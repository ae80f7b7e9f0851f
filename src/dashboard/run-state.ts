import { actualRunState } from "../harvest/manifest/actual-run-state.ts";
import type { Manifest } from "../harvest/manifest/manifest.ts";
import type { RunState } from "./dashboard-state.ts";

const FAILED_SHOWN = 20;

export interface RunStateOptions {
  readonly folder: string;
  /** Only for a run of this process: the estimated time until the limits have admitted the unfinished works. */
  readonly timeLeftMs?: (() => number | undefined) | undefined;
  /** Only for a run of this process. @default not paused */
  readonly isPaused?: boolean | undefined;
}

/** The works of a manifest, and its last run. Null if no run has used it. */
export async function readRunState(manifest: Manifest, options: RunStateOptions): Promise<RunState | null> {
  const { reports } = manifest;
  const { works, reasons, files, runs } = await reports.report();
  const [last] = runs;
  if (last === undefined) return null;
  const isOwn = options.timeLeftMs !== undefined;
  const state = isOwn ? last.state : await actualRunState(manifest, last);
  const isRunning = state === "running";
  const resolvers = await reports.resolverCounts();
  const failed = await reports.failedWorks(FAILED_SHOWN);
  const workers = await reports.workers();
  return {
    folder: options.folder,
    state,
    command: last.command,
    startedMs: last.startedMs,
    endedMs: last.endedMs ?? null,
    isPaused: isRunning && options.isPaused === true,
    total: works.total,
    done: works.done,
    failed: works.failed,
    pending: works.pending,
    files: files.count,
    bytes: files.bytes,
    timeLeftMs: roundedLeftMs(isRunning ? options.timeLeftMs?.() : undefined),
    failures: reasons
      .filter(reason => reason.state === "failed")
      .map(({ reason, works: count }) => ({ reason, works: count })),
    resolvers: resolvers.toSorted((a, b) => b.stored - a.stored || b.asked - a.asked),
    workers: workers
      .filter(({ run }) => run === last.id)
      .map(({ name, startedMs, done, failed: failures, bytes, taken, isAlive }) => ({
        ...{ name, startedMs, done, failed: failures, bytes, taken, isAlive },
      })),
    lastFailed: failed.map(({ key, reason, message = "" }) => ({ key, reason, message })),
  };
}

/** Rounded to seconds: an estimate in milliseconds would change with every read. */
function roundedLeftMs(ms: number | undefined): number | null {
  return ms === undefined || !Number.isFinite(ms) ? null : Math.ceil(ms / 1000) * 1000;
}
