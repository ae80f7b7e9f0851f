import { RedisBatch } from "./redis-batch.ts";

/** With more under way, answers do not come sooner: by then the server works while we read and write. */
const MOST_UNDER_WAY = 4;

export interface RedisLineOptions {
  readonly run: (batch: RedisBatch) => Promise<void>;
  /** True while a call was lost: the next says what we have out, so nothing else may be on its way. */
  readonly isInDoubt: () => boolean;
}

/**
 * The calls to one server, a few at a time: what comes up meanwhile goes with the next. So many callers cost little
 * more than one.
 */
export class RedisLine {
  readonly #options: RedisLineOptions;
  readonly #waiting: RedisBatch[] = [];
  #underWay = 0;
  #isDue = false;
  #idle: PromiseWithResolvers<void> | undefined;
  #aheadUs: number | undefined;

  constructor(options: RedisLineOptions) {
    this.#options = options;
  }

  /** The batch that goes next. */
  open(): RedisBatch {
    const last = this.#waiting.at(-1);
    if (last !== undefined && !last.isFull) return last;
    const batch = new RedisBatch();
    this.#waiting.push(batch);
    this.#soon();
    return batch;
  }

  /** Resolves when nothing is under way or waits. */
  async idle(): Promise<void> {
    if (this.#underWay + this.#waiting.length === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** The server's clock said this a moment ago; somewhat less than it says now. */
  heard(serverUs: number, nowUs: number): void {
    this.#aheadUs = serverUs - nowUs;
  }

  /** What the server's clock says so long from now; 0 before it was heard. */
  serverUs(nowUs: number, laterUs: number): number {
    return this.#aheadUs === undefined ? 0 : this.#aheadUs + nowUs + laterUs;
  }

  /** After all that is due in this turn: the callers that the last answer woke ask again together. */
  #soon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    process.nextTick(() => {
      this.#isDue = false;
      while (this.#waiting.length > 0 && this.#underWay < this.#most) void this.#next();
    });
  }

  get #most(): number {
    return this.#options.isInDoubt() ? 1 : MOST_UNDER_WAY;
  }

  async #next(): Promise<void> {
    const batch = this.#waiting.shift();
    if (batch === undefined) return;
    this.#underWay += 1;
    try {
      await this.#options.run(batch);
      this.#underWay -= 1;
      batch.finish();
    } catch (error) {
      this.#underWay -= 1;
      batch.fail(error);
    }
    if (this.#waiting.length > 0) this.#soon();
    else if (this.#underWay === 0) this.#idle?.resolve();
  }
}
