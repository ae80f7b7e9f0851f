import { DownloadError, HubClosedError, RejectedError, StoreError } from "../errors.ts";
import { type AttemptFailure, failureOf } from "./attempt-failure.ts";
import type { DownloadRequest, DownloadResult, Downloads } from "./downloads/downloads.ts";
import { type FileKind, NOT_WANTED } from "./downloads/file-check.ts";
import type { ListedWork } from "./manifest/manifest.ts";
import {
  type FailedQuery,
  type FindingResult,
  queryBatch,
  queryResolver,
  type ResolverQueryOptions,
  type ResolverQueryResult,
} from "./resolver-query.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { discardBody } from "./response-body.ts";
import type { RobotsGuard } from "./robots-guard.ts";
import type { FetchStep, ResolutionStep, ResolverStep } from "./step.ts";
import type { Work } from "./work.ts";

export interface StepRunnerOptions extends ResolverQueryOptions {
  readonly downloads: Downloads;
  readonly robots: RobotsGuard;
  /** Wanted kinds of files, the preferred one first. */
  readonly formats: readonly FileKind[];
}

/** The hub has refused the request, and nothing was sent; or the run stops. */
export type UnsentOutcome = { readonly kind: "refused"; readonly error: RejectedError } | { readonly kind: "stopped" };

/** The page is a file, which was not received completely. */
type InterruptedPage = Extract<DownloadResult, { readonly kind: "failed" }> & {
  /** Requests the file at the next try: a download can be resumed, a query cannot. */
  readonly retryAs?: FetchStep | undefined;
};

export type StepOutcome =
  | Exclude<ResolverQueryResult, { readonly kind: "file" }>
  | DownloadResult
  | InterruptedPage
  | UnsentOutcome;

/**
 * Sends the request of one step. Failures of hosts and networks are outcomes. Rejects only with errors that end the run: a
 * disk or manifest that cannot be written, a closed hub, a bug.
 * @param ofSeveral see `DownloadedFile`. @default the file is the only one of the work
 */
export async function runStep(
  options: StepRunnerOptions,
  step: ResolutionStep,
  work: ListedWork,
  signal: AbortSignal,
  startedUs: number,
  ofSeveral?: "main" | "further",
): Promise<StepOutcome> {
  try {
    if (step.kind === "ask") return await query(options, step, { work, signal, startedUs, ofSeveral });
    const { resolver, candidate, url } = step;
    return await options.downloads.fetch({
      resolver,
      candidate,
      url,
      step: step.kind,
      work,
      signal,
      startedUs,
      ofSeveral,
    });
  } catch (error) {
    const outcome = outcomeOf(error, signal);
    const isPage = step.kind === "ask" && step.request.role === "landing";
    // A page cannot be resumed, so it would be as slow again. A service may only be busy, so its query is retried.
    return isPage && outcome.kind === "failed" && outcome.reason === "too-slow"
      ? { ...outcome, mayRetry: false }
      : outcome;
  }
}

/** Sends one request about several works: one outcome for each work, or one for all if the request failed. */
export async function runBatch(
  options: StepRunnerOptions,
  resolver: Resolver & { readonly batch: NonNullable<Resolver["batch"]> },
  works: readonly Work[],
  signal: AbortSignal,
): Promise<readonly (FindingResult | FailedQuery)[] | UnsentOutcome | FailedQuery> {
  try {
    return await queryBatch(options, resolver, works, signal);
  } catch (error) {
    return outcomeOf(error, signal);
  }
}

function outcomeOf(error: unknown, signal: AbortSignal): UnsentOutcome | FailedQuery {
  if (signal.aborted) return { kind: "stopped" };
  if (error instanceof RejectedError) return { kind: "refused", error };
  if (error instanceof DownloadError || error instanceof HubClosedError || isInternalError(error)) throw error;
  return { kind: "failed", ...failureOf(error), bytes: 0 };
}

async function query(
  options: StepRunnerOptions,
  step: ResolverStep,
  request: Pick<DownloadRequest, "work" | "signal" | "startedUs" | "ofSeveral">,
): Promise<Exclude<StepOutcome, UnsentOutcome>> {
  const { signal } = request;
  if (step.request.role === "landing") {
    const disallowed = await options.robots.disallowReason(step.url, signal);
    if (disallowed !== undefined) return { kind: "failed", ...disallowed, bytes: 0 };
  }
  const result = await queryResolver(options, step, signal);
  if (result.kind !== "file") return result;
  if (!options.formats.includes(result.fileKind)) {
    await discardBody(result.response, options.minSpeed);
    return { kind: "failed", ...unwantedFile(result.fileKind, options.formats), bytes: 0 };
  }
  // The page is the file: its body is stored, and not requested again.
  const candidate = { url: step.url, kind: result.fileKind };
  const download = { ...request, resolver: step.resolver.name, candidate, url: step.url, step: step.kind };
  const stored = await options.downloads.fetch(download, result.response);
  if (stored.kind !== "failed" || !stored.mayRetry) return stored;
  return { ...stored, retryAs: { kind: "fetch", resolver: step.resolver.name, candidate, url: step.url } };
}

function unwantedFile(kind: FileKind, [preferred = "pdf", ...others]: readonly FileKind[]): AttemptFailure {
  const message = `the page is a file of the format ${kind}, wanted: ${[preferred, ...others].join(", ")} (--formats)`;
  return { reason: NOT_WANTED[preferred], message, status: 200, mayRetry: false };
}

/** Errors of this program and of the manifest, which must not be recorded as failures of a host. */
function isInternalError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const isOfSqlite = "errcode" in error && "errstr" in error;
  const isOfPostgres = error instanceof StoreError || "severity" in error;
  return isOfSqlite || isOfPostgres || error instanceof ReferenceError || error instanceof SyntaxError;
}
