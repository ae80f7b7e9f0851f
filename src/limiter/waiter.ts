import type { Timer } from "../time/time.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { Grant } from "./grant.ts";
import type { RoleBudget } from "./role-budget.ts";

/**
 * Timers fire late. A request that was admitted is not refused because its start is a few milliseconds after its bound.
 */
const MIN_GRACE_MS = 5;

export interface WaiterDetails {
  readonly roleBudget: RoleBudget;
  readonly units: number;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  readonly estimatedUs: number;
  readonly boundMs: number;
}

/** A request that waits. It ends once, with its grant or with an error. */
export class Waiter {
  /** Changes when the limits are reloaded. */
  roleBudget: RoleBudget;
  /** Units that it uses of every window; 0 for a request that the windows do not count. */
  readonly units: number;
  readonly call: EntryRequest;
  readonly arrivedUs: number;
  /** The bound in ms that admission compared the estimate with. */
  readonly boundMs: number;
  /** When it is expected to start. An estimate for requests behind it, not a reservation (law L2). */
  estimatedUs: number;
  /** Sequence number of its last unit in the queue's count of units. */
  lastUnit = 0;
  hasLeft = false;
  /** When the circuit or cooldown that blocked it ended; 0 if none did. */
  blockedUntilUs = 0;
  /** Number of the last request to the store that includes it. Later ones do not extend its wait. */
  lastStoreRequest = 0;
  /** Fires at its bound. */
  timer: Timer | undefined = undefined;
  /** Stops watching the signal of the call. */
  stopWatching: (() => void) | undefined = undefined;
  readonly #outcome = Promise.withResolvers<Grant>();
  #isOver = false;

  constructor({ roleBudget, units, call, arrivedUs, estimatedUs, boundMs }: WaiterDetails) {
    this.roleBudget = roleBudget;
    this.units = units;
    this.call = call;
    this.arrivedUs = arrivedUs;
    this.estimatedUs = estimatedUs;
    this.boundMs = boundMs;
  }

  get promise(): Promise<Grant> {
    return this.#outcome.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It does not wait for a circuit or cooldown whose known end is later than this. */
  get latestStartUs(): number {
    return this.arrivedUs + this.boundMs * 1000;
  }

  /** Its own bound, for any reason to wait. Without one it waits for slots as long as it takes. */
  get maxWaitMs(): number {
    return this.call.maxWaitMs ?? Number.POSITIVE_INFINITY;
  }

  waitedMs(nowUs: number): number {
    return (nowUs - this.arrivedUs) / 1000;
  }

  /**
   * By how many milliseconds the wait goes on when `maxWaitMs` is over; 0 for a refusal. A wait for slots ends. A wait
   * for windows goes on for at most a tenth of the bound, because timers are late: without that, requests that were
   * admitted would be refused in the last milliseconds.
   */
  extensionMs(readyUs: number, isStoreAsked: boolean, nowUs: number): number {
    if (isStoreAsked) return MIN_GRACE_MS;
    const graceMs = Math.max(MIN_GRACE_MS, this.maxWaitMs / 10);
    const isSoon = readyUs > nowUs && readyUs - this.arrivedUs <= (this.maxWaitMs + graceMs) * 1000;
    return isSoon ? (readyUs - nowUs) / 1000 : 0;
  }

  /** Stops its timer and stops watching its signal. False if it has ended before. */
  end(): boolean {
    if (this.#isOver) return false;
    this.#isOver = true;
    this.timer?.cancel();
    this.stopWatching?.();
    return true;
  }

  granted(grant: Grant): void {
    this.end();
    this.#outcome.resolve(grant);
  }

  /** It must have left its queue before. */
  refused(reason: unknown): void {
    this.end();
    this.#outcome.reject(reason);
  }
}
