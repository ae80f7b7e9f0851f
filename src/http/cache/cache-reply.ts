import type { CacheVerdict } from "../call-record.ts";
import { fieldLine } from "../headers.ts";
import type { Flow, HeaderFields, Outgoing, ResponseHead, Sink } from "../stages/stage.ts";

/** An answer that is at hand. */
export interface Stored {
  readonly status: number;
  readonly statusText: string;
  readonly headers: HeaderFields;
}

/** How the cache took part, in the words of RFC 9211. */
const STATUS: Readonly<Record<CacheVerdict, string>> = {
  off: "docstokg; fwd=bypass",
  hit: "docstokg; hit",
  stale: "docstokg; hit; detail=stale",
  revalidated: "docstokg; fwd=stale; fwd-status=304",
  miss: "docstokg; fwd=miss",
  coalesced: "docstokg; fwd=miss; collapsed",
  offline: "docstokg; detail=offline",
};

/** The fields with a `Cache-Status` of ours behind those of the caches on the way. */
function withVerdict(headers: HeaderFields, verdict: CacheVerdict): HeaderFields {
  const before = fieldLine(headers["cache-status"]);
  const ours = STATUS[verdict];
  return { ...headers, "cache-status": before === undefined ? ours : `${before}, ${ours}` };
}

export function headWithVerdict(head: ResponseHead, verdict: CacheVerdict): ResponseHead {
  const headers = withVerdict(head.headers, verdict);
  return { ...head, headers, rawHeaders: headers };
}

/** Tells an answer that is at hand, as if it came over the wire. */
export function replay(
  { method, record }: Outgoing,
  verdict: CacheVerdict,
  { status, statusText, headers }: Stored,
  body: Buffer | undefined,
  sink: Sink,
): Flow {
  record.verdict = verdict;
  let isAborted = false;
  queueMicrotask(() => {
    const told = withVerdict(headers, verdict);
    if (!isAborted) sink.started({ status, statusText, headers: told, rawHeaders: told });
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
