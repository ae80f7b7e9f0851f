import { freshened, isSameRepresentation, revalidationHeaders } from "../../core/cache/stored-fields.ts";
import { BreakerOpenError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import type { CacheStatus } from "../call-record.ts";
import { withHeaders } from "../headers.ts";
import type { OutgoingRequest, ResponseHead } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import type { CacheStore, FoundResponse, StoredResponse } from "./cache-store.ts";

/** A stored response in the form in which it is served. */
export interface ServedResponse {
  readonly stored: StoredHead;
  readonly body: Buffer;
}

/** The reply that callers get instead of a failure. */
export interface Fallback {
  readonly cacheStatus: CacheStatus;
  readonly served: ServedResponse;
}

/** A stored response that a request asks the server to confirm. */
export interface Revalidation {
  /** The request with `If-None-Match` or `If-Modified-Since`. */
  readonly conditional: OutgoingRequest;
  readonly rules: FallbackRules;
  /** The stored response for a 5xx or 429; undefined when it may not be served, or has been evicted since. */
  readonly onErrorStatus: () => ServedResponse | undefined;
  /** The reply when there was no response; undefined when callers get the error itself. */
  readonly onFailure: (error: unknown) => Fallback | undefined;
  /**
   * The stored response with the headers of a 304. Undefined when the 304 is about another representation, or the stored
   * body cannot be read; then the stored response has been removed.
   */
  readonly confirm: (head: ResponseHead) => ServedResponse | undefined;
}

export interface RevalidationDeps {
  readonly store: CacheStore;
  readonly time: Time;
  /** The head with its current age. */
  readonly withAge: (stored: StoredResponse) => StoredHead;
}

/** Whether the stored response may be served although the server did not confirm it. */
export interface FallbackRules {
  /** After any failure (`stale-if-error`). */
  readonly mayServeOnError: boolean;
  /** When the server cannot be reached, and the call has `staleOnDisconnect`. */
  readonly mayServeDisconnected: boolean;
}

export function revalidationOf(
  { store, time, withAge }: RevalidationDeps,
  url: string,
  request: OutgoingRequest,
  found: FoundResponse,
  rules: FallbackRules,
): Revalidation {
  const { mayServeOnError, mayServeDisconnected } = rules;
  const requestedMs = time.wallMs();
  const { record, call } = request;
  const withBody = (stored: StoredHead) => {
    const body = found.body();
    return body && { stored, body };
  };
  return {
    conditional: {
      ...request,
      cause: request.cause === "refresh" ? "refresh" : "revalidation",
      headers: withHeaders(request.headers, revalidationHeaders(found.headers)),
      // The caller gets the stored response after the first failure instead of waiting for retries.
      isSingleAttempt: mayServeOnError || (mayServeDisconnected && call.staleOnDisconnect === true),
    },
    rules,
    onErrorStatus: () => (mayServeOnError ? withBody(withAge(found)) : undefined),
    onFailure: error => {
      const isDisconnected = record.outcome?.kind === "failure" || error instanceof BreakerOpenError;
      const isWanted = isDisconnected && call.staleOnDisconnect === true;
      if (isWanted && !mayServeDisconnected && !mayServeOnError) return DISCONNECTED;
      const served = mayServeOnError || isWanted ? withBody(withAge(found)) : undefined;
      return served && { cacheStatus: "stale", served };
    },
    confirm: head => {
      const body = isSameRepresentation(found.headers, head.headers) ? found.body() : undefined;
      if (body === undefined) {
        store.remove(url);
        return undefined;
      }
      const { status, statusText, varyNames, varyKey } = found;
      const fresh: StoredResponse = {
        status,
        statusText,
        varyNames,
        varyKey,
        headers: freshened(found.headers, head.headers),
        requestedMs: record.sentMs ?? requestedMs,
        receivedMs: time.wallMs(),
      };
      store.freshen(url, found, fresh);
      return { stored: withAge(fresh), body };
    },
  };
}

export function isSameRules(one: FallbackRules, other: FallbackRules | undefined): boolean {
  return one.mayServeOnError === other?.mayServeOnError && one.mayServeDisconnected === other.mayServeDisconnected;
}

/** RFC 9111, section 5.2.2.2: a disconnected cache answers with an error instead of a response that must be revalidated. */
const DISCONNECTED: Fallback = {
  cacheStatus: "disconnected",
  served: {
    stored: { status: 504, statusText: "Gateway Timeout", headers: { "content-type": "text/plain" } },
    body: Buffer.from(
      "docstokg: the host cannot be reached, and staleOnDisconnect does not apply to a response that must be revalidated\n",
    ),
  },
};
