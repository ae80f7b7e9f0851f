import { resolve } from "node:path";
import { messageOf, StoreError } from "../../errors.ts";
import { setAsideAndReport } from "../../stores/sqlite/open-database.ts";
import { isBusy, isDamage, isMoved } from "../../stores/sqlite/sqlite-errors.ts";
import type { Time } from "../../time/time.ts";
import type { BodyKey, CacheFile } from "./cache-file.ts";
import { CACHE_FORMAT } from "./cache-schema.ts";
import { type CacheStats, type CacheStore, digest, type FoundResponse, type StoredResponse } from "./cache-store.ts";
import { foundAfter, freshenWrite, putWrite, removeWrite } from "./cache-write.ts";
import { CacheWriter } from "./cache-writer.ts";
import { type OpenCacheFileOptions, type OpenedCacheFile, openCacheFile } from "./open-cache-file.ts";

export interface SqliteCacheOptions {
  readonly time: Time;
  /** Bodies and heads together. Eviction takes small steps, so the file may exceed it by 1/8. @default 1 GiB */
  readonly maxBytes?: number | undefined;
  /** The longest body that is stored; writing it blocks the event loop. @default 512 KiB */
  readonly maxEntryBytes?: number | undefined;
  /** Responses, and removals, queued while another process writes. If there are more, the oldest is dropped. @default 1000 */
  readonly maxQueuedWrites?: number | undefined;
  /** Bytes of the queued changes. @default 32 MiB */
  readonly maxQueuedBytes?: number | undefined;
  /** Called once for each kind of problem. Requests continue, with fewer stored responses. @default none */
  readonly onTrouble?: ((error: StoreError) => void) | undefined;
  /** Random numbers in [0, 1), so that several processes do not retry at the same time. @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface SqliteCacheStats extends CacheStats {
  /** Changes that wait to be written. */
  readonly queued: number;
  /** Changes that were dropped. */
  readonly dropped: number;
}

const MIB = 2 ** 20;
/** Times of use are written with the next change, or alone when there are this many. */
const FLUSH_AT_PENDING_USES = 128;
const NONE: readonly FoundResponse[] = Object.freeze([]);

/**
 * Stores responses in one SQLite file for several processes. The event loop never waits for another process: reading
 * needs no lock, and a change is queued while another process writes. `find` also returns queued changes.
 * The file holds digests of URLs and of selecting headers, because both may contain keys. Heads and bodies are not
 * encrypted; only the owner may read the file.
 */
export class SqliteCache implements CacheStore {
  readonly maxEntryBytes: number;
  readonly #maxBytes: number;
  readonly #time: Time;
  readonly #openOptions: OpenCacheFileOptions;
  readonly #onTrouble: (error: StoreError) => void;
  readonly #reported = new Set<string>();
  readonly #writer: CacheWriter;
  #opened: OpenedCacheFile | undefined;
  #isOpening = true;
  #isClosed = false;

  /** Never rejects. A file that cannot be opened makes a cache that stores nothing; `onTrouble` gets the reason. */
  static async open(path: string, options: SqliteCacheOptions): Promise<SqliteCache> {
    const cache = new SqliteCache(path, options);
    await cache.#open();
    return cache;
  }

  private constructor(path: string, options: SqliteCacheOptions) {
    const { time, random = Math.random, onTrouble = () => undefined } = options;
    this.#time = time;
    this.#maxBytes = options.maxBytes ?? 1024 * MIB;
    this.maxEntryBytes = options.maxEntryBytes ?? MIB / 2;
    this.#onTrouble = onTrouble;
    this.#openOptions = {
      // Absolute, because SQLite gives `:memory:` and `file:…` a special meaning.
      path: resolve(path),
      format: CACHE_FORMAT,
      maxBytes: this.#maxBytes,
      time,
      random,
      onTrouble: error => this.#report(error.message, error),
    };
    this.#writer = new CacheWriter({
      time,
      random,
      queue: { maxWrites: options.maxQueuedWrites ?? 1000, maxBytes: options.maxQueuedBytes ?? 32 * MIB },
      file: () => this.#opened?.file,
      onFailure: error => this.#onFailure("written", error),
    });
  }

  get stats(): SqliteCacheStats {
    const { queued, dropped } = this.#writer;
    return { ...(this.#read(file => file.stats) ?? { entries: 0, bytes: 0 }), queued, dropped };
  }

  find(url: string): readonly FoundResponse[] {
    const key = digest(url);
    const opened = this.#opened;
    // In a file that was opened later, the same id belongs to another body.
    const bodyOf = (bodyKey: BodyKey) => (this.#opened === opened ? this.#read(file => file.body(bodyKey)) : undefined);
    const found = this.#read(file => file.find(key, this.#time.wallMs(), bodyOf)) ?? NONE;
    if ((opened?.file.pendingUses ?? 0) >= FLUSH_AT_PENDING_USES) this.#writer.flushSoon();
    return this.#writer.queued === 0 ? found : foundAfter(found, this.#writer.queuedFor(key));
  }

  put(url: string, response: StoredResponse, body: readonly Buffer[]): boolean {
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    if (bodyBytes > this.maxEntryBytes || !this.#isStoring()) return false;
    const write = putWrite(url, response, Buffer.concat(body, bodyBytes));
    // Eviction takes small steps: nothing is stored while it is far behind.
    if (write.bytes > this.#maxBytes || this.#writer.surplusBytes > this.#maxBytes / 8) return false;
    this.#writer.add(write);
    return true;
  }

  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void {
    if (this.#isStoring()) this.#writer.add(freshenWrite(url, old, fresh));
  }

  /** Also works while writing is suspended: this process no longer finds the URL, and it is removed later. */
  remove(url: string): void {
    if (this.#hasFile()) this.#writer.add(removeWrite(url));
  }

  /**
   * Resolves when no change is queued, or writing is suspended. Await it before `close`, which drops the queued changes if
   * another process is writing.
   */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Writes the queued changes if the file is free now, and drops the rest. */
  close(): void {
    if (this.#isClosed) return;
    const file = this.#opened?.file;
    this.#writer.close(file);
    this.#isClosed = true;
    this.#opened = undefined;
    closeQuietly(file);
  }

  async #open(): Promise<void> {
    this.#isOpening = true;
    const opened = await openCacheFile(this.#openOptions);
    this.#isOpening = false;
    if (this.#isClosed) {
      closeQuietly(opened?.file);
      return;
    }
    this.#opened = opened;
    if (opened === undefined) this.#writer.close(undefined);
    else this.#writer.flushSoon();
  }

  /** Opens a new file in place of one that was deleted or is damaged. */
  #reopen(opened: OpenedCacheFile, error: unknown): void {
    this.#opened = undefined;
    closeQuietly(opened.file);
    try {
      // The first process renames the damaged file; the others open the new one.
      if (isDamage(error)) setAsideAndReport(this.#openOptions, opened.identity, error);
      void this.#open();
    } catch {
      // There is no file any more, so the queued changes are dropped.
      this.#writer.close(undefined);
      this.#report("damage", this.#error("replaced", error));
    }
  }

  /** True when a file is open or being opened. */
  #hasFile(): boolean {
    return !this.#isClosed && (this.#opened !== undefined || this.#isOpening);
  }

  #isStoring(): boolean {
    return this.#hasFile() && !this.#writer.isSuspended;
  }

  #read<Value>(read: (file: CacheFile) => Value): Value | undefined {
    if (this.#opened === undefined) return undefined;
    try {
      return read(this.#opened.file);
    } catch (error) {
      // A reader finds the file busy while the first process opens it, or the last one closes it.
      if (!isBusy(error)) this.#onFailure("read", error);
      return undefined;
    }
  }

  /** True if another file is being opened. */
  #onFailure(done: "read" | "written", error: unknown): boolean {
    if (this.#opened !== undefined && (isDamage(error) || isMoved(error))) {
      this.#reopen(this.#opened, error);
      return this.#isOpening;
    }
    this.#report(done, this.#error(done, error));
    return false;
  }

  #error(done: string, cause: unknown): StoreError {
    const reason = messageOf(cause);
    return new StoreError(
      `cache file ${this.#openOptions.path} cannot be ${done}: ${reason}; requests continue without it`,
      { cause },
    );
  }

  #report(kind: string, error: StoreError): void {
    if (this.#reported.has(kind)) return;
    this.#reported.add(kind);
    try {
      this.#onTrouble(error);
    } catch {
      // An error of the listener must not break the cache.
    }
  }
}

function closeQuietly(file: CacheFile | undefined): void {
  try {
    file?.close();
  } catch {
    // Committed changes are safe in the write-ahead log, and a damaged file is replaced anyway.
  }
}
