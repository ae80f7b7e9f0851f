import { type BreakerChange, ownerOfBlocker } from "../breaker/breaker-change.ts";
import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import type { Constraint, DecidedBy, LimitChanges, RejectedError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { QueuedWait, waitPartsOf } from "../limiter/granted-wait.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import { Waiter, type WaiterDetails } from "../limiter/waiter.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { isServiceName } from "../policy/service-name.ts";
import type { PeerChange } from "../sharing/peer-change.ts";
import type { Peers } from "../sharing/peers.ts";
import type { Time } from "../time/time.ts";
import { onAbort } from "./abort-watch.ts";
import { type Admission, mayWaitFor } from "./admission.ts";
import type { BlockedKey, BreakerQueue } from "./breaker-queue.ts";
import { GateQueues } from "./gate-queues.ts";
import type { GrantIssuer } from "./grant-issuer.ts";
import { LimitOrders } from "./limit-orders.ts";
import { OutageLimits } from "./outage-limits.ts";
import { WaitBounds } from "./wait-bounds.ts";

export interface WaitingRequestsDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly queues: Queues;
  readonly breakers: Breakers | undefined;
  readonly breakerQueue: BreakerQueue | undefined;
  readonly peers: Peers | undefined;
  readonly admission: Admission;
  readonly issuer: GrantIssuer;
  readonly emitter: LimiterEmitter;
  readonly warn: ((message: string) => void) | undefined;
  /** Adds the setting behind a refusal to its error. */
  readonly explainTo: (error: RejectedError, request: EntryRequest) => void;
  /** Finds the setting behind a wait; undefined without a hub. */
  readonly explain: ExplainConstraint | undefined;
  /** As `GateOptions.onLimitsEased`. */
  readonly onLimitsEased: (() => void) | undefined;
}

/** Finds the setting behind a limit that delayed, refused or would have refused a request. */
export type ExplainConstraint = (constraint: Constraint, request: EntryRequest, changes: LimitChanges) => DecidedBy;

/**
 * The requests that wait, and the only loop that serves them. It asks the queues which request has the turn, the peers
 * for their changes, and the breakers for a permit. These parts never call it, except by `wake`, which is `serve`.
 */
export class WaitingRequests {
  readonly #deps: WaitingRequestsDeps;
  readonly #gateQueues: GateQueues;
  readonly #bounds: WaitBounds;
  readonly #outageLimits: OutageLimits;
  readonly #limitOrders: LimitOrders;
  #isServing = false;
  #isClosed = false;

  constructor(deps: WaitingRequestsDeps) {
    this.#deps = deps;
    const gateQueues = new GateQueues(deps);
    const shared = { ...deps, gateQueues, serve: () => this.serve() };
    this.#gateQueues = gateQueues;
    this.#bounds = new WaitBounds(shared);
    this.#outageLimits = new OutageLimits(shared);
    this.#limitOrders = new LimitOrders(shared);
  }

  get size(): number {
    return this.#gateQueues.size;
  }

  /** The requests of each key that wait for an open circuit or a cooldown. */
  blockedByKey(): ReadonlyMap<string, BlockedKey> {
    return this.#gateQueues.blockedByKey();
  }

  /**
   * Queues a request until it is granted, or until its signal or its own `maxWaitMs` ends the wait. Throws the reason of
   * a signal that a listener has aborted since the request entered.
   */
  add(details: WaiterDetails): Promise<Grant> {
    const waiter = new Waiter(details);
    const { call } = waiter;
    const { signal } = call;
    signal?.throwIfAborted();
    const leave = (reason: unknown) => this.#abort(waiter, reason);
    if (signal !== undefined) waiter.stopWatching = onAbort(signal, () => leave(signal.reason));
    call.caller?.onWait(leave, () => waitPartsOf(waiter, this.#deps.time.monotonicUs()));
    this.#bounds.watch(waiter);
    const denial = this.#deps.breakers?.check(call);
    if (denial === undefined) this.#gateQueues.join(waiter);
    else this.#block(waiter, denial);
    this.serve();
    return waiter.promise;
  }

  /** Applies new limits: requests already sent still count, waiting requests stay queued. */
  reload(limits: LimitPolicies): void {
    const { roleBudgets, peers } = this.#deps;
    const change = () => {
      roleBudgets.reload(limits);
      peers?.limitsChanged(roleBudgets.carried.takeTakenOver());
    };
    this.#gateQueues.requeue(change, () => this.serve());
  }

  /**
   * Serves the requests that are ready. A grant may call listeners that call this method again; then the outer loop
   * continues with the changed state.
   */
  serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    const { peers, breakerQueue, roleBudgets } = this.#deps;
    try {
      do {
        // A partition that is used for the first time may have taken over units that were sent before the division.
        peers?.takenOver(roleBudgets.carried.takeTakenOver());
        for (const change of peers?.takeChanges() ?? []) this.#applyPeerChange(change);
        this.#applyBreakerChanges();
        this.#gateQueues.rejoinUnblocked();
      } while (this.#serveNext());
      if (breakerQueue?.waiting) peers?.poll(breakerQueue.blockers());
    } finally {
      this.#isServing = false;
    }
    this.#bounds.judgeLater();
  }

  /** A request that did not wait has taken units of this role budget and of those above it. */
  capacityTaken(roleBudget: RoleBudget): void {
    if (this.#deps.queues.waiting === 0) return;
    this.#deps.queues.changed(roleBudget);
    this.#bounds.judgeLater();
  }

  /** Ends every request with `reason`. From now on a store that does not answer is not reported: it may be closed. */
  close(reason: unknown): void {
    const { emitter, time } = this.#deps;
    this.#isClosed = true;
    // All have left before the first event: listeners may call the gate.
    const waiters = this.#gateQueues.removeAll().filter(waiter => waiter.end());
    for (const waiter of waiters) waiter.refused(reason);
    const nowUs = time.monotonicUs();
    for (const waiter of waiters) emitter.aborted(waiter.roleBudget, waiter.charge, waiter.waitedMs(nowUs));
  }

  #applyPeerChange(change: PeerChange): void {
    const { queues, breakerQueue, emitter } = this.#deps;
    if (change.kind === "store" && this.#isClosed) return;
    if (change.kind === "ready") queues.replied(change.roleBudget);
    else if (change.kind === "earlier") queues.hasten(change.roleBudget);
    else if (change.kind === "unblocked") breakerQueue?.unblock(change.blocker);
    else if (change.kind === "overruled") emitter.overruled(change.roleBudget);
    else if (change.away !== undefined) this.#outageLimits.storeAway(change.away, change.shares);
    else {
      this.#outageLimits.storeBack(change.shares);
      this.#deps.onLimitsEased?.();
    }
  }

  #applyBreakerChanges(): void {
    const { breakers, breakerQueue, peers } = this.#deps;
    const changes = breakers?.takeChanges() ?? [];
    if (changes.length === 0) return;
    peers?.publish(changes);
    for (const change of changes) {
      if (change.kind === "hold" && change.untilUs > 0) this.#emitHold(change);
      if (change.kind === "limit") this.#limitOrders.apply(change);
    }
    if (changes.some(easesCalls)) this.#deps.onLimitsEased?.();
    if (this.size === 0) return;
    // A circuit that opens again unblocks too: its calls wait for the lease of the failed probe, which may end later
    // than the new open time.
    for (const { origin, kind, blocker } of changes)
      if (!NOT_UNBLOCKING.has(kind) && origin !== "timeout") breakerQueue?.unblock(blocker);
    const delaying = new Set(changes.filter(delaysCalls).map(({ blocker }) => ownerOfBlocker(blocker)));
    if (delaying.size > 0) this.#bounds.judgeDenied(delaying);
  }

  #emitHold({ blocker, roles, untilUs }: BreakerChange & { readonly kind: "hold" }): void {
    const { emitter, roleBudgets, time } = this.#deps;
    const ms = (untilUs - time.monotonicUs()) / 1000;
    for (const role of roles) {
      // So that snapshots list it, even before its first call.
      if (!isServiceName(blocker.name)) roleBudgets.forHost(commonName(blocker.name), role);
      emitter.held(blocker.name, role, ms);
    }
  }

  /** Serves the next request that has its units, slots and records from the peers. False if there is no such request. */
  #serveNext(): boolean {
    const { time, queues, peers } = this.#deps;
    const nowUs = time.monotonicUs();
    const unlimited = this.#gateQueues.takeUnlimited();
    if (unlimited !== undefined) {
      this.#grant(unlimited, nowUs);
      return true;
    }
    for (let waiter = queues.next(nowUs); waiter !== undefined; waiter = queues.next(nowUs)) {
      if (this.#bounds.refuseOverdue(waiter, nowUs)) continue;
      const scheduler = queues.schedulerOf(waiter);
      const full = peers?.requestedOut(waiter, nowUs);
      if (full !== undefined) {
        scheduler.parkAt(full, waiter);
        continue;
      }
      const queue = scheduler.queueOf(waiter.roleBudget);
      if (queue !== undefined && peers?.ensureReady(waiter, queue, nowUs) === false) {
        if (waiter.roleBudget.exceedsShare(waiter.charge)) this.#outageLimits.awaitFullLimits();
        waiter.isStoreAsked = this.#bounds.isStoreAsked(waiter);
        scheduler.park(waiter, peers.limitOf(waiter));
        continue;
      }
      scheduler.take(waiter, nowUs);
      if (this.#grant(waiter, nowUs)) scheduler.granted(waiter);
      return true;
    }
    return false;
  }

  /** Grants a request that every budget admits. False if the breaker denies it: then it is queued again or refused. */
  #grant(waiter: Waiter, nowUs: number): boolean {
    const { admission, issuer, explain, peers } = this.#deps;
    const { call, roleBudget, charge } = waiter;
    const permit = admission.permit(call, roleBudget, charge, nowUs);
    if (waiter.isOver) {
      // A listener of the breaker has aborted it.
      if (permit instanceof Permit) permit.release();
      return false;
    }
    if (permit === "taken") {
      this.#gateQueues.rejoin(waiter);
      return false;
    }
    if (permit !== undefined && !(permit instanceof Permit)) {
      // A permission to probe comes with the next reply of the store.
      if (!permit.isProbePending) peers?.left(roleBudget);
      const mayWait = mayWaitFor(permit, call, waiter.latestUs(nowUs), nowUs, waiter.breakerWaitMs(nowUs));
      if (permit.isProbePending || mayWait) this.#block(waiter, permit);
      else this.#gateQueues.reject(waiter, admission.rejectDenied(permit, waiter, waiter.waitedMs(nowUs)));
      return false;
    }
    const explainLimit = explain && ((limit: Constraint) => explain(limit, call, roleBudget));
    if (roleBudget.policy.isShadow)
      admission.reportShadow(roleBudget, charge, waiter.boundMs, waiter.hasOwnBound, nowUs, explainLimit);
    const wait = new QueuedWait(waiter, nowUs, explainLimit);
    const grant = issuer.issue(call, roleBudget, charge, nowUs, wait, permit);
    // A listener of the limiter may have aborted it.
    if (waiter.isOver) grant.giveBack();
    else waiter.granted(grant);
    return true;
  }

  /** The request waits for the end of a denial. */
  #block(waiter: Waiter, denial: Denial): void {
    this.#gateQueues.block(waiter, denial);
    this.#bounds.watchBlocked(waiter, denial);
  }

  #abort(waiter: Waiter, reason: unknown): void {
    const { emitter, time } = this.#deps;
    if (!waiter.end()) return;
    // It leaves the queue before the event: listeners may call the gate.
    this.#gateQueues.leave(waiter);
    waiter.refused(reason);
    this.serve();
    emitter.aborted(waiter.roleBudget, waiter.charge, waiter.waitedMs(time.monotonicUs()));
  }
}

/** Kinds of changes that let no waiting call start. */
const NOT_UNBLOCKING: ReadonlySet<BreakerChange["kind"]> = new Set([
  "cooldown",
  "failure",
  "recent-failure",
  "success",
  "limit",
]);

/** Whether calls may start before the time that a refusal has named. The end of a timeout was known. */
function easesCalls(change: BreakerChange): boolean {
  if (change.origin === "timeout" || change.kind === "ramp-up") return false;
  if (change.kind === "circuit") return change.now.kind !== "open";
  return change.kind === "limit" || !NOT_UNBLOCKING.has(change.kind);
}

/** Whether calls may have to wait for longer than before. */
function delaysCalls(change: BreakerChange): boolean {
  if (change.origin === "timeout") return false;
  if (change.kind === "circuit") return change.now.kind === "open";
  return change.kind === "cooldown" || change.kind === "order" || change.kind === "hold";
}
