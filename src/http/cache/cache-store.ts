import { hash } from "node:crypto";

/** A response without its body, and when it was requested and received. */
export interface StoredResponse {
  readonly status: number;
  readonly statusText: string;
  /** Names are in lower case. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** Wall-clock time when the request was sent, and when the response headers arrived. */
  readonly requestedMs: number;
  readonly receivedMs: number;
  /** The request headers that select this variant, and their values as made by `varyKeyOf`. */
  readonly varyNames: readonly string[];
  readonly varyKey: string;
}

/** A response that a store has found. Its `varyKey` may be a digest of the key, so compare it with `isVariant`. */
export interface FoundResponse extends StoredResponse {
  readonly bodyBytes: number;
  /** Must not be changed: several callers share the buffer. Undefined when the entry has been evicted. */
  body(): Buffer | undefined;
}

/**
 * Stores responses. All methods are synchronous, so that a hit needs no turn of the event loop. No method throws: a cache
 * that fails behaves like an empty one.
 */
export interface CacheStore {
  /** All variants of a URL, most recently stored first. */
  find(url: string): readonly FoundResponse[];
  /**
   * Stores a response and replaces the variant with the same names and key. Beyond `VARIANTS_MAX` the oldest is removed.
   * False when it was not stored, for example because the body is longer than `maxEntryBytes`; then the previous variant
   * stays.
   */
  put(url: string, response: StoredResponse, body: readonly Buffer[]): boolean;
  /**
   * Replaces head and times of a stored variant; its body stays. Has no effect when the variant has been replaced or
   * freshened since `old` was found: a 304 for `old` says nothing about a newer body.
   */
  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void;
  /** Removes all variants of a URL. */
  remove(url: string): void;
  readonly maxEntryBytes: number;
  readonly stats: CacheStats;
  /** From now on nothing is found and nothing is stored. */
  close(): void;
}

export interface CacheStats {
  /** Variants, not URLs. */
  readonly entries: number;
  /** Bodies, and an estimate for their heads. */
  readonly bytes: number;
}

/** Variants per URL. A server that varies on cookies would otherwise fill the cache with responses used once. */
export const VARIANTS_MAX = 32;

const DIGEST = "sha256:";

/** True when a request with this key selects the stored variant. Works for keys and for digests of keys. */
export function isVariant(stored: StoredResponse, varyKey: string): boolean {
  return stored.varyKey === varyKey || (stored.varyKey.startsWith(DIGEST) && stored.varyKey === digestVaryKey(varyKey));
}

/**
 * A digest of the key, for caches on disk: the selecting headers may include `Authorization`. A digest is returned
 * unchanged; it cannot be confused with a key, which is empty or JSON.
 */
export function digestVaryKey(varyKey: string): string {
  return varyKey === "" || varyKey.startsWith(DIGEST) ? varyKey : `${DIGEST}${digest(varyKey)}`;
}

export function digest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** Identifies a variant among those of its URL. */
export function variantId({ varyNames, varyKey }: StoredResponse): string {
  return varyNames.length === 0 && varyKey === "" ? "" : `${varyNames.join()}\n${varyKey}`;
}

/** True when `stored` has not been replaced or freshened since `old` was read. */
export function isUnchanged(stored: StoredResponse, old: StoredResponse): boolean {
  return stored.receivedMs === old.receivedMs && stored.requestedMs === old.requestedMs && stored.status === old.status;
}

/** An estimate of the bytes of an entry without its body. */
export function headBytes(url: string, { headers, varyKey, statusText }: StoredResponse): number {
  let chars = url.length + varyKey.length + statusText.length;
  for (const name in headers) {
    const value = headers[name] ?? "";
    chars +=
      name.length + (typeof value === "string" ? value.length : value.reduce((sum, line) => sum + line.length, 0));
  }
  // Overhead of the objects, strings and buffers.
  return chars + 512;
}
