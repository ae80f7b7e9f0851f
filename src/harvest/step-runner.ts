import { DownloadError, HubClosedError, RejectedError } from "../errors.ts";
import { failureOf } from "./attempt-failure.ts";
import type { DownloadResult, Downloads } from "./downloads/downloads.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import { queryResolver, type ResolverQueryOptions, type ResolverQueryResult } from "./resolver-query.ts";
import type { RobotsGuard } from "./robots-guard.ts";
import type { ResolutionStep, ResolverStep } from "./step.ts";

export interface StepRunnerOptions extends ResolverQueryOptions {
  readonly downloads: Downloads;
  readonly robots: RobotsGuard;
}

export type StepOutcome =
  | ResolverQueryResult
  | DownloadResult
  /** The hub has refused the request; nothing was sent. */
  | { readonly kind: "refused"; readonly error: RejectedError }
  | { readonly kind: "stopped" };

/**
 * Sends the request of one step. Failures of hosts and networks are outcomes. Rejects only with errors that end the run:
 * a disk or manifest that cannot be written, a closed hub, a bug.
 */
export async function runStep(
  options: StepRunnerOptions,
  step: ResolutionStep,
  work: ListedWork,
  signal: AbortSignal,
): Promise<StepOutcome> {
  try {
    return step.kind === "ask"
      ? await query(options, step, signal)
      : await options.downloads.fetch({ ...step, work, signal });
  } catch (error) {
    if (signal.aborted) return { kind: "stopped" };
    if (error instanceof RejectedError) return { kind: "refused", error };
    if (error instanceof DownloadError || error instanceof HubClosedError || isInternalError(error)) throw error;
    return { kind: "failed", ...failureOf(error), bytes: 0 };
  }
}

async function query(
  options: StepRunnerOptions,
  step: ResolverStep,
  signal: AbortSignal,
): Promise<ResolverQueryResult> {
  if (step.request.role === "landing") {
    const disallowed = await options.robots.disallowReason(step.url, signal);
    if (disallowed !== undefined) return { kind: "failed", ...disallowed, bytes: 0 };
  }
  return queryResolver(options, step, signal);
}

/** Errors of this program and of the manifest, which must not be recorded as failures of a host. */
function isInternalError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error instanceof ReferenceError || error instanceof SyntaxError || ("errcode" in error && "errstr" in error);
}
