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
  readonly #hold: (key: string, ms: number) => void;
  readonly #readUs = new Map<string, number>();

  /** `hold` receives the remaining time of a cooldown that `refresh` has read from the store. */
  constructor(store: Store, time: Time, hold: (key: string, ms: number) => void) {
    this.#store = store;
    this.#time = time;
    this.#hold = hold;
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

  /** Reads the cooldown of a key from the store and applies it with `hold`. */
  async refresh(key: string): Promise<void> {
    const readUs = this.#readUs.get(key);
    if (readUs !== undefined && this.#time.monotonicUs() - readUs < FRESH_US) return;
    const seen = await this.#store.read<CooldownRecord>(recordNameOf(key)).catch(() => undefined);
    if (this.#readUs.size >= KNOWN_KEYS_MAX) this.#readUs.clear();
    this.#readUs.set(key, this.#time.monotonicUs());
    if (seen?.record === undefined) return;
    const leftMs = (seen.record.untilUs - seen.nowUs) / 1000;
    if (leftMs > 0) this.#hold(key, leftMs);
  }
}

function recordNameOf(key: string): string {
  return `hold ${key}`;
}
