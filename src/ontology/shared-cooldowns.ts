import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

interface CooldownRecord {
  readonly untilUs: number;
}

/** A record read within the last 25 ms is not read again, so a busy key does not read the store for every request. */
const FRESH_US = 25_000;
/** Bounds the map of read times. When it is full it is cleared, which costs one more read per key. */
const KNOWN_KEYS_MAX = 1024;

/** Cooldowns of keys, shared by all processes of one store. Of two cooldowns the one that ends later counts. */
export class SharedCooldowns {
  readonly #store: Store;
  readonly #time: Time;
  readonly #readUs = new Map<string, number>();

  constructor(store: Store, time: Time) {
    this.#store = store;
    this.#time = time;
  }

  /** Writes a cooldown to the store. If the store is unavailable, only this process keeps the cooldown. */
  async publish(key: string, ms: number): Promise<void> {
    const change = this.#store.change<CooldownRecord, void>(recordNameOf(key), ({ record, nowUs }) => {
      const untilUs = nowUs + ms * 1000;
      if (record !== undefined && record.untilUs >= untilUs) return { result: undefined };
      return { record: { next: { untilUs }, keepUntilUs: untilUs }, result: undefined };
    });
    await change.catch(() => undefined);
  }

  /** Milliseconds until the cooldown in the store ends; 0 if there is none, or if it was read a moment ago. */
  async readRemainingMs(key: string): Promise<number> {
    const readUs = this.#readUs.get(key);
    if (readUs !== undefined && this.#time.monotonicUs() - readUs < FRESH_US) return 0;
    const stored = await this.#store.read<CooldownRecord>(recordNameOf(key)).catch(() => undefined);
    if (this.#readUs.size >= KNOWN_KEYS_MAX) this.#readUs.clear();
    this.#readUs.set(key, this.#time.monotonicUs());
    if (stored?.record === undefined) return 0;
    return Math.max(0, (stored.record.untilUs - stored.nowUs) / 1000);
  }
}

function recordNameOf(key: string): string {
  return `hold ${key}`;
}
