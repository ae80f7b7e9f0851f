import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

interface CooldownRecord {
  readonly untilUs: number;
}

/** What others say is no older than this when leave is given. */
const FRESH_US = 25_000;
/** So many keys are remembered as heard of; looking once more costs little. */
const KNOWN_KEYS_MAX = 1024;

/** Cooldowns of keys that all processes of one store keep; the later one counts. */
export class SharedCooldowns {
  readonly #store: Store;
  readonly #time: Time;
  readonly #hold: (key: string, ms: number) => void;
  readonly #readUs = new Map<string, number>();

  /** `hold` is told what others have said. */
  constructor(store: Store, time: Time, hold: (key: string, ms: number) => void) {
    this.#store = store;
    this.#time = time;
    this.#hold = hold;
  }

  /** Tells the others. A store that is away is not told: then each process keeps what it knows. */
  async publish(key: string, ms: number): Promise<void> {
    const change = this.#store.change<CooldownRecord, void>(recordNameOf(key), ({ record, nowUs }) => {
      const untilUs = nowUs + ms * 1000;
      if (record !== undefined && record.untilUs >= untilUs) return { result: undefined };
      return { record: { next: { untilUs }, keepUntilUs: untilUs }, result: undefined };
    });
    await change.catch(() => undefined);
  }

  /** Looks at what others have said, unless it did so a moment ago. */
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
