import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import type { StoreError } from "../errors.ts";
import type { Lane } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Waiter, WaitingLine } from "../limiter/wait-queue.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { Outlook } from "./record-freshness.ts";
import { SharedPlaces } from "./slot-leases.ts";
import { Sharing } from "./unit-leases.ts";

export interface OtherProcessesOptions {
  readonly store: Store | undefined;
  readonly breakerStore: Store | undefined;
  readonly breakers: BreakerRegistry | undefined;
  readonly time: Time;
  readonly random: () => number;
}

export interface OtherProcessesEars {
  /** There is word for those who wait in this lane: they are to be tried again. */
  readonly heard: (lane: Lane) => void;
  readonly isWanted: (lane: Lane) => boolean;
  /** The store is away: from now on each process keeps to its share. Undefined when it is back. */
  readonly limitsChanged: (away: Away | undefined) => void;
  /** The same where breakers alone are shared. */
  readonly breakersChanged: (away: Away | undefined) => void;
  /** Another process has stricter limits in mind for this lane, and they count. */
  readonly overruled: (lane: Lane) => void;
  /** Whom somebody waits for, cut off. */
  readonly blockers: () => Iterable<Denial["blocker"]>;
}

export interface Away {
  readonly processes: number;
  readonly error: StoreError;
}

/** Everything that a request needs from those who share a store: units, slots, and news about its host. */
export class OtherProcesses {
  readonly #sharing: Sharing | undefined;
  readonly #places: SharedPlaces | undefined;
  readonly #outlook: Outlook | undefined;
  /** How often each lane has begun to ask for something. */
  readonly #questions = new WeakMap<Lane, number>();

  constructor({ store, breakerStore, breakers, time, random }: OtherProcessesOptions, ears: OtherProcessesEars) {
    if (store !== undefined) {
      const sharing = new Sharing(store, time, random, {
        news: lane => {
          ears.heard(lane);
          sharing.tidy(lane, ears.isWanted(lane));
        },
        changed: ears.limitsChanged,
        overruled: ears.overruled,
      });
      this.#sharing = sharing;
      this.#places = new SharedPlaces(store, time, {
        news: ears.heard,
        isWanted: ears.isWanted,
        failed: error => sharing.failed(error),
        isAway: () => sharing.isAway,
      });
    }
    if (breakerStore !== undefined && breakers !== undefined) {
      this.#outlook = new Outlook(breakerStore, breakers, time, {
        heard: ears.heard,
        changed: error => {
          // Where limits are shared, too, that they are no longer is what there is to tell, and it comes back by itself.
          if (this.#sharing === undefined) ears.breakersChanged(error && { processes: 1, error });
          else if (error !== undefined) this.#sharing.failed(error);
        },
        blockers: ears.blockers,
      });
    }
  }

  /** Whether they have nothing against it. Asks nobody. */
  allow(call: EntryRequest, lane: Lane, units: number, nowUs: number): boolean {
    return this.leave(lane, units, nowUs) && (this.#outlook?.isClear(call) ?? true);
  }

  /** Whether there are units and slots for it. Asks nobody. */
  leave(lane: Lane, units: number, nowUs: number): boolean {
    return this.#sharing?.has(lane, units, nowUs) !== false && this.#places?.has(lane) !== false;
  }

  /** The same for somebody whose turn it is. False means that they are being asked: the ears hear when it is known. */
  cover(waiter: Waiter, line: WaitingLine, nowUs: number): boolean {
    const { lane, units, call } = waiter;
    const wasAsked = this.isAsked(waiter);
    // All at once, so that the store is asked together. But nobody keeps units while he lacks a slot.
    const isClear = this.#outlook?.clears(call, lane) ?? true;
    const hasSlot = this.#places?.covers(lane, line.length) ?? true;
    const isCovered = hasSlot && (this.#sharing?.covers(lane, units, line.units, nowUs) ?? true) && isClear;
    if (!wasAsked && this.isAsked(waiter)) this.#questions.set(lane, this.questions(lane) + 1);
    return isCovered;
  }

  /** How many times this lane has begun to ask. */
  questions(lane: Lane): number {
    return this.#questions.get(lane) ?? 0;
  }

  isAsked({ lane }: Waiter): boolean {
    return (
      lane.stock?.isAsking === true || this.#places?.isTrading(lane) === true || this.#outlook?.isLooking(lane) === true
    );
  }

  /** What there is to hear before somebody may be told no, or goes without asking; undefined when there is nothing. */
  newsBefore(call: EntryRequest, denial: Denial | undefined): Promise<void> | undefined {
    return this.#outlook?.before(call, denial);
  }

  /** Somebody has come: a reason to look whether a store that was away is back. */
  revisit(nowUs: number): void {
    this.#sharing?.revisit(nowUs);
  }

  /** Somebody waits for a host that is cut off. */
  watch(): void {
    this.#outlook?.watch();
  }

  taken(lane: Lane, units: number): void {
    if (units > 0) this.#sharing?.taken(lane, units);
  }

  written(lane: Lane, units: number): void {
    this.#sharing?.written(lane, units);
  }

  returned(lane: Lane, units: number): void {
    this.#sharing?.returned(lane, units);
  }

  slotsFreed(lane: Lane): void {
    this.#places?.freed(lane);
  }

  /** When they know what this process knows, and have back what it had. */
  async close(): Promise<void> {
    await this.#outlook?.close();
    await this.#places?.close();
    await this.#sharing?.close();
  }
}
