import { RedisBatch } from "./redis-batch.ts";

/** More calls in flight do not help: with 4, the server is busy while this process reads and writes. */
const MAX_IN_FLIGHT = 4;

export interface RedisCallQueueOptions {
  readonly run: (batch: RedisBatch) => Promise<void>;
  /** True after a lost call. The next call reports the leased units, so no other call may be in flight. */
  readonly isUncertain: () => boolean;
}

/**
 * The calls to one slot of the server, a few at a time. Requests that arrive meanwhile are collected in one batch, so
 * that many callers cost little more than one.
 */
export class RedisCallQueue {
  readonly #options: RedisCallQueueOptions;
  readonly #waiting: RedisBatch[] = [];
  #inFlight = 0;
  #isScheduled = false;
  #idle: PromiseWithResolvers<void> | undefined;
  #clockOffsetUs: number | undefined;

  constructor(options: RedisCallQueueOptions) {
    this.#options = options;
  }

  /** The batch that takes the next settlement or request. */
  open(): RedisBatch {
    const last = this.#waiting.at(-1);
    if (last !== undefined && !last.isFull) return last;
    const batch = new RedisBatch();
    this.#waiting.push(batch);
    this.#scheduleNext();
    return batch;
  }

  /** Whether no call is in flight or waiting. */
  get isIdle(): boolean {
    return this.#inFlight + this.#waiting.length === 0;
  }

  /** Resolves when no call is in flight or waiting. */
  async idle(): Promise<void> {
    if (this.isIdle) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** Sets the server's clock from a reply. The time that the reply took is ignored, so the estimate is a little early. */
  syncClock(serverUs: number, nowUs: number): void {
    this.#clockOffsetUs = serverUs - nowUs;
  }

  /** The server's clock `laterUs` after `nowUs`; 0 before the first reply. */
  serverUs(nowUs: number, laterUs: number): number {
    return this.#clockOffsetUs === undefined ? 0 : this.#clockOffsetUs + nowUs + laterUs;
  }

  /** Sends at the end of this turn of the event loop: callers woken by one reply then share the next batch. */
  #scheduleNext(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    process.nextTick(() => {
      this.#isScheduled = false;
      while (this.#waiting.length > 0 && this.#inFlight < this.#maxInFlight) void this.#next();
    });
  }

  get #maxInFlight(): number {
    return this.#options.isUncertain() ? 1 : MAX_IN_FLIGHT;
  }

  async #next(): Promise<void> {
    const batch = this.#waiting.shift();
    if (batch === undefined) return;
    this.#inFlight += 1;
    try {
      await this.#options.run(batch);
      this.#inFlight -= 1;
      batch.finish();
    } catch (error) {
      this.#inFlight -= 1;
      batch.fail(error);
    }
    if (this.#waiting.length > 0) this.#scheduleNext();
    else if (this.#inFlight === 0) this.#idle?.resolve();
  }
}
