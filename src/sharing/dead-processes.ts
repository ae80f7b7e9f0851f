import { LEASE_MS } from "../stores/store.ts";
import type { Time } from "../time/time.ts";

/** Each exchange with the store names all of them. The leases of others end at their time. */
const KEPT_MAX = 16;

/**
 * Processes of the store that are known to have ended: units and slots that they have leased need not be kept until the
 * lease ends. A process is forgotten when its lease would have ended.
 */
export class DeadProcesses {
  readonly #time: Time;
  readonly #knownUs = new Map<string, number>();
  /** When the last process was added. A reply to an earlier request may announce a time that is too late. */
  addedUs = Number.NEGATIVE_INFINITY;

  constructor(time: Time) {
    this.#time = time;
  }

  add(processIds: readonly string[]): void {
    this.addedUs = this.#time.monotonicUs();
    for (const processId of processIds) {
      this.#knownUs.delete(processId);
      this.#knownUs.set(processId, this.addedUs);
    }
    for (const oldest of this.#knownUs.keys()) {
      if (this.#knownUs.size <= KEPT_MAX) break;
      this.#knownUs.delete(oldest);
    }
  }

  get ids(): readonly string[] {
    const sinceUs = this.#time.monotonicUs() - LEASE_MS * 1000;
    for (const [processId, knownUs] of this.#knownUs) if (knownUs < sinceUs) this.#knownUs.delete(processId);
    return [...this.#knownUs.keys()];
  }
}
