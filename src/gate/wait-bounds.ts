import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import type { RejectedError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { LateGroup } from "../limiter/estimated-node.ts";
import type { EstimatedStart, LateWaiter } from "../limiter/queue-estimate.ts";
import type { Queues } from "../limiter/queues.ts";
import type { Waiter } from "../limiter/waiter.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";
import { type Admission, mayWaitFor } from "./admission.ts";
import type { BreakerQueue } from "./breaker-queue.ts";
import type { GateQueues } from "./gate-queues.ts";

/**
 * If the bound of a request ends while the store is asked for leases or records that the request needs, the bound is
 * checked again after this time.
 */
const STORE_REPLY_MS = 5;
/**
 * Computing the exact start of a group of late requests visits each queued request. After this number of visits, the
 * requests of further groups are refused with the earliest start that is known. The first group is always computed.
 */
const EXACT_WORK_MAX = 20_000;

export interface WaitBoundsDeps {
  readonly time: Time;
  readonly queues: Queues;
  readonly gateQueues: GateQueues;
  readonly breakers: Breakers | undefined;
  readonly breakerQueue: BreakerQueue | undefined;
  readonly peers: Peers | undefined;
  readonly admission: Admission;
  /** Serves the requests that are ready. */
  readonly serve: () => void;
}

/** Refuses waiting requests that cannot start within their bounds, as soon as that is known (law L4). */
export class WaitBounds {
  readonly #deps: WaitBoundsDeps;
  #isJudging = false;
  /** The number of the newest request. */
  #newest = 0;
  /** The number of the newest request at the last judgement. */
  #newestJudged = 0;

  constructor(deps: WaitBoundsDeps) {
    this.#deps = deps;
  }

  /** The request has arrived: its own bound ends its wait, whatever it waits for. */
  watch(waiter: Waiter): void {
    const { peers } = this.#deps;
    const { roleBudget, charge, ownBoundUs, arrivedUs } = waiter;
    this.#newest = waiter.number;
    waiter.lastStoreRequest = peers?.lastRequestFor(roleBudget, charge) ?? 0;
    if (ownBoundUs < Number.POSITIVE_INFINITY) this.#checkBoundIn(waiter, (ownBoundUs - arrivedUs) / 1000);
  }

  /**
   * The request waits for the end of a denial. The end of a trial call is not known, so the policy's bound limits that
   * wait.
   */
  watchBlocked(waiter: Waiter, denial: Denial): void {
    if (waiter.hasOwnBound || denial.state !== "half_open" || denial.isRampUp) return;
    const nowUs = this.#deps.time.monotonicUs();
    const leftMs = (waiter.latestUs(nowUs) - nowUs) / 1000;
    // If no time is left, the peers are being asked for a probe, and their reply decides.
    if (leftMs > 0) waiter.timer ??= this.#deps.time.setTimer(leftMs, () => this.#checkBlock(waiter));
  }

  /** In a microtask, so that many requests that arrive together are judged together, at the same instant. */
  judgeLater(): void {
    if (this.#isJudging || !this.#deps.queues.hasSuspects) return;
    this.#isJudging = true;
    queueMicrotask(() => {
      this.#isJudging = false;
      this.#judge();
    });
  }

  /** Refuses the requests that can no longer start within their bounds. */
  #judge(): void {
    const { queues, time, serve } = this.#deps;
    const nowUs = time.monotonicUs();
    let late = queues.takeLate(nowUs);
    // Without the new requests that are refused, those that waited before may start in time.
    const isNew = ({ waiter }: LateWaiter) => waiter.number > this.#newestJudged;
    while (late.some(isNew) && !late.every(isNew)) {
      for (const { waiter } of late) queues.changed(waiter.roleBudget);
      this.#refuseLate(late.filter(isNew), nowUs);
      late = queues.takeLate(nowUs);
    }
    this.#newestJudged = this.#newest;
    this.#refuseLate(late, nowUs);
    serve();
  }

  #refuseLate(all: readonly LateWaiter[], nowUs: number): void {
    const { queues, admission } = this.#deps;
    const exactMax = EXACT_WORK_MAX / queues.waiting;
    const exact = new Map<LateGroup, EstimatedStart>();
    for (const late of all) {
      const { waiter, group } = late;
      // A listener that got the event of an earlier refusal may have ended this request.
      if (waiter.isOver || waiter.hasLeft) continue;
      if (exact.size < exactMax && !exact.has(group)) exact.set(group, this.#startOf(late, nowUs));
      this.#refuse(waiter, admission.rejectLate(waiter, nowUs, exact.get(group) ?? late));
    }
  }

  /** When a late request would start if it stayed. The end of a wait for a slot is not known. */
  #startOf(late: LateWaiter, nowUs: number): EstimatedStart {
    const { waiter } = late;
    const start = this.#deps.queues.schedulerOf(waiter).estimates.startOfQueued(waiter, nowUs);
    if (start.startUs === Number.POSITIVE_INFINITY) return late;
    return { startUs: start.startUs, constraint: start.constraint ?? late.constraint };
  }

  /**
   * Refuses the requests whose circuit or cooldown now ends after their bounds: those that wait for it, and those that
   * wait for a rate. The end of a probe is not known, so a half-open circuit refuses none of them. `names` has the hosts,
   * services and resolvers that have changed: the other requests are not looked at.
   */
  judgeDenied(names: ReadonlySet<string>): void {
    const { breakers, breakerQueue, queues, admission, time } = this.#deps;
    const nowUs = time.monotonicUs();
    const judge = (waiter: Waiter, call: EntryRequest) => {
      if (breakers === undefined || waiter.isOver || !breakers.isDecidedBy(call, names)) return;
      const denial = breakers.check(call);
      if (denial === undefined || denial.state === "half_open") return;
      if (!mayWaitFor(denial, call, waiter.latestUs(nowUs), nowUs, waiter.breakerWaitMs(nowUs)))
        this.#refuse(waiter, admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs)));
    };
    for (const waiter of [...(breakerQueue?.waiters() ?? [])]) judge(waiter, waiter.call);
    // Their `maxBreakerWaitMs` does not apply yet: it begins when they have the turn and the breaker denies them.
    for (const waiter of queues.waiters()) judge(waiter, { ...waiter.call, maxBreakerWaitMs: undefined });
  }

  /** Refuses the request that has the turn if its own bound is over. False if it may be served. */
  refuseOverdue(waiter: Waiter, nowUs: number): boolean {
    if (!waiter.isOverdue(nowUs) || this.#mustAskStore(waiter)) return false;
    this.#refuse(waiter, this.#lateRejection(waiter, nowUs));
    return true;
  }

  /** Whether the store is being asked for what this request needs: its reply decides. */
  isStoreAsked(waiter: Waiter): boolean {
    const { peers } = this.#deps;
    return peers?.isRequesting(waiter) === true && peers.requestCount(waiter.roleBudget) <= waiter.lastStoreRequest;
  }

  #refuse(waiter: Waiter, error: RejectedError): void {
    this.#deps.gateQueues.refuse(waiter, error);
    this.#deps.serve();
  }

  /** Called when the policy's bound of a request ends while a half-open circuit blocks the request. */
  #checkBlock(waiter: Waiter): void {
    const { gateQueues, breakers, admission, time } = this.#deps;
    waiter.timer = undefined;
    if (!gateQueues.isBlocked(waiter)) return;
    this.#retry(waiter);
    const denial = breakers?.check(waiter.call);
    if (denial === undefined || !gateQueues.isBlocked(waiter)) return;
    const nowUs = time.monotonicUs();
    if (!mayWaitFor(denial, waiter.call, waiter.latestUs(nowUs), nowUs, waiter.breakerWaitMs(nowUs)))
      this.#refuse(waiter, admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs)));
    else this.watchBlocked(waiter, denial);
  }

  #checkBoundIn(waiter: Waiter, ms: number): void {
    waiter.timer = this.#deps.time.setTimer(ms, () => this.#checkBound(waiter));
  }

  /** The bound of the request is over: it is granted now, waits a little longer, or is refused. */
  #checkBound(waiter: Waiter): void {
    const nowUs = this.#deps.time.monotonicUs();
    const leftMs = (waiter.ownBoundUs - nowUs) / 1000;
    if (leftMs > 0) {
      this.#checkBoundIn(waiter, leftMs);
      return;
    }
    // It may be due at this instant, and the timer of its scheduler node fires next.
    this.#retry(waiter);
    if (waiter.isOver) return;
    // Only the store knows the shared capacity, so its reply decides.
    waiter.isStoreAsked = this.isStoreAsked(waiter);
    if (waiter.isStoreAsked) this.#checkBoundIn(waiter, STORE_REPLY_MS);
    else this.#refuse(waiter, this.#lateRejection(waiter, nowUs));
  }

  /** Grants the request now if that is possible. */
  #retry(waiter: Waiter): void {
    const { gateQueues, breakers, queues, peers, time, serve } = this.#deps;
    const { call } = waiter;
    if (gateQueues.isBlocked(waiter)) {
      if (breakers?.check(call) !== undefined) return;
      gateQueues.unblock(waiter);
    }
    const { roleBudget, charge } = waiter;
    // The lease that the request waits for may have arrived for a request of another key.
    if (peers?.isReady(call, roleBudget, charge, time.monotonicUs())) queues.replied(roleBudget);
    queues.schedulerOf(waiter).hasten(roleBudget);
    serve();
  }

  /** Only the store knows the shared capacity: it is asked once for every request, even with `maxWaitMs` 0. */
  #mustAskStore({ roleBudget, lastStoreRequest }: Waiter): boolean {
    const { peers } = this.#deps;
    return peers !== undefined && peers.requestCount(roleBudget) < lastStoreRequest;
  }

  #lateRejection(waiter: Waiter, nowUs: number): RejectedError {
    const { gateQueues, breakers, admission } = this.#deps;
    const denial = gateQueues.isBlocked(waiter) ? breakers?.check(waiter.call) : undefined;
    if (denial === undefined) return admission.rejectLate(waiter, nowUs);
    return admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs));
  }
}
