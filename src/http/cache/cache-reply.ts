import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { CacheStatus } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink } from "../stages/stage.ts";

/** An answer that is at hand. */
export interface StoredHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderFields;
}

/** How the cache took part, in the words of RFC 9211. */
const STATUS: Readonly<Record<CacheStatus, string>> = {
  off: "docstokg; fwd=bypass",
  hit: "docstokg; hit",
  stale: "docstokg; hit; detail=stale",
  revalidated: "docstokg; fwd=stale; fwd-status=304",
  miss: "docstokg; fwd=miss",
  coalesced: "docstokg; fwd=miss; collapsed",
  offline: "docstokg; detail=offline",
};

/** The fields with a `Cache-Status` of ours behind those of the caches on the way. */
function withCacheStatus(headers: HeaderFields, cacheStatus: CacheStatus): HeaderFields {
  const before = fieldLine(headers["cache-status"]);
  const ours = STATUS[cacheStatus];
  return { ...headers, "cache-status": before === undefined ? ours : `${before}, ${ours}` };
}

export function headWithCacheStatus(head: ResponseHead, cacheStatus: CacheStatus): ResponseHead {
  const headers = withCacheStatus(head.headers, cacheStatus);
  return { ...head, headers, rawHeaders: headers };
}

/** Tells an answer that is at hand, as if it came over the wire. */
export function deliverCacheReply(
  { method, record }: OutgoingRequest,
  cacheStatus: CacheStatus,
  { status, statusText, headers }: StoredHead,
  body: Buffer | undefined,
  sink: ResponseSink,
): RequestHandle {
  record.cacheStatus = cacheStatus;
  let isAborted = false;
  queueMicrotask(() => {
    const shown = withCacheStatus(headers, cacheStatus);
    if (!isAborted) sink.started({ status, statusText, headers: shown, rawHeaders: shown });
    if (!isAborted && body !== undefined && body.length > 0 && method !== "HEAD") sink.data(body);
    if (!isAborted) sink.ended({}, []);
  });
  return {
    // It is all there: there is nothing to hold back, and nobody to hold up.
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      isAborted = true;
    },
  };
}
