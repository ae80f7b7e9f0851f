import type { RequestControl } from "../../core/cache/cache-control.ts";
import { isSameRepresentation, revalidationHeaders } from "../../core/cache/stored-fields.ts";
import { BreakerOpenError } from "../../errors.ts";
import type { CacheStatus } from "../call-record.ts";
import { withHeaders } from "../headers.ts";
import type { OutgoingRequest, ResponseHead } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import type { FoundResponse } from "./cache-store.ts";
import { type StoredResponses, sendingFacts } from "./stored-responses.ts";

/** A stored response in the form in which it is served. */
export interface ServedResponse {
  readonly stored: StoredHead;
  readonly body: Buffer;
}

/** A stored response that a 304 has confirmed. */
export interface ConfirmedResponse extends ServedResponse {
  /** False when the 304 forbids to use it for other requests. It has been removed then. */
  readonly isStorable: boolean;
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
  readonly confirm: (head: ResponseHead) => ConfirmedResponse | undefined;
}

/** Whether the stored response may be served although the server did not confirm it. */
export interface FallbackRules {
  /** After any failure (`stale-if-error`). */
  readonly mayServeOnError: boolean;
  /** When the server cannot be reached, and the call has `staleOnDisconnect`. */
  readonly mayServeDisconnected: boolean;
}

/** @param requestedMs wall-clock time of the request, until its attempt is written */
export function revalidationOf(
  responses: StoredResponses,
  request: OutgoingRequest,
  control: RequestControl,
  found: FoundResponse,
  rules: FallbackRules,
  requestedMs: number,
): Revalidation {
  const { mayServeOnError, mayServeDisconnected } = rules;
  const { record, call } = request;
  const { invalidations } = responses;
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
    onErrorStatus: () => (mayServeOnError ? withBody(responses.withAge(found)) : undefined),
    onFailure: error => {
      const isDisconnected = record.outcome?.kind === "failure" || error instanceof BreakerOpenError;
      const isWanted = isDisconnected && call.staleOnDisconnect === true;
      if (isWanted && !mayServeDisconnected && !mayServeOnError) return DISCONNECTED;
      const served = mayServeOnError || isWanted ? withBody(responses.withAge(found)) : undefined;
      return served && { cacheStatus: "stale", served };
    },
    confirm: head => {
      const body = isSameRepresentation(found.headers, head.headers) ? found.body() : undefined;
      if (body === undefined) {
        responses.remove(request);
        return undefined;
      }
      const sent = sendingFacts(record, requestedMs, invalidations);
      const { fresh, isStorable } = responses.freshen(request, found, head, control, sent);
      return { stored: responses.withAge(fresh), body, isStorable };
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
