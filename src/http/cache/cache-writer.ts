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
  /** The one to write to; undefined while there is none. */
  readonly file: () => CacheFile | undefined;
  /** A write failed, and not because others were writing. True when the file will be another one soon. */
  readonly onFailure: (error: unknown) => boolean;
}

/** One transaction writes no more, so that catching up does not stall the event loop either. */
const BATCH_WRITES = 64;
const BATCH_BYTES = 2 ** 20;
/** Another's write lasts a millisecond or less. */
const BACKOFF = { baseMs: 2, capMs: 100 };
/** Then nobody is writing: somebody has forgotten a lock. */
const LOCKED_US_MAX = 30_000_000;
/** After a write that failed for good (a full disk, a forgotten lock) none is tried for so long. */
const SUSPEND_US = 30_000_000;

/**
 * Writes at once where that is possible, and else when the file is free again. A timer is armed only while something
 * waits for it; nobody sleeps inside SQLite.
 */
export class CacheWriter {
  readonly #options: CacheWriterOptions;
  readonly #queue: WriteQueue;
  #timer: Timer | undefined;
  #failed = 0;
  #busySinceUs: number | undefined;
  #suspendedUntilUs = Number.NEGATIVE_INFINITY;
  #surplusBytes = 0;
  /** Those who wait until nothing is to be written. */
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

  /** By how much the file exceeds its bound, while room is being made. */
  get surplusBytes(): number {
    return this.#surplusBytes;
  }

  /** Whether it has given up for a while. Removals are queued nevertheless, so that what is void is not found. */
  get isSuspended(): boolean {
    return this.#options.time.monotonicUs() < this.#suspendedUntilUs;
  }

  /** What is queued for a URL, in its order. */
  queuedFor(url: string): Iterable<CacheWrite> {
    return this.#queue.of(url);
  }

  add(write: CacheWrite): void {
    this.#queue.push(write);
    this.flushSoon();
  }

  /** At once, unless it waits for its turn already: then it is not asked for more often for having more to say. */
  flushSoon(): void {
    if (this.#timer === undefined) this.#flush();
  }

  /** Resolves when nothing waits for its turn any more. */
  settled(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settling.push(resolve);
    this.#resolveSettled();
    return promise;
  }

  /** Writes what can be written at once, gives up the rest, and does no more. */
  close(file: CacheFile | undefined): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    try {
      while (file !== undefined && (this.#queue.size > 0 || file.pendingUses > 0)) this.#writeBatch(file);
    } catch {
      // Somebody else is writing, or nobody can. There is no later for us.
    }
    this.#suspendedUntilUs = Number.POSITIVE_INFINITY;
    this.#queue.dropResponses();
    this.#resolveSettled();
  }

  /** One batch; a timer sees to the next. */
  #flush(): void {
    const file = this.#options.file();
    const isIdle = this.#queue.size === 0 && this.#surplusBytes === 0 && (file?.pendingUses ?? 0) === 0;
    if (file !== undefined && !isIdle && !this.isSuspended) {
      try {
        this.#writeBatch(file);
        this.#failed = 0;
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
      this.#failed += 1;
      this.#flushIn(backoffMs(BACKOFF, this.#failed, random(), 1));
      return;
    }
    this.#busySinceUs = undefined;
    this.#failed = 0;
    this.#surplusBytes = 0;
    if (onFailure(error)) return;
    this.#suspendedUntilUs = nowUs + SUSPEND_US;
    this.#queue.dropResponses();
  }

  #flushIn(delayMs: number): void {
    this.#timer = this.#options.time.setTimer(delayMs, () => {
      this.#timer = undefined;
      this.#flush();
    });
  }

  #resolveSettled(): void {
    const isWaiting = this.#timer !== undefined || (this.#queue.size > 0 && !this.isSuspended);
    if (!isWaiting) for (const settle of this.#settling.splice(0)) settle();
  }
}
