import type { Denial } from "../breaker/denial.ts";
import { RejectedError, type StoreError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";
import type { BlockedKey, BreakerQueue } from "./breaker-queue.ts";

const NO_BLOCKED: ReadonlyMap<string, BlockedKey> = new Map();

export interface GateQueuesDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly queues: Queues;
  readonly breakerQueue: BreakerQueue | undefined;
  readonly peers: Peers | undefined;
  /** Adds the setting behind a refusal to its error. */
  readonly explainTo: (error: RejectedError, request: EntryRequest) => void;
}

/** Where requests wait: in the queues of their budgets, or for the circuit or cooldown that blocks them. */
export class GateQueues {
  readonly #deps: GateQueuesDeps;
  /** Requests in shadow mode that have waited for a breaker: no limit delays them. */
  readonly #unlimited = new Set<Waiter>();

  constructor(deps: GateQueuesDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#deps.queues.waiting + (this.#deps.breakerQueue?.waiting ?? 0) + this.#unlimited.size;
  }

  /** The requests of each key that wait for an open circuit or a cooldown. */
  blockedByKey(): ReadonlyMap<string, BlockedKey> {
    return this.#deps.breakerQueue?.waitingByKey() ?? NO_BLOCKED;
  }

  join(waiter: Waiter): void {
    if (waiter.roleBudget.policy.isShadow) this.#unlimited.add(waiter);
    else this.#deps.queues.join(waiter);
  }

  /** Removes and returns a request that no limit delays; undefined if there is none. */
  takeUnlimited(): Waiter | undefined {
    for (const waiter of this.#unlimited) {
      this.#unlimited.delete(waiter);
      return waiter;
    }
    return undefined;
  }

  /** The request waits for the end of a denial. */
  block(waiter: Waiter, denial: Denial): void {
    this.#deps.breakerQueue?.add(waiter, denial);
  }

  isBlocked(waiter: Waiter): boolean {
    return this.#deps.breakerQueue?.has(waiter) === true;
  }

  /** Queues the requests whose circuit or cooldown has ended for their budgets. */
  rejoinUnblocked(): void {
    for (const waiter of this.#deps.breakerQueue?.takeUnblocked() ?? []) this.#unblocked(waiter);
  }

  /** The same for one request whose denial has ended, before the timer of its blocker fires. */
  unblock(waiter: Waiter): void {
    this.#deps.breakerQueue?.take(waiter);
    this.#unblocked(waiter);
  }

  #unblocked(waiter: Waiter): void {
    waiter.blockedUntilUs = this.#deps.time.monotonicUs();
    this.rejoin(waiter);
  }

  /**
   * Queues every request again, in order of arrival, because `change` may put several hosts into one service. Then
   * serves those that are ready.
   */
  requeue(change: () => void, serve: () => void): void {
    const waiters = this.#deps.queues.removeAll();
    try {
      change();
    } catch (error) {
      // The requests go on with the limits in force. The loop that called this ends with the error, so it serves none.
      queueMicrotask(serve);
      throw error;
    } finally {
      for (const waiter of waiters) this.rejoin(waiter);
    }
    serve();
  }

  /** Queues a request again. Its budget may be a new one, after a reload or because the old one was evicted. */
  rejoin(waiter: Waiter): void {
    const { roleBudgets, queues, peers } = this.#deps;
    const former = waiter.roleBudget;
    try {
      waiter.roleBudget = roleBudgets.of(waiter.call);
      waiter.charge = waiter.roleBudget.chargeOf(waiter.call);
      // Requests to the store are counted for each budget.
      if (waiter.roleBudget !== former)
        waiter.lastStoreRequest = peers?.lastRequestFor(waiter.roleBudget, waiter.charge) ?? 0;
    } catch (error) {
      // The new limits can never grant its weight, or have no such service: it would wait for ever.
      if (!(error instanceof RangeError)) throw error;
      waiter.refused(error);
      return;
    }
    // A listener of an event since it left its queue may have ended it.
    if (waiter.isOver) return;
    this.join(waiter);
    if (!waiter.roleBudget.policy.isShadow) queues.changed(waiter.roleBudget);
  }

  /** Removes every request, in order of arrival. */
  removeAll(): readonly Waiter[] {
    const { queues, breakerQueue } = this.#deps;
    const blocked = [...(breakerQueue?.waiters() ?? [])];
    for (const waiter of blocked) breakerQueue?.leave(waiter);
    return [...queues.removeAll(), ...blocked].toSorted((a, b) => a.number - b.number);
  }

  /** Removes a request that ends without a grant. The requests that it blocked are served later, by `serve`. */
  leave(waiter: Waiter): void {
    const { breakerQueue, queues, peers } = this.#deps;
    if (this.#unlimited.delete(waiter)) return;
    if (breakerQueue?.has(waiter)) breakerQueue.leave(waiter);
    else queues.leave(waiter);
    peers?.left(waiter.roleBudget);
  }

  /** Removes a request and ends it with an error. */
  refuse(waiter: Waiter, error: RejectedError): void {
    waiter.end();
    this.leave(waiter);
    this.reject(waiter, error);
  }

  /** Ends a request that has left its queue. Every refusal names the setting behind it. */
  reject(waiter: Waiter, error: RejectedError | StoreError): void {
    if (error instanceof RejectedError) this.#deps.explainTo(error, waiter.call);
    waiter.refused(error);
  }
}
