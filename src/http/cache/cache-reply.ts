import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { CacheStatus } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink } from "../stages/stage.ts";
import { requestedPart } from "./partial-response.ts";

/** Status line and headers of a response that needs no request. */
export interface StoredHead {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderFields;
}

/** The value of `Cache-Status` (RFC 9211). */
const STATUS: Readonly<Record<CacheStatus, string>> = {
  off: "docstokg; fwd=bypass",
  hit: "docstokg; hit",
  stale: "docstokg; hit; detail=stale",
  revalidated: "docstokg; fwd=stale; fwd-status=304",
  miss: "docstokg; fwd=miss",
  coalesced: "docstokg; fwd=miss; collapsed",
  offline: "docstokg; detail=offline",
  disconnected: "docstokg; fwd=stale; detail=disconnected",
};

const RAW_NAME = Buffer.from("cache-status");
const RAW_STATUS = Object.fromEntries(
  Object.entries(STATUS).map(([cacheStatus, value]) => [cacheStatus, Buffer.from(value)]),
) as Record<CacheStatus, Buffer>;

/** Appends to the `Cache-Status` of caches between the server and the hub, as RFC 9211 asks. */
function withCacheStatus(headers: HeaderFields, cacheStatus: CacheStatus): HeaderFields {
  const before = fieldLine(headers["cache-status"]);
  const ours = STATUS[cacheStatus];
  const shown = copiedHeaders(headers);
  shown["cache-status"] = before === undefined ? ours : `${before}, ${ours}`;
  return shown;
}

/** A copy for one caller, which may change the list of a repeated field. The cache and other callers have the same head. */
export function copiedHeaders(headers: HeaderFields): Record<string, string | string[] | undefined> {
  const copy: Record<string, string | string[] | undefined> = { ...headers };
  for (const name in copy) {
    const value = copy[name];
    if (typeof value === "object") copy[name] = [...value];
  }
  return copy;
}

export function headWithCacheStatus(head: ResponseHead, cacheStatus: CacheStatus): ResponseHead {
  const { status, statusText, rawHeaders } = head;
  const headers = withCacheStatus(head.headers, cacheStatus);
  // Another field line has the same meaning as one more element. Raw headers made from `headers` would cost more.
  const raw = Array.isArray(rawHeaders) ? [...rawHeaders, RAW_NAME, RAW_STATUS[cacheStatus]] : headers;
  return { status, statusText, headers, rawHeaders: raw };
}

/** Delivers a response that needs no request to the sink, after this function has returned. */
export function deliverCacheReply(
  request: OutgoingRequest,
  cacheStatus: CacheStatus,
  stored: StoredHead,
  storedBody: Buffer | undefined,
  sink: ResponseSink,
): RequestHandle {
  const { method, record } = request;
  record.cacheStatus = cacheStatus;
  const { head, body } =
    storedBody === undefined ? { head: stored, body: undefined } : requestedPart(request, stored, storedBody);
  const { status, statusText, headers } = head;
  let isAborted = false;
  queueMicrotask(() => {
    const shown = withCacheStatus(headers, cacheStatus);
    if (!isAborted) sink.started({ status, statusText, headers: shown, rawHeaders: shown });
    // A copy, because the caller may change or transfer the bytes, and the cache or other callers have the same buffer.
    if (!isAborted && body !== undefined && body.length > 0 && method !== "HEAD") sink.data(Buffer.from(body));
    if (!isAborted) sink.ended({}, []);
  });
  return {
    // The complete body is in memory: pausing would save nothing.
    pause: () => undefined,
    resume: () => undefined,
    abort: () => {
      isAborted = true;
    },
  };
}

const NOT_CACHED: StoredHead = {
  status: 504,
  statusText: "Gateway Timeout",
  headers: { "content-type": "text/plain" },
};
const NOT_CACHED_BODY = Buffer.from(
  "docstokg: the cache has no response that may be served, and this request may not use the network (offline or only-if-cached)\n",
);

/** The 504 for a request that may only be answered from the cache. */
export function deliverNotCached(request: OutgoingRequest, sink: ResponseSink): RequestHandle {
  return deliverCacheReply(request, "offline", NOT_CACHED, NOT_CACHED_BODY, sink);
}
