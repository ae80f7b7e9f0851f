import { backoffMs } from "../../core/breaker/backoff.ts";
import { isBusy } from "../../stores/sqlite/sqlite-errors.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { CacheFile } from "./cache-file.ts";
import type { CacheWrite } from "./cache-write.ts";
import { WriteQueue, type WriteQueueLimits } from "./write-queue.ts";

export interface CacheWriterOptions {
  readonly time: Time;
  readonly random: () => number;
  readonly queue: WriteQueueLimits;
  /** The file to write to; undefined while none is open. */
  readonly file: () => CacheFile | undefined;
  /** Called when a write failed for another reason than a short lock. Returns true if another file is being opened. */
  readonly onFailure: (error: unknown) => boolean;
}

/** One transaction writes at most this many changes and bytes, so that the event loop is not blocked for long. */
const BATCH_WRITES = 64;
const BATCH_BYTES = 2 ** 20;
/** For a locked file: a write of another process takes about a millisecond. */
const BACKOFF = { baseMs: 2, capMs: 100 };
/** If a file is locked for longer, another program holds a lock that it does not release. */
const LOCKED_US_MAX = 30_000_000;
/** No write is tried for this time after one that failed (full disk, lock that is not released). */
const SUSPEND_US = 30_000_000;

/**
 * Writes changes to the cache file at once, or queues them while another process writes. SQLite's busy timeout is not
 * used, because it would block the event loop. A timer is set only while changes are queued or entries must be evicted.
 */
export class CacheWriter {
  readonly #options: CacheWriterOptions;
  readonly #queue: WriteQueue;
  #timer: Timer | undefined;
  /** How often the write failed because the file was locked. */
  #busyFailures = 0;
  #busySinceUs: number | undefined;
  #suspendedUntilUs = Number.NEGATIVE_INFINITY;
  #surplusBytes = 0;
  /** Resolve functions of `settled`. */
  #settling: (() => void)[] = [];

  constructor(options: CacheWriterOptions) {
    this.#options = options;
    this.#queue = new WriteQueue(options.queue);
  }

  get queued(): number {
    return this.#queue.size;
  }

  get dropped(): number {
    return this.#queue.dropped;
  }

  /** Bytes by which the file exceeds its limit, while entries are being evicted. */
  get surplusBytes(): number {
    return this.#surplusBytes;
  }

  /** True after a failed write, for SUSPEND_US. Removals are still queued, so that invalid responses are not found. */
  get isSuspended(): boolean {
    return this.#options.time.monotonicUs() < this.#suspendedUntilUs;
  }

  /** The queued changes of a URL, in order. */
  queuedFor(url: string): Iterable<CacheWrite> {
    return this.#queue.of(url);
  }

  add(write: CacheWrite): void {
    this.#queue.push(write);
    this.flushSoon();
  }

  /** Writes at once, unless a timer is set already: more changes must not cause more attempts. */
  flushSoon(): void {
    if (this.#timer === undefined) this.#flush();
  }

  /** Resolves when no change is queued, or writing is suspended. */
  settled(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settling.push(resolve);
    // Keep the backoff timer of a locked file: an earlier attempt would fail too. Cancel any other timer and write now,
    // because the cache is being closed.
    if (this.#busyFailures === 0) {
      this.#timer?.cancel();
      this.#timer = undefined;
    }
    this.flushSoon();
    this.#resolveSettled();
    return promise;
  }

  /** Writes what can be written at once and drops the rest. Nothing is written afterwards. */
  close(file: CacheFile | undefined): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    try {
      while (file !== undefined && (this.#queue.size > 0 || file.pendingUses > 0)) this.#writeBatch(file);
    } catch {
      // The file is busy or cannot be written, and there is no later attempt after closing.
    }
    this.#suspendedUntilUs = Number.POSITIVE_INFINITY;
    this.#queue.dropAll();
    this.#resolveSettled();
  }

  /** Writes one batch, and sets a timer for the next. */
  #flush(): void {
    const file = this.#options.file();
    const isIdle = this.#queue.size === 0 && this.#surplusBytes === 0 && (file?.pendingUses ?? 0) === 0;
    if (this.isSuspended) {
      this.#flushAfterSuspension();
    } else if (file !== undefined && !isIdle) {
      try {
        this.#writeBatch(file);
        this.#busyFailures = 0;
        this.#busySinceUs = undefined;
        if (this.#queue.size > 0 || this.#surplusBytes > 0) this.#flushIn(1);
      } catch (error) {
        this.#onFailedWrite(error);
      }
    }
    this.#resolveSettled();
  }

  #writeBatch(file: CacheFile): void {
    const batch = this.#queue.next(BATCH_WRITES, BATCH_BYTES);
    this.#surplusBytes = file.write(batch, this.#options.time.wallMs());
    this.#queue.done(batch);
  }

  #onFailedWrite(error: unknown): void {
    const { time, random, onFailure } = this.#options;
    const nowUs = time.monotonicUs();
    this.#busySinceUs ??= nowUs;
    if (isBusy(error) && nowUs - this.#busySinceUs < LOCKED_US_MAX) {
      this.#busyFailures += 1;
      this.#flushIn(backoffMs(BACKOFF, this.#busyFailures, random(), 1));
      return;
    }
    this.#busySinceUs = undefined;
    this.#busyFailures = 0;
    this.#surplusBytes = 0;
    if (onFailure(error)) return;
    // After `close` writing stays suspended for ever.
    this.#suspendedUntilUs = Math.max(this.#suspendedUntilUs, nowUs + SUSPEND_US);
    this.#queue.dropResponses();
    this.#flushAfterSuspension();
  }

  /** Removals are queued also while writing is suspended, and other processes find the responses until they are written. */
  #flushAfterSuspension(): void {
    const leftMs = (this.#suspendedUntilUs - this.#options.time.monotonicUs()) / 1000;
    if (this.#queue.size === 0 || leftMs === Number.POSITIVE_INFINITY) return;
    this.#flushIn(leftMs);
    // A program that ends earlier writes them when it closes the cache.
    this.#timer?.unref?.();
  }

  #flushIn(delayMs: number): void {
    this.#timer = this.#options.time.setTimer(delayMs, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  #resolveSettled(): void {
    const isWaiting = (this.#timer !== undefined || this.#queue.size > 0) && !this.isSuspended;
    if (!isWaiting) for (const settle of this.#settling.splice(0)) settle();
  }
}
