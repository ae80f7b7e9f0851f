/**
 * What a resolution has done so far, as text for the manifest: a work that waits for long is not kept in memory, and a
 * later run continues where it stopped.
 */
import { isCredentialName } from "../core/text/credentials.ts";
import type { CollectedFiles } from "./file-collection.ts";
import { isReason, type Reason } from "./reason.ts";
import { hasSecret } from "./redacted-url.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import type { FetchStep, PendingStep, ResolutionStep, ResolverStep } from "./step.ts";
import type { Work } from "./work.ts";

export interface ResolutionState {
  /** The wanted kinds of files: candidates of other kinds were left out. */
  readonly formats: string;
  readonly steps: readonly PendingStep[];
  /** Steps that were left out because the quota of their service is spent. */
  readonly skipped: readonly PendingStep[];
  /** Names of the resolvers that were queried. */
  readonly queried: readonly string[];
  readonly seenUrls: readonly string[];
  readonly reasons: readonly (readonly [Reason, string | undefined])[];
  readonly blockedSinceUs: number | undefined;
  /** With all formats: the steps of sources and supplements that wait for the article. */
  readonly held: readonly PendingStep[];
  /** With all formats: the files that are stored. */
  readonly collected: CollectedFiles | undefined;
}

/** Each process has its own monotonic clock, so times are stored by the wall clock. */
export interface RunClocks {
  readonly nowUs: number;
  readonly wallMs: number;
}

type StoredStep = Omit<PendingStep, "step" | "notBeforeUs"> & {
  readonly notBeforeMs: number;
  readonly step: StoredQuery | FetchStep;
};

type StoredQuery = Omit<ResolverStep, "resolver" | "about"> & {
  readonly resolver: string;
  /** The URL that the resolver was asked about instead of the work's own. */
  readonly pageUrl?: string | undefined;
};

interface StoredProgress {
  /** Earlier versions have not stored it. */
  readonly formats?: string | undefined;
  readonly steps: readonly StoredStep[];
  readonly skipped: readonly StoredStep[];
  readonly queried: readonly string[];
  readonly seenUrls: readonly string[];
  readonly reasons: readonly (readonly [string, string | null])[];
  readonly blockedSinceMs: number | null;
  /** Earlier versions have not stored these. */
  readonly held?: readonly StoredStep[] | undefined;
  readonly collected?: CollectedFiles | undefined;
}

/**
 * Undefined if a URL or a header field contains a secret, which must not be stored: then the work starts again from the
 * beginning.
 */
export function storedProgress(state: ResolutionState, work: Work, clock: RunClocks): string | undefined {
  const all = [...state.steps, ...state.skipped, ...state.held];
  const urls = [
    ...all.flatMap(({ step, visitedUrls }) => [step.url, ...visitedUrls]),
    ...all.flatMap(({ step }) => (step.kind === "ask" ? [step.request.url, step.about.ids.url ?? ""] : [])),
    ...state.seenUrls.map(seen => seen.replace(/^\w+ (?=https?:)/, "")),
  ];
  const fields = all.flatMap(({ step }) => (step.kind === "ask" ? Object.keys(step.request.headers ?? {}) : []));
  if (urls.some(url => url !== "" && hasSecret(url)) || fields.some(isCredentialName)) return undefined;
  const stored = ({ step, notBeforeUs, ...pending }: PendingStep) => ({
    ...pending,
    notBeforeMs: notBeforeUs === 0 ? 0 : clock.wallMs + (notBeforeUs - clock.nowUs) / 1000,
    step: step.kind === "fetch" ? step : storedQuery(step, work),
  });
  return JSON.stringify({
    ...state,
    steps: state.steps.map(stored),
    skipped: state.skipped.map(stored),
    held: state.held.map(stored),
    reasons: state.reasons.map(([reason, message]) => [reason, message ?? null]),
    blockedSinceMs:
      state.blockedSinceUs === undefined ? null : clock.wallMs + (state.blockedSinceUs - clock.nowUs) / 1000,
  });
}

/**
 * Undefined if the text is not from `storedProgress`, or if it was written for other formats. Steps of resolvers that are
 * no longer enabled are left out.
 */
export function parsedProgress(
  text: string,
  work: Work,
  { resolvers, formats }: { readonly resolvers: readonly Resolver[]; readonly formats: string },
  clock: RunClocks,
): ResolutionState | undefined {
  let stored: StoredProgress;
  try {
    stored = JSON.parse(text) as StoredProgress;
  } catch {
    return undefined;
  }
  if (!Array.isArray(stored.steps) || !Array.isArray(stored.queried)) return undefined;
  if (stored.formats !== undefined && stored.formats !== formats) return undefined;
  const usOf = (wallMs: number) => (wallMs === 0 ? 0 : clock.nowUs + (wallMs - clock.wallMs) * 1000);
  const pendingOf = ({ notBeforeMs, step, ...pending }: StoredStep): readonly PendingStep[] => {
    const parsed = stepOf(step, work, resolvers);
    return parsed === undefined ? [] : [{ ...pending, step: parsed, notBeforeUs: usOf(notBeforeMs) }];
  };
  return {
    formats,
    steps: stored.steps.flatMap(pendingOf),
    skipped: stored.skipped.flatMap(pendingOf),
    held: (stored.held ?? []).flatMap(pendingOf),
    collected: stored.collected,
    queried: stored.queried,
    seenUrls: stored.seenUrls,
    reasons: stored.reasons.flatMap(([reason, message]) =>
      isReason(reason) ? [[reason, message ?? undefined] as const] : [],
    ),
    blockedSinceUs: stored.blockedSinceMs === null ? undefined : usOf(stored.blockedSinceMs),
  };
}

function storedQuery(step: ResolverStep, work: Work): StoredQuery {
  const { resolver, about, ...rest } = step;
  const pageUrl = about.ids.url === work.ids.url ? undefined : about.ids.url;
  return { ...rest, resolver: resolver.name, ...(pageUrl === undefined ? {} : { pageUrl }) };
}

function stepOf(step: StoredStep["step"], work: Work, resolvers: readonly Resolver[]): ResolutionStep | undefined {
  if (step.kind !== "ask") return step;
  const { pageUrl, resolver: name, ...rest } = step;
  const resolver = resolvers.find(each => each.name === name);
  const about = pageUrl === undefined ? work : { ...work, ids: { ...work.ids, url: pageUrl } };
  return resolver === undefined ? undefined : { ...rest, resolver, about };
}
