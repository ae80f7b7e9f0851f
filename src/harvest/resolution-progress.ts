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
  /** How many texts of `TakenWork.inherited` the steps contain. */
  readonly inherited: number;
  /** With all formats: the steps of sources and supplements that wait for the article. */
  readonly held: readonly PendingStep[];
  /** With all formats: the files that are stored. */
  readonly collected: CollectedFiles | undefined;
}

/** Each process has its own monotonic clock, so times are stored by the clock of the manifest. */
export interface RunClocks {
  readonly nowUs: number;
  /** `ManifestQueue.nowMs`. */
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
  readonly inherited?: number | undefined;
}

/**
 * Whether the manifest can keep where the redirects of a step have led. It keeps no cookies and no secrets, so that
 * otherwise the step begins again with its first URL.
 */
export function keepsRedirects({
  visitedUrls,
  visitedWithOtherCookies = 0,
}: Pick<PendingStep, "visitedUrls" | "visitedWithOtherCookies">): boolean {
  return visitedWithOtherCookies === 0 && !visitedUrls.slice(1).some(hasSecret);
}

/**
 * Undefined if a URL or a header field contains a secret, which must not be stored: then the work starts again from the
 * beginning. A step whose redirects cannot be kept is stored with its first URL.
 */
export function storedProgress(state: ResolutionState, work: Work, clock: RunClocks): string | undefined {
  const steps = state.steps.map(withoutLostRedirects);
  const skipped = state.skipped.map(withoutLostRedirects);
  const held = state.held.map(withoutLostRedirects);
  const all = [...steps, ...skipped, ...held];
  const urls = [
    ...all.flatMap(({ step, visitedUrls }) => [step.url, ...visitedUrls]),
    ...all.flatMap(({ step }) => (step.kind === "ask" ? [step.request.url, step.about.ids.url ?? ""] : [])),
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
    steps: steps.map(stored),
    skipped: skipped.map(stored),
    held: held.map(stored),
    // A URL that is left out is requested again only if another resolver finds it too.
    seenUrls: state.seenUrls.filter(seen => !hasSecret(seen.replace(/^\w+ (?=https?:)/, ""))),
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
  const stored = parsedText(text);
  if (stored === undefined) return undefined;
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
    inherited: stored.inherited ?? 0,
    queried: stored.queried,
    seenUrls: stored.seenUrls,
    reasons: stored.reasons.flatMap(([reason, message]) =>
      isReason(reason) ? [[reason, message ?? undefined] as const] : [],
    ),
    blockedSinceUs: stored.blockedSinceMs === null ? undefined : usOf(stored.blockedSinceMs),
  };
}

/** How many texts of `TakenWork.inherited` a progress contains. */
export function inheritedIn(progress: string): number {
  return parsedText(progress)?.inherited ?? 0;
}

function parsedText(text: string): StoredProgress | undefined {
  try {
    const stored = JSON.parse(text) as StoredProgress;
    return Array.isArray(stored.steps) && Array.isArray(stored.queried) ? stored : undefined;
  } catch {
    return undefined;
  }
}

function withoutLostRedirects(pending: PendingStep): PendingStep {
  const [url] = pending.visitedUrls;
  if (url === undefined || keepsRedirects(pending)) return pending;
  const { step } = pending;
  const first =
    step.kind === "fetch" ? { ...step, candidate: { ...step.candidate, url }, url } : ({ ...step, url } as const);
  return { ...pending, step: first, visitedUrls: [url], visitedWithOtherCookies: undefined };
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
