import {
  type BreakerRecord,
  breakerRecordExpiryUs,
  EMPTY_BREAKER_RECORD,
  runningCooldown,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import { PeerRecords } from "../sharing/peer-records.ts";
import { hostRecordName } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/**
 * Cooldowns of hosts, shared by all processes of one store. The breakers of `ontofetch` and of hubs use the same records,
 * so a Retry-After that one of them has received applies to all. Of two cooldowns the one that ends later counts.
 */
export class SharedCooldowns {
  readonly #records: PeerRecords<BreakerRecord>;
  readonly #time: Time;

  constructor(store: Store, time: Time) {
    this.#records = new PeerRecords(store, time, { empty: EMPTY_BREAKER_RECORD, expiryUs: breakerRecordExpiryUs });
    this.#time = time;
  }

  /** Writes a cooldown to the store. If the store is unavailable, only this process keeps the cooldown. */
  async publish(host: string, durationMs: number): Promise<void> {
    const writing = this.#records.write(hostRecordName(host), (record, nowUs) =>
      setCooldown(record, "serverCooldown", { untilUs: nowUs + durationMs * 1000, reason: "retry-after" }, nowUs),
    );
    await writing.catch(() => undefined);
  }

  /**
   * Milliseconds until the cooldown in the store ends; 0 if there is none. A record that was read a moment ago is not read
   * again.
   */
  async readRemainingMs(host: string): Promise<number> {
    const name = hostRecordName(host);
    if (!this.#records.isFresh(name)) await this.#records.read(name).catch(() => undefined);
    const nowUs = this.#time.monotonicUs();
    return ((runningCooldown(this.#records.known(name), nowUs)?.untilUs ?? nowUs) - nowUs) / 1000;
  }
}
