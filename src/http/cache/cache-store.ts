import { hash } from "node:crypto";

/** A response without its body, and what is known of its coming. */
export interface StoredResponse {
  readonly status: number;
  readonly statusText: string;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string | string[]>>;
  /** The wall clock when the request went out, and when the headers of the answer came. */
  readonly requestedMs: number;
  readonly receivedMs: number;
  /** Which fields of a request select this variant, and their values, as `core/stored-fields` makes them. */
  readonly varyNames: readonly string[];
  readonly varyKey: string;
}

/** Its `varyKey` may be a digest of the one that was put: ask `isVariant`, do not compare. */
export interface FoundResponse extends StoredResponse {
  readonly bodyBytes: number;
  /** Not to be written to: others may hold the same bytes. Undefined when it has vanished meanwhile. */
  body(): Buffer | undefined;
}

/**
 * Where responses lie. All of it is synchronous, so that a hit costs no turn of the event loop, and nothing of it
 * throws: a cache that fails is a cache that is empty.
 */
export interface CacheStore {
  /** All variants of a URL, most recently stored first. */
  find(url: string): readonly FoundResponse[];
  /**
   * Replaces the variant with the same names and key. The oldest of more than `VARIANTS_MAX` goes.
   * Answers whether it was kept; a body above `maxEntryBytes` is not, and then what was stored before stays.
   */
  put(url: string, response: StoredResponse, body: readonly Buffer[]): boolean;
  /**
   * New head and times for a stored variant; its body stays. One that was replaced or freshened since `old` was found
   * is left alone: it is newer, and a 304 for `old` says nothing of its body.
   */
  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void;
  /** All variants of it. */
  remove(url: string): void;
  readonly maxEntryBytes: number;
  readonly stats: CacheStats;
  /** Finds and keeps nothing any more. */
  close(): void;
}

export interface CacheStats {
  /** Variants, not URLs. */
  readonly entries: number;
  /** Bodies, and roughly what is kept beside them. */
  readonly bytes: number;
}

/** Of one URL. A server that varies on more, on cookies say, would fill a cache with what nobody asks for again. */
export const VARIANTS_MAX = 32;

const DIGEST = "sha256:";

/** Whether a stored variant is the one that a request with this key selects, in whichever store it lay. */
export function isVariant(stored: StoredResponse, varyKey: string): boolean {
  return stored.varyKey === varyKey || (stored.varyKey.startsWith(DIGEST) && stored.varyKey === digestVaryKey(varyKey));
}

/**
 * The key as a digest, for stores that outlive the process: among the selecting fields may be `Authorization`.
 * A digest stays as it is, and cannot be taken for a key, which is empty or JSON.
 */
export function digestVaryKey(varyKey: string): string {
  return varyKey === "" || varyKey.startsWith(DIGEST) ? varyKey : `${DIGEST}${digest(varyKey)}`;
}

export function digest(text: string): string {
  return hash("sha256", text, "base64url");
}

/** Names a variant among those of its URL. */
export function variantId({ varyNames, varyKey }: StoredResponse): string {
  return varyNames.length === 0 && varyKey === "" ? "" : `${varyNames.join()}\n${varyKey}`;
}

/** Whether `stored` is still what `old` was: nobody has replaced or freshened it since. */
export function isUnchanged(stored: StoredResponse, old: StoredResponse): boolean {
  return stored.receivedMs === old.receivedMs && stored.requestedMs === old.requestedMs && stored.status === old.status;
}

/** What an entry weighs beside its body: close enough to keep a bound, and cheap. */
export function headBytes(url: string, { headers, varyKey, statusText }: StoredResponse): number {
  let chars = url.length + varyKey.length + statusText.length;
  for (const name in headers) {
    const value = headers[name] ?? "";
    chars +=
      name.length + (typeof value === "string" ? value.length : value.reduce((sum, line) => sum + line.length, 0));
  }
  // Objects, strings and buffers have heads of their own.
  return chars + 512;
}
