import { hostname } from "node:os";
import { basename } from "node:path";
import { PROCESS_PREFIX, PROCESS_RECORD_US, type ProcessRecord } from "../stores/process-record.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import type { HubSnapshot } from "./hub.ts";

/** The part of a hub's snapshot that is written to the store. */
export type PublishedStatus = Pick<HubSnapshot, "calls" | "inFlight" | "waiting" | "keys" | "hosts">;

const PUBLISH_INTERVAL_MS = 1000;
/** Keys and hosts per record: a crawler has thousands, and the busiest ones are enough for an operator. */
const ROWS_MAX = 200;

/**
 * Writes the hub's status to the shared store, for `docstokg limits`, `breaker` and `why` (law S6): once a second while
 * calls are active, and once after the last one. Requests never wait for it. Failed writes are not repeated.
 */
export class StatusPublisher {
  readonly #store: Store;
  readonly #time: Time;
  readonly #snapshot: () => HubSnapshot;
  readonly #startedMs: number;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(store: Store, time: Time, snapshot: () => HubSnapshot) {
    this.#store = store;
    this.#time = time;
    this.#snapshot = snapshot;
    this.#startedMs = time.wallMs();
  }

  /** Writes the status within a second, and again every second while calls are active. */
  scheduleWrite(): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#time.setTimer(PUBLISH_INTERVAL_MS, () => {
      this.#timer = undefined;
      const snapshot = this.#snapshot();
      if (snapshot.calls > 0) this.scheduleWrite();
      void this.#write(snapshot, PROCESS_RECORD_US);
    });
  }

  /** Ends the publishing. The record expires at once, so the process is no longer listed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    await this.#write(this.#snapshot(), 1);
  }

  async #write(snapshot: HubSnapshot, keepUs: number): Promise<void> {
    const next: ProcessRecord<PublishedStatus> = {
      pid: process.pid,
      machine: hostname(),
      program: basename(process.argv[1] ?? "node"),
      startedMs: this.#startedMs,
      writtenMs: this.#time.wallMs(),
      snapshot: toPublishedStatus(snapshot),
    };
    await this.#store
      .change(PROCESS_PREFIX + this.#store.processId, ({ nowUs }) => ({
        record: { next, keepUntilUs: nowUs + keepUs },
        result: undefined,
      }))
      // The gate reports a store that is unavailable.
      .catch(() => undefined);
  }
}

function toPublishedStatus({ calls, inFlight, waiting, keys, hosts }: HubSnapshot): PublishedStatus {
  const busy = keys.filter(key => key.acquired + key.refused + key.waiting + key.inFlight > 0);
  const busiest = busy.toSorted((a, b) => b.waiting - a.waiting || b.acquired - a.acquired).slice(0, ROWS_MAX);
  const affected = hosts.filter(({ state, windowFailures }) => state !== "closed" || windowFailures > 0);
  return { calls, inFlight, waiting, keys: busiest, hosts: affected.slice(0, ROWS_MAX) };
}
