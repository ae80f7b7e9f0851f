/**
 * A resolver builds a request from the identifiers of a work and parses the response into candidates. Both are pure: the
 * pipeline and the hub decide when a request is sent and how often.
 */
import type { Work, WorkIds, WorkMetadata } from "../work.ts";

/** A request to a service. The hub adds email address and API key of the host (policy/identities). */
export interface ResolverRequest {
  /** Absolute http(s) URL. */
  readonly url: string;
  /** Which limits of the host apply: those of its API, or those of its pages. */
  readonly role: "metadata" | "landing";
  /** JSON that is sent with POST. @default none: GET */
  readonly body?: string | undefined;
  /** Units of the rate limit that the request uses. A list may be allowed less often than a record. @default 1 */
  readonly weight?: number | undefined;
  /** Further header fields. @default none */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** A longer response is a failure; a longer page is cut. @default 4 MiB */
  readonly maxBytes?: number | undefined;
}

/** The response with any status: services differ in what they mean by 404 and 403. */
export interface ResolverResponse {
  /** After redirects. */
  readonly url: string;
  /** HTTP status. */
  readonly status: number;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** May be empty if the headers say that this is a file (`content-type: application/pdf`). */
  readonly body: string;
}

/** Which part of a work a file is: the article, its LaTeX source, or a supplement. */
export type FileRole = "article" | "source" | "supplement";

/** A URL that may have a copy of the work. */
export interface Candidate {
  /** Absolute http(s) URL without credentials. */
  readonly url: string;
  /**
   * The kind according to the service; the downloaded bytes decide. `landing` is a page that may link to a copy, `file` a
   * source or supplement of any format.
   */
  readonly kind: "pdf" | "xml" | "html" | "landing" | "file";
  /** Undefined if the service does not say. */
  readonly version?: "published" | "accepted" | "submitted" | undefined;
  /** As the service writes it: `cc-by-4.0`, a URL, `publisher-specific`. */
  readonly licence?: string | undefined;
  /** The checksum that the service publishes for the file. */
  readonly checksum?:
    | {
        /** The hash function. */
        readonly algorithm: "md5" | "sha256";
        /** Lower-case hex. */
        readonly hex: string;
      }
    | undefined;
  /** Size according to the service. */
  readonly bytes?: number | undefined;
  /** Which part of the work the file is. Sources and supplements are downloaded with `--formats all` only. @default article */
  readonly role?: FileRole | undefined;
  /** The name of a source or supplement, if its URL does not end with it. Only its extension is used. */
  readonly name?: string | undefined;
}

/** What a resolver reads from a response. */
export type Finding =
  | {
      readonly kind: "found";
      /** The best first. */
      readonly candidates: readonly Candidate[];
      /** Further identifiers of the work, for the resolvers that follow. */
      readonly ids?: WorkIds | undefined;
      /** What the service knows about the work. */
      readonly metadata?: WorkMetadata | undefined;
    }
  /** The resolver needs a further request. */
  | {
      readonly kind: "follow-up";
      /** `parse` is called again, with its response. */
      readonly request: ResolverRequest;
    }
  /** The service has no copy. It may still know the work. */
  | {
      readonly kind: "none";
      /** The service does not know the work, names no copy of it, or names none that is open access. */
      readonly reason: "unknown-work" | "no-copy" | "not-open";
      /** Further identifiers of the work, for the resolvers that follow. */
      readonly ids?: WorkIds | undefined;
      /** What the service knows about the work. */
      readonly metadata?: WorkMetadata | undefined;
    }
  /**
   * No usable response: an unknown format, a refused API key, a bot check, or a temporary failure (429, 5xx) after which
   * the same request may succeed.
   */
  | {
      readonly kind: "failure";
      /** `unavailable`: the same request may succeed later. */
      readonly reason: "unreadable" | "refused" | "challenge-page" | "unavailable";
      /** What the service has answered, in one line. */
      readonly message: string;
      /** The service refuses this program, its key or its email address: every other work would be refused too. */
      readonly isForAllWorks?: true | undefined;
    };

/** Asks a service about many works in one request. */
export interface BatchLookup {
  /** Most works in one request. */
  readonly maxWorks: number;
  /** Works of the same group may share a request; undefined if the work must be asked about alone. */
  groupOf(work: Work): string | undefined;
  /** @param works of one group */
  requestFor(works: readonly Work[]): ResolverRequest;
  /** One finding for each work, in their order; if the response has no findings for works, one for all of them. */
  parse(response: ResolverResponse, works: readonly Work[]): readonly Finding[] | Finding;
}

/** A service that may know where copies of a work are. */
export interface Resolver {
  /** The name in `--resolvers`, in `resolvers` of the policy and in the manifest: `europe_pmc`. */
  readonly name: string;
  /** Required environment variables, such as `CORE_API_KEY`; the resolver is skipped if one is not set. */
  readonly needs: readonly string[];
  /**
   * The service knows only the works that it hosts. If its quota is spent, such a work waits for it, while the query of
   * any other service is skipped. @default false
   */
  readonly isRepository?: true | undefined;
  /**
   * What the service may have in addition to a PDF. With `--formats all` it is still asked for these when the article is
   * stored. @default nothing
   */
  readonly offers?: readonly ("xml" | "source" | "supplement")[] | undefined;
  /** Absent if the service answers about one work at a time. */
  readonly batch?: BatchLookup | undefined;
  /**
   * Candidates that follow from the identifiers without a request: the URL of an arXiv PDF contains the arXiv id.
   * `requestFor` is used if these candidates fail.
   */
  inferred?(work: Work): Finding | undefined;
  /**
   * Undefined if the service cannot know the work. For a page that another resolver has found, `landing_page` gets
   * `{ ids: { ...ids, url } }`; for a file that is gone, `wayback` gets the same.
   */
  requestFor(work: Work): ResolverRequest | undefined;
  /** Reads a response of any status. An error that it throws counts as an unreadable response. */
  parse(response: ResolverResponse, work: Work): Finding;
}
