import { resolve } from "node:path";
import { StoreError } from "../../errors.ts";
import { setAsideAndReport } from "../../stores/sqlite/open-database.ts";
import { isBusy, isDamage, isMoved } from "../../stores/sqlite/sqlite-errors.ts";
import type { Time } from "../../time/time.ts";
import { type BodyKey, CACHE_FORMAT, type CacheFile } from "./cache-file.ts";
import { type CacheStats, type CacheStore, digest, type FoundResponse, type StoredResponse } from "./cache-store.ts";
import { foundAfter, freshenWrite, putWrite, removeWrite } from "./cache-write.ts";
import { CacheWriter } from "./cache-writer.ts";
import { type OpenCacheFileOptions, type OpenedCacheFile, openCacheFile } from "./open-cache-file.ts";

export interface SqliteCacheOptions {
  readonly time: Time;
  /** All bodies and heads together. Kept to by small steps, so it may be exceeded by an eighth. @default 1 GiB */
  readonly maxBytes?: number | undefined;
  /** The largest body that is kept: the event loop waits while it is written. @default 512 KiB */
  readonly maxEntryBytes?: number | undefined;
  /** Writes that may wait while others use the file; beyond that the oldest is dropped. @default 1000 */
  readonly maxQueuedWrites?: number | undefined;
  /** @default 32 MiB */
  readonly maxQueuedBytes?: number | undefined;
  /** Hears once of each trouble: the cache goes on, with less in it. @default nobody does */
  readonly onTrouble?: ((error: StoreError) => void) | undefined;
  /** In [0, 1), spreads the attempts of several processes. @default Math.random */
  readonly random?: (() => number) | undefined;
}

export interface SqliteCacheStats extends CacheStats {
  /** Writes that wait for their turn. */
  readonly queued: number;
  /** Writes that were given up. */
  readonly dropped: number;
}

const MIB = 2 ** 20;
/** So many uses wait to be noted with the next write, and are then written without one. */
const FLUSH_AT_PENDING_USES = 128;
const NONE: readonly FoundResponse[] = Object.freeze([]);

/**
 * Responses in one file for several processes. Nothing waits inside SQLite: reading never has to, and a write that
 * meets another's is queued and tried again later; whoever reads meanwhile finds what is queued, too.
 * On the disk there are digests of URLs and of selecting fields, which may hold keys; heads and bodies lie in clear,
 * for the owner alone.
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

  /** Never rejects: a file that cannot be had makes a cache that keeps nothing, and tells so. */
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
      // Absolute, lest `:memory:` or `file:…` mean something else to SQLite.
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
    // The same number in another file is another's body.
    const bodyOf = (key: BodyKey) => (this.#opened === opened ? this.#read(file => file.body(key)) : undefined);
    const found = this.#read(file => file.find(key, this.#time.wallMs(), bodyOf)) ?? NONE;
    if ((opened?.file.pendingUses ?? 0) >= FLUSH_AT_PENDING_USES) this.#writer.flushSoon();
    return this.#writer.queued === 0 ? found : foundAfter(found, this.#writer.queuedFor(key));
  }

  put(url: string, response: StoredResponse, body: readonly Buffer[]): boolean {
    const bodyBytes = body.reduce((sum, { length }) => sum + length, 0);
    if (bodyBytes > this.maxEntryBytes || !this.#isStoring()) return false;
    const write = putWrite(url, response, Buffer.concat(body, bodyBytes));
    // Room is made in small steps, and may lag behind; then it must not be taken faster than it is made.
    if (write.bytes > this.#maxBytes || this.#writer.surplusBytes > this.#maxBytes / 8) return false;
    this.#writer.add(write);
    return true;
  }

  freshen(url: string, old: StoredResponse, fresh: StoredResponse): void {
    if (this.#isStoring()) this.#writer.add(freshenWrite(url, old, fresh));
  }

  /** Also while nothing can be written: then this process finds it no more, and it goes when that is over. */
  remove(url: string): void {
    if (this.#hasFile()) this.#writer.add(removeWrite(url));
  }

  /** Resolves when nothing waits to be written. Without it, `close` gives up what meets another's write. */
  settled(): Promise<void> {
    return this.#writer.settled();
  }

  /** Writes what is queued, as far as that is possible at once. */
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

  /** The file is gone or damaged: from now on another one, if there can be one. */
  #reopen(opened: OpenedCacheFile, error: unknown): void {
    this.#opened = undefined;
    closeQuietly(opened.file);
    try {
      // Whoever is quicker sets it aside; the other finds the next one.
      if (isDamage(error)) setAsideAndReport(this.#openOptions, opened.identity, error);
      void this.#open();
    } catch {
      this.#report("damage", this.#error("replaced", error));
    }
  }

  /** Whether there is a file, or will be. */
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
      // Even a reader is refused now and then, while another process opens the file first or closes it last.
      if (!isBusy(error)) this.#onFailure("read", error);
      return undefined;
    }
  }

  #onFailure(done: "read" | "written", error: unknown): boolean {
    if (this.#opened !== undefined && (isDamage(error) || isMoved(error))) {
      this.#reopen(this.#opened, error);
      return this.#isOpening;
    }
    this.#report(done, this.#error(done, error));
    return false;
  }

  #error(done: string, cause: unknown): StoreError {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return new StoreError(`the cache ${this.#openOptions.path} cannot be ${done}: ${reason}`, { cause });
  }

  #report(kind: string, error: StoreError): void {
    if (this.#reported.has(kind)) return;
    this.#reported.add(kind);
    try {
      this.#onTrouble(error);
    } catch {
      // A listener that fails must not be what a cache fails of.
    }
  }
}

function closeQuietly(file: CacheFile | undefined): void {
  try {
    file?.close();
  } catch {
    // What was written is safe in the log, and what is damaged is left for that reason.
  }
}
