import { hostname } from "node:os";
import { basename } from "node:path";
import { PROCESS_PREFIX, PROCESS_RECORD_US, type ProcessRecord } from "../stores/process-record.ts";
import type { Store } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";
import type { HubSnapshot } from "./hub.ts";

/** What is left in the store of a hub's own snapshot. */
export type PublishedStatus = Pick<HubSnapshot, "calls" | "inFlight" | "waiting" | "keys" | "hosts">;

/** An operator need not know more often. */
const PUBLISH_INTERVAL_MS = 1000;
/** The busiest are shown: a crawler has thousands. */
const ROWS_MAX = 200;

/**
 * Lays out how a hub stands, in the store, while it has something to do: once a second, and once more when it is done.
 * Nobody waits for it, and a store that is away is not told what nobody could read.
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

  /** Something has happened. */
  scheduleWrite(): void {
    if (this.#isClosed) return;
    this.#timer ??= this.#time.setTimer(PUBLISH_INTERVAL_MS, () => {
      this.#timer = undefined;
      const snapshot = this.#snapshot();
      if (snapshot.calls > 0) this.scheduleWrite();
      void this.#write(snapshot, PROCESS_RECORD_US);
    });
  }

  /** Takes everything away again. */
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
      // That the store is away is known where it matters.
      .catch(() => undefined);
  }
}

function toPublishedStatus({ calls, inFlight, waiting, keys, hosts }: HubSnapshot): PublishedStatus {
  const busy = keys.filter(key => key.acquired + key.refused + key.waiting + key.inFlight > 0);
  const busiest = busy.toSorted((a, b) => b.waiting - a.waiting || b.acquired - a.acquired).slice(0, ROWS_MAX);
  const affected = hosts.filter(({ state, windowFailures }) => state !== "closed" || windowFailures > 0);
  return { calls, inFlight, waiting, keys: busiest, hosts: affected.slice(0, ROWS_MAX) };
}
