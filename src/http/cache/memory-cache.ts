import {
  type CacheStats,
  type CacheStore,
  type FoundResponse,
  headBytes,
  isUnchanged,
  type StoredResponse,
  VARIANTS_MAX,
  variantId,
} from "./cache-store.ts";

export interface MemoryCacheOptions {
  /** All bodies and heads together. @default 104_857_600, 100 MiB */
  readonly maxBytes?: number | undefined;
  /** @default 10_000 */
  readonly maxEntries?: number | undefined;
  /** The largest body that is kept. @default 5_242_880, 5 MiB */
  readonly maxEntryBytes?: number | undefined;
}

/** The variants of one URL, most recently stored first. Replaced, never changed: whoever found them keeps what he has. */
type Variants = readonly MemoryEntry[];

const NONE: Variants = Object.freeze([]);

/** Responses of this process alone. The URL that was least recently asked for makes room, its oldest variant first. */
export class MemoryCache implements CacheStore {
  readonly maxEntryBytes: number;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  /** In the order of use, the least recent first: a map keeps the order in which its keys came. */
  readonly #byUrl = new Map<string, Variants>();
  /** Asked for again and again, a URL needs not be moved to the end each time. */
  #latestUrl: string | undefined;
  #entries = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(options: MemoryCacheOptions = {}) {
    this.#maxBytes = limit("maxBytes", options.maxBytes ?? 100 * 2 ** 20);
    this.#maxEntries = limit("maxEntries", options.maxEntries ?? 10_000);
    this.maxEntryBytes = limit("maxEntryBytes", options.maxEntryBytes ?? 5 * 2 ** 20);
  }

  get stats(): CacheStats {
    return { entries: this.#entries, bytes: this.#bytes };
  }

  find(url: string): readonly FoundResponse[] {
    const variants = this.#byUrl.get(url);
    if (variants === undefined) return NONE;
    if (url !== this.#latestUrl) this.#set(url, variants);
    return variants;
  }

  put(url: string, response: StoredResponse, body: readonly Buffer[]): boolean {
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    const bytes = bodyBytes + headBytes(url, response);
    if (this.#isClosed || bodyBytes > this.maxEntryBytes || bytes > this.#maxBytes || this.#maxEntries < 1)
      return false;
    this.#store(url, new MemoryEntry(response, copied(body, bodyBytes), bytes));
    return true;
  }

  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void {
    const id = variantId(old);
    const entry = this.#byUrl.get(url)?.find(one => one.id === id);
    if (entry === undefined || !isUnchanged(entry, old)) return;
    this.#drop(url, entry);
    this.#store(url, new MemoryEntry(fresh, entry.body(), entry.bodyBytes + headBytes(url, fresh)));
  }

  remove(url: string): void {
    for (const entry of this.#byUrl.get(url) ?? NONE) this.#drop(url, entry);
  }

  close(): void {
    this.#isClosed = true;
    this.#byUrl.clear();
    this.#entries = 0;
    this.#bytes = 0;
  }

  #store(url: string, entry: MemoryEntry): void {
    const same = this.#byUrl.get(url)?.find(one => one.id === entry.id);
    if (same !== undefined) this.#drop(url, same);
    const variants = this.#byUrl.get(url) ?? NONE;
    const surplus = variants.length < VARIANTS_MAX ? undefined : variants.at(-1);
    if (surplus !== undefined) this.#drop(url, surplus);
    this.#set(url, [entry, ...(this.#byUrl.get(url) ?? NONE)]);
    this.#entries += 1;
    this.#bytes += entry.bytes;
    if (this.#bytes > this.#maxBytes || this.#entries > this.#maxEntries) this.#evict();
  }

  /**
   * For a hundredth more than is needed, in one go: to find the oldest entry, a map has to pass all that were deleted
   * before it. Never the entry that was stored just now: it is the first variant of the last URL, and fits in alone.
   */
  #evict(): void {
    const bytes = this.#maxBytes - Math.floor(this.#maxBytes / 100);
    const entries = this.#maxEntries - Math.floor(this.#maxEntries / 100);
    for (const [url, variants] of this.#byUrl) {
      for (const oldest of variants.toReversed()) {
        if (this.#bytes <= bytes && this.#entries <= entries) return;
        if (this.#entries > 1) this.#drop(url, oldest);
      }
    }
  }

  #drop(url: string, entry: MemoryEntry): void {
    const rest = this.#byUrl.get(url)?.filter(one => one !== entry) ?? NONE;
    // In its place, so that losing a variant is no use of the URL.
    if (rest.length > 0) this.#byUrl.set(url, rest);
    else this.#byUrl.delete(url);
    this.#entries -= 1;
    this.#bytes -= entry.bytes;
  }

  #set(url: string, variants: Variants): void {
    this.#byUrl.delete(url);
    this.#byUrl.set(url, variants);
    this.#latestUrl = url;
  }
}

class MemoryEntry implements FoundResponse {
  readonly status: number;
  readonly statusText: string;
  readonly headers: StoredResponse["headers"];
  readonly requestedMs: number;
  readonly receivedMs: number;
  readonly varyNames: readonly string[];
  readonly varyKey: string;
  readonly bodyBytes: number;
  /** With head. */
  readonly bytes: number;
  readonly id: string;
  readonly #body: Buffer;

  constructor(response: StoredResponse, body: Buffer, bytes: number) {
    this.status = response.status;
    this.statusText = response.statusText;
    this.headers = response.headers;
    this.requestedMs = response.requestedMs;
    this.receivedMs = response.receivedMs;
    this.varyNames = response.varyNames;
    this.varyKey = response.varyKey;
    this.bodyBytes = body.length;
    this.bytes = bytes;
    this.id = variantId(response);
    this.#body = body;
  }

  body(): Buffer {
    return this.#body;
  }
}

/** Copied to its exact size: a chunk from the network may be a small view of a large slab that it would keep alive. */
function copied(chunks: readonly Buffer[], bytes: number): Buffer {
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(whole, at);
  return whole;
}

function limit(name: string, value: number): number {
  if (!(value >= 0)) throw new RangeError(`${name} must be a number from 0 on, not ${value}`);
  return value;
}
