import { RedisBatch } from "./redis-batch.ts";

/** With more under way, answers do not come sooner: by then the server works while we read and write. */
const MAX_IN_FLIGHT = 4;

export interface RedisCallQueueOptions {
  readonly run: (batch: RedisBatch) => Promise<void>;
  /** True while a call was lost: the next says what we have out, so nothing else may be on its way. */
  readonly isUncertain: () => boolean;
}

/**
 * The calls to one server, a few at a time: what comes up meanwhile goes with the next. So many callers cost little
 * more than one.
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

  /** The batch that goes next. */
  open(): RedisBatch {
    const last = this.#waiting.at(-1);
    if (last !== undefined && !last.isFull) return last;
    const batch = new RedisBatch();
    this.#waiting.push(batch);
    this.#scheduleNext();
    return batch;
  }

  /** Resolves when nothing is under way or waits. */
  async idle(): Promise<void> {
    if (this.#inFlight + this.#waiting.length === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** The server's clock said this a moment ago; somewhat less than it says now. */
  syncClock(serverUs: number, nowUs: number): void {
    this.#clockOffsetUs = serverUs - nowUs;
  }

  /** What the server's clock says so long from now; 0 before it was heard. */
  serverUs(nowUs: number, laterUs: number): number {
    return this.#clockOffsetUs === undefined ? 0 : this.#clockOffsetUs + nowUs + laterUs;
  }

  /** After all that is due in this turn: the callers that the last answer woke ask again together. */
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
