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
  /** Bodies and heads together. @default 104_857_600 (100 MiB) */
  readonly maxBytes?: number | undefined;
  /** Stored responses. @default 10_000 */
  readonly maxEntries?: number | undefined;
  /** The longest body that is stored. @default 5_242_880 (5 MiB) */
  readonly maxEntryBytes?: number | undefined;
}

/** The variants of one URL, most recently stored first. Never changed in place: `find` returns the array itself. */
type Variants = readonly MemoryEntry[];

const NONE: Variants = Object.freeze([]);

/** Stores responses in the memory of this process. Evicts the least recently used URL, its oldest variant first. */
export class MemoryCache implements CacheStore {
  readonly maxEntryBytes: number;
  readonly #maxBytes: number;
  readonly #maxEntries: number;
  /** Least recently used first: a Map keeps the order of insertion. */
  readonly #byUrl = new Map<string, Variants>();
  /** The URL at the end of the Map, which needs no move when it is used again. */
  #latestUrl: string | undefined;
  #entries = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(options: MemoryCacheOptions = {}) {
    this.#maxBytes = checkedLimit("maxBytes", options.maxBytes ?? 100 * 2 ** 20);
    this.#maxEntries = checkedLimit("maxEntries", options.maxEntries ?? 10_000);
    this.maxEntryBytes = checkedLimit("maxEntryBytes", options.maxEntryBytes ?? 5 * 2 ** 20);
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

  put(url: string, response: StoredResponse, chunks: readonly Buffer[]): boolean {
    const bodyBytes = chunks.reduce((sum, { length }) => sum + length, 0);
    const bytes = bodyBytes + headBytes(url, response);
    if (this.#isClosed || bodyBytes > this.maxEntryBytes || bytes > this.#maxBytes || this.#maxEntries < 1)
      return false;
    this.#store(url, new MemoryEntry(response, storedBody(chunks, bodyBytes), bodyBytes, bytes));
    return true;
  }

  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void {
    const id = variantId(old);
    const entry = this.#byUrl.get(url)?.find(variant => variant.id === id);
    if (entry === undefined || !isUnchanged(entry, old)) return;
    this.#drop(url, entry);
    const { storedBody, bodyBytes } = entry;
    this.#store(url, new MemoryEntry(fresh, storedBody, bodyBytes, bodyBytes + headBytes(url, fresh)));
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
    const variants = this.#byUrl.get(url);
    if (variants === undefined) {
      this.#byUrl.set(url, [entry]);
      this.#latestUrl = url;
    } else {
      const replaced = variants.find(variant => variant.id === entry.id) ?? variants[VARIANTS_MAX - 1];
      if (replaced !== undefined) this.#drop(url, replaced);
      this.#set(url, [entry, ...(this.#byUrl.get(url) ?? NONE)]);
    }
    this.#entries += 1;
    this.#bytes += entry.bytes;
    if (this.#bytes > this.#maxBytes || this.#entries > this.#maxEntries) this.#evict();
  }

  /**
   * Evicts 1 % more than needed, so that it runs rarely: each run has to skip the entries that earlier runs deleted at
   * the start of the Map. The entry that was just stored is never evicted: it is the first variant of the last URL.
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
    const rest = this.#byUrl.get(url)?.filter(variant => variant !== entry) ?? NONE;
    // The URL keeps its position in the Map: the removal of a variant is not a use.
    if (rest.length > 0) this.#byUrl.set(url, rest);
    else this.#byUrl.delete(url);
    this.#entries -= 1;
    this.#bytes -= entry.bytes;
  }

  /** Also moves the URL to the end of the Map: it is the most recently used one. */
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
  /** Body and an estimate for the head. */
  readonly bytes: number;
  readonly id: string;
  readonly storedBody: StoredBody;

  constructor(response: StoredResponse, storedBody: StoredBody, bodyBytes: number, bytes: number) {
    this.status = response.status;
    this.statusText = response.statusText;
    this.headers = response.headers;
    this.requestedMs = response.requestedMs;
    this.receivedMs = response.receivedMs;
    this.varyNames = response.varyNames;
    this.varyKey = response.varyKey;
    this.bodyBytes = bodyBytes;
    this.bytes = bytes;
    this.id = variantId(response);
    this.storedBody = storedBody;
  }

  body(): Buffer {
    return typeof this.storedBody === "string" ? Buffer.from(this.storedBody, "latin1") : this.storedBody;
  }
}

/** A short body is a string with one character for each byte: a buffer of its own costs six times as much to make. */
type StoredBody = Buffer | string;
const STRING_BODY_BYTES_MAX = 4096;

/** Copies the chunks: a chunk may be a small view of a large network buffer, which it would keep in memory. */
function storedBody(chunks: readonly Buffer[], bytes: number): StoredBody {
  const [first] = chunks;
  if (bytes <= STRING_BODY_BYTES_MAX) {
    return chunks.length === 1 && first !== undefined
      ? first.toString("latin1")
      : Buffer.concat(chunks, bytes).toString("latin1");
  }
  const body = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(body, at);
  return body;
}

function checkedLimit(name: string, value: number): number {
  if (!(value >= 0)) throw new RangeError(`${name} must be 0 or more, not ${value}`);
  return value;
}
