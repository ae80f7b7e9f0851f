import {
  digest,
  digestVaryKey,
  type FoundResponse,
  headBytes,
  isUnchanged,
  type StoredResponse,
  VARIANTS_MAX,
  variantId,
} from "./cache-store.ts";

/** A change to a cache file. It may be queued, and holds digests instead of URLs and selecting headers. */
export type CacheWrite = PutWrite | FreshenWrite | RemoveWrite;

interface PutWrite {
  readonly kind: "put";
  /** A digest of the URL, which may hold a key. */
  readonly url: string;
  readonly response: StoredResponse;
  readonly body: Buffer;
  /** Body and an estimate for the head. */
  readonly bytes: number;
}

interface FreshenWrite {
  readonly kind: "freshen";
  readonly url: string;
  readonly old: StoredResponse;
  readonly response: StoredResponse;
  readonly bytes: number;
}

interface RemoveWrite {
  readonly kind: "remove";
  readonly url: string;
  readonly bytes: 0;
}

export function putWrite(url: string, response: StoredResponse, body: Buffer): PutWrite {
  const kept = withDigestedVaryKey(response);
  return { kind: "put", url: digest(url), response: kept, body, bytes: body.length + headBytes("", kept) };
}

export function freshenWrite(url: string, old: StoredResponse, fresh: StoredResponse): FreshenWrite {
  const kept = withDigestedVaryKey(fresh);
  return {
    kind: "freshen",
    url: digest(url),
    old: withDigestedVaryKey(old),
    response: kept,
    bytes: headBytes("", kept),
  };
}

export function removeWrite(url: string): RemoveWrite {
  return { kind: "remove", url: digest(url), bytes: 0 };
}

/** The responses that will be found after these writes, so that a process finds its own queued changes. */
export function foundAfter(stored: readonly FoundResponse[], writes: Iterable<CacheWrite>): readonly FoundResponse[] {
  let found = stored;
  for (const write of writes) found = write.kind === "remove" ? [] : withResponse(found, write);
  return found;
}

function withResponse(found: readonly FoundResponse[], write: PutWrite | FreshenWrite): readonly FoundResponse[] {
  const next = write.kind === "put" ? fromBody(write) : fromFound(found, write);
  if (next === undefined) return found;
  const gone = new Set([variantId(write.response), ...(write.kind === "freshen" ? [variantId(write.old)] : [])]);
  return [next, ...found.filter(response => !gone.has(variantId(response)))].slice(0, VARIANTS_MAX);
}

function fromBody({ response, body }: PutWrite): FoundResponse {
  return { ...response, bodyBytes: body.length, body: () => body };
}

function fromFound(found: readonly FoundResponse[], { old, response }: FreshenWrite): FoundResponse | undefined {
  const id = variantId(old);
  const same = found.find(response => variantId(response) === id && isUnchanged(response, old));
  return same && { ...response, bodyBytes: same.bodyBytes, body: () => same.body() };
}

function withDigestedVaryKey(response: StoredResponse): StoredResponse {
  const { status, statusText, headers, requestedMs, receivedMs, varyNames, varyKey } = response;
  return { status, statusText, headers, requestedMs, receivedMs, varyNames, varyKey: digestVaryKey(varyKey) };
}
