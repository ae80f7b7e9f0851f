/** The steps of a work, and what is known of each while it is open. */
import type { Reason } from "./reason.ts";
import type { Candidate, Resolver, ResolverRequest } from "./resolvers/resolver.ts";
import type { Work } from "./work.ts";

export interface ResolverStep {
  readonly kind: "ask";
  readonly resolver: Resolver;
  /** What the resolver is asked about: the work, or a page that was found for it. */
  readonly about: Work;
  readonly request: ResolverRequest;
  /** Where the question is by now, after redirects. */
  readonly url: string;
}

export interface FetchStep {
  readonly kind: "fetch";
  /** Who named the candidate. */
  readonly resolver: string;
  readonly candidate: Candidate;
  readonly url: string;
}

export type ResolutionStep = ResolverStep | FetchStep;

/** A step that is open, and what is known of it. */
export interface PendingStep {
  readonly step: ResolutionStep;
  /** Less is tried first. */
  readonly rank: number;
  /** Addresses that it has passed, itself included. */
  readonly visitedUrls: readonly string[];
  /** Questions of the same resolver before this one. */
  readonly round: number;
  readonly tries: number;
  readonly notBeforeUs: number;
  /** It waits for a host that is cut off, and not for its turn. */
  readonly isBreakerOpen: boolean;
}

export type NextStep =
  | { readonly kind: "step"; readonly pending: PendingStep }
  | { readonly kind: "wait"; readonly pending: PendingStep }
  | { readonly kind: "over"; readonly reason: Reason; readonly message: string | undefined };
