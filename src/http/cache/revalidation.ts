import { freshened, isSameRepresentation, revalidationHeaders } from "../../core/cache/stored-fields.ts";
import type { Time } from "../../time/time.ts";
import { withHeaders } from "../headers.ts";
import type { OutgoingRequest, ResponseHead } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import type { CacheStore, FoundResponse, StoredResponse } from "./cache-store.ts";

/** A stored response in the form in which it is served. */
export interface ServedResponse {
  readonly stored: StoredHead;
  readonly body: Buffer;
}

/** A stored response that a request asks the server to confirm. */
export interface Revalidation {
  /** The request with `If-None-Match` or `If-Modified-Since`. */
  readonly conditional: OutgoingRequest;
  /** True when the stored response may be served if the server fails. */
  readonly mayServeOnError: boolean;
  /** The stored response, without confirmation; undefined when it has been evicted since. */
  readonly serve: () => ServedResponse | undefined;
  /** The stored response with the headers of a 304; undefined when the 304 is about another representation. */
  readonly confirm: (head: ResponseHead) => ServedResponse | undefined;
}

export interface RevalidationDeps {
  readonly store: CacheStore;
  readonly time: Time;
  /** The head with its current age. */
  readonly withAge: (stored: StoredResponse) => StoredHead;
}

export function revalidationOf(
  { store, time, withAge }: RevalidationDeps,
  url: string,
  request: OutgoingRequest,
  found: FoundResponse,
  mayServeOnError: boolean,
): Revalidation {
  const requestedMs = time.wallMs();
  const withBody = (stored: StoredHead) => {
    const body = found.body();
    return body && { stored, body };
  };
  return {
    conditional: {
      ...request,
      headers: withHeaders(request.headers, revalidationHeaders(found.headers)),
      // The caller gets the stored response after the first failure instead of waiting for retries.
      isSingleAttempt: mayServeOnError,
    },
    mayServeOnError,
    serve: () => withBody(withAge(found)),
    confirm: head => {
      if (!isSameRepresentation(found.headers, head.headers)) {
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
        requestedMs: request.record.sentMs ?? requestedMs,
        receivedMs: time.wallMs(),
      };
      store.freshen(url, found, fresh);
      return withBody(withAge(fresh));
    },
  };
}
