import { PeerRecords } from "../sharing/peer-records.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

interface CooldownRecord {
  readonly untilUs: number;
}

/** Cooldowns of keys, shared by all processes of one store. Of two cooldowns the one that ends later counts. */
export class SharedCooldowns {
  readonly #records: PeerRecords<CooldownRecord>;
  readonly #time: Time;

  constructor(store: Store, time: Time) {
    this.#records = new PeerRecords(store, time, { empty: { untilUs: 0 }, expiryUs: ({ untilUs }) => untilUs });
    this.#time = time;
  }

  /** Writes a cooldown to the store. If the store is unavailable, only this process keeps the cooldown. */
  async publish(key: string, ms: number): Promise<void> {
    const writing = this.#records.write(recordNameOf(key), (record, nowUs) => {
      const untilUs = nowUs + ms * 1000;
      return record.untilUs >= untilUs ? record : { untilUs };
    });
    await writing.catch(() => undefined);
  }

  /** Milliseconds until the cooldown in the store ends; 0 if there is none, or if it was read a moment ago. */
  async readRemainingMs(key: string): Promise<number> {
    const name = recordNameOf(key);
    if (this.#records.isFresh(name)) return 0;
    await this.#records.read(name).catch(() => undefined);
    return Math.max(0, (this.#records.known(name).untilUs - this.#time.monotonicUs()) / 1000);
  }
}

function recordNameOf(key: string): string {
  return `hold ${key}`;
}
