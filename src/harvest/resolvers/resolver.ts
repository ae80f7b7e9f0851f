/**
 * A resolver turns what is known of a work into a question, and the answer into candidates. Both are pure: who sends the
 * question, when, and how often is decided by the pipeline and the hub.
 */
import type { Work, WorkIds } from "../work.ts";

/** What to ask a service. Mail addresses and keys are not part of it: the hub adds them for the host (policy/identities). */
export interface ResolverRequest {
  readonly url: string;
  readonly role: "metadata" | "landing";
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A longer answer is not read to its end, and is trouble. @default the pipeline's */
  readonly maxBytes?: number | undefined;
}

/** What came back, whatever its status; 404 and 403 mean different things to different services. */
export interface ResolverResponse {
  /** Where it came from, after redirects. */
  readonly url: string;
  readonly status: number;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** May be empty where the head says that this is a file (`content-type: application/pdf`): nobody reads it as text. */
  readonly body: string;
}

/** A place where a copy of the work may be. */
export interface Candidate {
  readonly url: string;
  /** What the service says it is; the bytes decide. `landing` is a page that may lead to a copy. */
  readonly kind: "pdf" | "xml" | "html" | "landing";
  readonly version?: "published" | "accepted" | "submitted" | undefined;
  /** As the service writes it: `cc-by-4.0`, an address, `publisher-specific`. */
  readonly licence?: string | undefined;
  /** Lower-case hex. */
  readonly checksum?: { readonly algorithm: "md5" | "sha256"; readonly hex: string } | undefined;
  readonly bytes?: number | undefined;
}

export type Finding =
  | {
      readonly kind: "found";
      /** The best first. */
      readonly candidates: readonly Candidate[];
      /** Further names of the same work, for the resolvers that come later. */
      readonly ids?: WorkIds | undefined;
      readonly title?: string | undefined;
      readonly year?: number | undefined;
    }
  /** The answer leads to another question of the same resolver. */
  | { readonly kind: "ask"; readonly request: ResolverRequest }
  /** The service has answered, and has no copy. `ids` as above: it may know the work all the same. */
  | {
      readonly kind: "none";
      readonly reason: "unknown-work" | "no-copy" | "not-open";
      readonly ids?: WorkIds | undefined;
    }
  /**
   * No answer that can be used: a shape unknown to us, a refusal of our key, or a service that cannot answer now (429,
   * 5xx), where the same question may do better another day.
   */
  | { readonly kind: "failure"; readonly reason: "unreadable" | "refused" | "unavailable"; readonly message: string };

export interface Resolver {
  /** As `--resolvers`, the policy's `resolvers` and the manifest write it: `europe_pmc`. */
  readonly name: string;
  /** Variables without which the service does not answer: `CORE_API_KEY`; a resolver that lacks one is skipped. */
  readonly needs: readonly string[];
  /**
   * What follows from the names alone, before anything is asked: arXiv's files have its ids in their addresses, and its
   * thousand requests a day are better spent on them. `ask` remains for when that leads nowhere.
   */
  inferred?(work: Work): Finding | undefined;
  /**
   * Undefined where the service cannot know such a work. A page that was found on the way is looked at by asking
   * `landing_page` about `{ ids: { ...ids, url } }`, a file that is gone by asking `wayback` in the same manner.
   */
  requestFor(work: Work): ResolverRequest | undefined;
  read(response: ResolverResponse, work: Work): Finding;
}
