/** The steps of a resolution: a query of a resolver, or the download of a candidate. */
import type { DoneReason, Reason } from "./reason.ts";
import type { Candidate, Resolver, ResolverRequest } from "./resolvers/resolver.ts";
import type { Work } from "./work.ts";

export interface ResolverStep {
  readonly kind: "ask";
  readonly resolver: Resolver;
  /** The work, or the work with the URL of a page that was found for it. */
  readonly about: Work;
  readonly request: ResolverRequest;
  /** The URL of the request, or where redirects have led. */
  readonly url: string;
}

export interface FetchStep {
  readonly kind: "fetch";
  /** Name of the resolver that found the candidate. */
  readonly resolver: string;
  readonly candidate: Candidate;
  readonly url: string;
}

export type ResolutionStep = ResolverStep | FetchStep;

/** What a step waits for, apart from `notBeforeUs`: an open circuit, or a spent quota. */
export type WaitReason = "breaker-open" | "rate-limited";

/** A step that has not ended, with its history. */
export interface PendingStep {
  readonly step: ResolutionStep;
  /** A lower rank goes first. */
  readonly rank: number;
  /** The URLs of this step so far: the first one and every redirect. */
  readonly visitedUrls: readonly string[];
  /**
   * How many of `visitedUrls` were requested before the last response that set a cookie. With that cookie, these URLs
   * may give other responses. @default 0
   */
  readonly visitedWithOtherCookies?: number | undefined;
  /** Number of earlier requests of the same resolver that led to this one. */
  readonly round: number;
  readonly tries: number;
  readonly notBeforeUs: number;
  /** Undefined if it waits for nothing, or only until `notBeforeUs`. */
  readonly waitsFor?: WaitReason | undefined;
  /** Which quota is spent, and until when; or which circuit is open, and why. */
  readonly waitMessage?: string | undefined;
  /** The query shares no request with other works, because a shared request has failed and any of its works may be the cause. */
  readonly isAlone?: true | undefined;
}

export type NextStep =
  | { readonly kind: "step"; readonly pending: PendingStep }
  | { readonly kind: "wait"; readonly pending: PendingStep }
  /** The work has no article, and nothing is left to try. */
  | { readonly kind: "failed"; readonly reason: Reason; readonly message: string | undefined }
  /** The article is stored. Further files are stored too, or could not be downloaded. */
  | {
      readonly kind: "done";
      readonly reason: DoneReason;
      readonly message: string | undefined;
      readonly bytes: number;
    };

/** The name of the resolver that is asked, or that found the candidate. */
export function resolverNameOf(step: ResolutionStep): string {
  return step.kind === "ask" ? step.resolver.name : step.resolver;
}
