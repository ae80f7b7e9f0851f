import type { BreakerChange } from "../breaker/breaker-change.ts";
import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import { type Constraint, type DecidedBy, type LimitChanges, RejectedError, type StoreError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { QueuedWait } from "../limiter/granted-wait.ts";
import type { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { Queues } from "../limiter/queues.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import type { RoleBudgets } from "../limiter/role-budgets.ts";
import { Waiter, type WaiterDetails } from "../limiter/waiter.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { isServiceName } from "../policy/service-name.ts";
import type { PeerChange } from "../sharing/peer-change.ts";
import type { Peers } from "../sharing/peers.ts";
import { awayText, backText, type StoreAway } from "../sharing/store-outage.ts";
import type { Time, Timer } from "../time/time.ts";
import { onAbort } from "./abort-watch.ts";
import { type Admission, mayWaitFor } from "./admission.ts";
import type { BreakerQueue } from "./breaker-queue.ts";
import type { GrantIssuer } from "./grant-issuer.ts";
import type { LimitOrders } from "./limit-orders.ts";

/** A process that is away tries the store at least every 1.5 s: a probe takes a second at most, and half a second later the next one follows. */
const SETTLING_MS = 1600;
/** How much longer a request waits whose bound ends while the store is asked for what it needs. */
const STORE_REPLY_MS = 5;
const NO_BLOCKED: ReadonlyMap<RoleBudget, number> = new Map();

export interface WaitingRequestsDeps {
  readonly time: Time;
  readonly roleBudgets: RoleBudgets;
  readonly queues: Queues;
  readonly breakers: Breakers | undefined;
  readonly breakerQueue: BreakerQueue | undefined;
  readonly peers: Peers | undefined;
  readonly admission: Admission;
  readonly issuer: GrantIssuer;
  readonly limitOrders: LimitOrders;
  readonly emitter: LimiterEmitter;
  readonly warn: ((message: string) => void) | undefined;
  /** Adds the setting behind a refusal to its error. */
  readonly explainTo: (error: RejectedError, request: EntryRequest) => void;
  /** Finds the setting behind a wait; undefined without a hub. */
  readonly explain: ExplainConstraint | undefined;
}

/** Finds the setting behind a limit that delayed, refused or would have refused a request. */
export type ExplainConstraint = (constraint: Constraint, request: EntryRequest, changes: LimitChanges) => DecidedBy;

/**
 * The requests that wait, and the only loop that serves them. It asks its parts: the queues which request has the turn,
 * the peers what has changed, the breakers for a permit. The parts never call it, except by `wake`, which is `serve`.
 */
export class WaitingRequests {
  readonly #deps: WaitingRequestsDeps;
  #isServing = false;
  #isJudging = false;
  #awaySinceUs = 0;
  /** The number of processes that the limits are divided by. */
  #sharedBy = 1;
  /** Fires when a process that has reached the store again may use the full limits. */
  #settling: Timer | undefined;

  constructor(deps: WaitingRequestsDeps) {
    this.#deps = deps;
  }

  get size(): number {
    return this.#deps.queues.waiting + (this.#deps.breakerQueue?.waiting ?? 0);
  }

  /** The requests of each budget that wait for an open circuit or a cooldown. */
  blockedByBudget(): ReadonlyMap<RoleBudget, number> {
    return this.#deps.breakerQueue?.waitingByBudget() ?? NO_BLOCKED;
  }

  /** Queues a request until it is granted, or until its signal or its own `maxWaitMs` ends the wait. */
  add(details: WaiterDetails): Promise<Grant> {
    const { peers, breakers, queues } = this.#deps;
    const waiter = new Waiter(details);
    const { call, roleBudget, units, maxWaitMs } = waiter;
    const { signal } = call;
    const leave = (reason: unknown) => this.#abort(waiter, reason);
    if (signal !== undefined) waiter.stopWatching = onAbort(signal, () => leave(signal.reason));
    call.caller?.onWait(leave, () => waiter.blockedMs(this.#deps.time.monotonicUs()));
    waiter.lastStoreRequest = (peers?.requestCount(roleBudget) ?? 0) + 1;
    if (maxWaitMs < Number.POSITIVE_INFINITY) this.#checkBoundIn(waiter, maxWaitMs);
    const denial = breakers?.check(call);
    if (denial === undefined) queues.of(units).join(waiter);
    else this.#block(waiter, denial);
    this.serve();
    return waiter.promise;
  }

  /** Applies new limits: requests already sent still count, waiting requests stay queued. */
  reload(limits: LimitPolicies): void {
    this.#requeue(() => {
      this.#deps.roleBudgets.reload(limits);
      this.#deps.peers?.limitsChanged(this.#deps.roleBudgets.takeTakenOver());
    });
  }

  /**
   * Serves the requests that are ready. A grant may call listeners that call this method again; then the outer loop
   * continues with the changed state.
   */
  serve(): void {
    if (this.#isServing) return;
    this.#isServing = true;
    const { peers, breakerQueue } = this.#deps;
    try {
      do {
        for (const change of peers?.takeChanges() ?? []) this.#applyPeerChange(change);
        this.#applyBreakerChanges();
        for (const waiter of breakerQueue?.takeUnblocked() ?? []) this.#unblocked(waiter);
      } while (this.#serveNext());
      if (breakerQueue?.waiting) peers?.poll(breakerQueue.blockers());
    } finally {
      this.#isServing = false;
    }
    this.#judgeLater();
  }

  /** A request that did not wait has taken units of this role budget and of those above it. */
  capacityTaken(roleBudget: RoleBudget): void {
    if (this.#deps.queues.waiting === 0) return;
    this.#deps.queues.changed(roleBudget);
    this.#judgeLater();
  }

  /** In a microtask, so that many requests that arrive together are judged together, at the same instant. */
  #judgeLater(): void {
    if (this.#isJudging || !this.#deps.queues.hasSuspects) return;
    this.#isJudging = true;
    queueMicrotask(() => {
      this.#isJudging = false;
      this.#judge();
    });
  }

  /** Refuses the requests that can no longer start within their bounds (law L4). */
  #judge(): void {
    const { queues, admission, time } = this.#deps;
    const nowUs = time.monotonicUs();
    for (const { waiter, ...start } of queues.takeLate(nowUs)) {
      // A listener of a refusal may have ended it.
      if (!waiter.isOver && !waiter.hasLeft) this.#refuse(waiter, admission.rejectLate(waiter, nowUs, start));
    }
    this.serve();
  }

  #refuse(waiter: Waiter, error: RejectedError): void {
    waiter.end();
    this.#leave(waiter);
    this.#reject(waiter, error);
    this.serve();
  }

  /** Ends a request that has left its queue. Every refusal names the setting behind it. */
  #reject(waiter: Waiter, error: RejectedError | StoreError): void {
    if (error instanceof RejectedError) this.#deps.explainTo(error, waiter.call);
    waiter.refused(error);
  }

  #applyPeerChange(change: PeerChange): void {
    const { queues, breakerQueue, emitter } = this.#deps;
    if (change.kind === "ready") queues.unpark(change.roleBudget);
    else if (change.kind === "unblocked") breakerQueue?.unblock(change.blocker);
    else if (change.kind === "overruled") emitter.overruled(change.roleBudget);
    else if (change.away === undefined) this.#storeBack(change.shares === "limits");
    else this.#storeAway(change.away, change.shares === "limits");
  }

  #storeAway(away: StoreAway, sharesLimits: boolean): void {
    const { emitter, roleBudgets, time, warn } = this.#deps;
    const { mode = "share", processes, error } = away;
    this.#awaySinceUs = time.monotonicUs();
    emitter.storeAway(processes, mode, error);
    warn?.(awayText(away));
    if (!sharesLimits) return;
    roleBudgets.store.isBlocking = mode !== "share";
    this.#settling?.cancel();
    if (mode === "share" || away.hasLostData) {
      this.#sharedBy = processes;
      this.#requeue(() => roleBudgets.share(processes, this.#awaySinceUs));
    }
    if (mode === "refuse") this.#refuseWithoutStore(away);
  }

  #storeBack(sharesLimits: boolean): void {
    const { emitter, roleBudgets, time, warn } = this.#deps;
    const awayMs = (time.monotonicUs() - this.#awaySinceUs) / 1000;
    emitter.storeBack(awayMs);
    warn?.(backText(awayMs));
    if (!sharesLimits) return;
    roleBudgets.store.isBlocking = false;
    // The other processes return within this time and report what they sent: until then each keeps to its share.
    if (this.#sharedBy > 1) this.#settling = time.setTimer(SETTLING_MS, () => this.#useFullLimits());
    if (this.#sharedBy > 1) this.#requeue(() => undefined);
    else this.#useFullLimits();
  }

  #useFullLimits(): void {
    this.#settling = undefined;
    this.#sharedBy = 1;
    this.#requeue(() => this.#deps.roleBudgets.share(1));
  }

  /** Refuses the requests that would wait for the store. */
  #refuseWithoutStore(away: StoreAway): void {
    const { queues, admission, peers, time } = this.#deps;
    for (const waiter of queues.removeAll()) {
      const { roleBudget, charge } = waiter;
      if (peers?.hasLeases(roleBudget, charge, time.monotonicUs())) this.#rejoin(waiter);
      else if (waiter.end()) this.#reject(waiter, admission.rejectWithoutStore(roleBudget, charge, away));
    }
  }

  #applyBreakerChanges(): void {
    const { breakers, breakerQueue, peers, limitOrders } = this.#deps;
    const changes = breakers?.takeChanges() ?? [];
    if (changes.length === 0) return;
    peers?.publish(changes);
    for (const change of changes) {
      if (change.kind === "hold" && change.untilUs > 0) this.#emitHold(change);
      if (change.kind === "limit") limitOrders.apply(change);
    }
    if (this.size === 0) return;
    // A circuit that opens again unblocks too: a call that waits for the lease of the failed probe would wait too long.
    for (const { origin, kind, blocker } of changes)
      if (!UNBLOCKING_NONE.has(kind) && origin !== "timeout") breakerQueue?.unblock(blocker);
    if (changes.some(delaysCalls)) this.#judgeDenied();
  }

  #emitHold({ blocker, roles, untilUs }: BreakerChange & { readonly kind: "hold" }): void {
    const { emitter, roleBudgets, time } = this.#deps;
    const ms = (untilUs - time.monotonicUs()) / 1000;
    for (const role of roles) {
      // So that snapshots list it, also before its first call.
      if (!isServiceName(blocker.name)) roleBudgets.forHost(blocker.name, role);
      emitter.held(blocker.name, role, ms);
    }
  }

  /**
   * Refuses the requests whose circuit or cooldown now ends after their bounds (law L4): those that wait for it, and those
   * that wait for a rate. The end of a probe is not known, so a half-open circuit refuses none of them.
   */
  #judgeDenied(): void {
    const { breakers, breakerQueue, queues, admission, time } = this.#deps;
    const nowUs = time.monotonicUs();
    const judge = (waiter: Waiter, call: EntryRequest) => {
      const denial = breakers?.check(call);
      if (denial === undefined || denial.state === "half_open" || waiter.isOver) return;
      if (!mayWaitFor(denial, call, waiter.latestUs(nowUs), nowUs))
        this.#refuse(waiter, admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs)));
    };
    for (const waiter of [...(breakerQueue?.waiters() ?? [])]) judge(waiter, waiter.call);
    // Their maxBreakerWaitMs begins with their first denial, on their turn.
    for (const waiter of [...queues.waiters()]) judge(waiter, { ...waiter.call, maxBreakerWaitMs: undefined });
  }

  /** Serves the request that has the turn, if it has what it needs from the peers. False if there is none. */
  #serveNext(): boolean {
    const { time, queues, peers } = this.#deps;
    const nowUs = time.monotonicUs();
    for (let waiter = queues.next(nowUs); waiter !== undefined; waiter = queues.next(nowUs)) {
      if (waiter.isOverdue(nowUs) && !this.#isStoreToBeAsked(waiter)) {
        this.#refuse(waiter, this.#lateRejection(waiter, nowUs));
        continue;
      }
      const scheduler = queues.of(waiter.units);
      const queue = scheduler.queueOf(waiter.roleBudget);
      if (queue !== undefined && peers?.ensureReady(waiter, queue, nowUs) === false) {
        waiter.isStoreAsked = this.#isStoreAsked(waiter);
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
    const { admission, issuer, explain } = this.#deps;
    const { call, roleBudget, charge } = waiter;
    const permit = admission.permit(call, roleBudget, charge, nowUs);
    if (waiter.isOver) {
      // A listener of the breaker has aborted it.
      if (permit instanceof Permit) permit.release();
      return false;
    }
    if (permit === "taken") {
      this.#rejoin(waiter);
      return false;
    }
    if (permit !== undefined && !(permit instanceof Permit)) {
      if (permit.isProbePending || mayWaitFor(permit, call, waiter.latestUs(nowUs), nowUs)) this.#block(waiter, permit);
      else this.#reject(waiter, admission.rejectDenied(permit, waiter, waiter.waitedMs(nowUs)));
      return false;
    }
    const wait = new QueuedWait(waiter, nowUs, explain && (limit => explain(limit, call, roleBudget)));
    const grant = issuer.issue(call, roleBudget, charge, nowUs, wait, permit);
    // A listener of the limiter may have aborted it.
    if (waiter.isOver) grant.giveBack();
    else waiter.granted(grant);
    return true;
  }

  /** The request waits for the end of a denial. */
  #block(waiter: Waiter, denial: Denial): void {
    this.#deps.breakerQueue?.add(waiter, denial);
    this.#checkBlockLater(waiter, denial);
  }

  /** The end of a trial call is not known, so the policy's bound of the request ends the wait for it. */
  #checkBlockLater(waiter: Waiter, denial: Denial): void {
    if (waiter.hasOwnBound || denial.state !== "half_open" || denial.isRampUp) return;
    const nowUs = this.#deps.time.monotonicUs();
    const leftMs = (waiter.latestUs(nowUs) - nowUs) / 1000;
    // Without time left the peers are being asked for a probe, and their reply decides.
    if (leftMs > 0) waiter.timer ??= this.#deps.time.setTimer(leftMs, () => this.#checkBlock(waiter));
  }

  /** The policy's bound of a request that a half-open circuit blocked is over. */
  #checkBlock(waiter: Waiter): void {
    const { breakerQueue, breakers, admission, time } = this.#deps;
    waiter.timer = undefined;
    if (!breakerQueue?.has(waiter)) return;
    this.#retry(waiter);
    const denial = breakers?.check(waiter.call);
    if (denial === undefined || !breakerQueue.has(waiter)) return;
    const nowUs = time.monotonicUs();
    if (!mayWaitFor(denial, waiter.call, waiter.latestUs(nowUs), nowUs))
      this.#refuse(waiter, admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs)));
    else this.#checkBlockLater(waiter, denial);
  }

  /** The circuit or cooldown that blocked the request has ended. */
  #unblocked(waiter: Waiter): void {
    waiter.blockedUntilUs = this.#deps.time.monotonicUs();
    this.#rejoin(waiter);
  }

  /** Queues every request again, in order of arrival, because `change` may put several hosts into one service. */
  #requeue(change: () => void): void {
    const waiters = this.#deps.queues.removeAll();
    change();
    for (const waiter of waiters) this.#rejoin(waiter);
    this.serve();
  }

  /** Queues a request again. Its budget may be a new one, after a reload or because the old one was forgotten. */
  #rejoin(waiter: Waiter): void {
    try {
      waiter.roleBudget = this.#deps.roleBudgets.of(waiter.call);
      waiter.charge = waiter.roleBudget.chargeOf(waiter.call);
    } catch (error) {
      // The new limits can never grant its weight, or have no such service: it would wait for ever.
      if (!(error instanceof RangeError)) throw error;
      waiter.refused(error);
      return;
    }
    this.#deps.queues.of(waiter.units).join(waiter);
    this.#deps.queues.changed(waiter.roleBudget);
  }

  #abort(waiter: Waiter, reason: unknown): void {
    const { emitter, time } = this.#deps;
    if (!waiter.end()) return;
    // It leaves the queue before the event: listeners may call the gate.
    this.#leave(waiter);
    waiter.refused(reason);
    this.serve();
    emitter.aborted(waiter.roleBudget, waiter.charge, waiter.waitedMs(time.monotonicUs()));
  }

  /** Removes a request that ends without a grant. Its caller learns of that before those that it blocked are served. */
  #leave(waiter: Waiter): void {
    const { breakerQueue, queues } = this.#deps;
    if (breakerQueue?.has(waiter)) breakerQueue.leave(waiter);
    else queues.of(waiter.units).leave(waiter);
  }

  #checkBoundIn(waiter: Waiter, ms: number): void {
    waiter.timer = this.#deps.time.setTimer(ms, () => this.#checkBound(waiter));
  }

  /** The bound of the request is over: it is granted now, waits a little longer, or is refused. */
  #checkBound(waiter: Waiter): void {
    const nowUs = this.#deps.time.monotonicUs();
    const leftMs = waiter.maxWaitMs - waiter.waitedMs(nowUs);
    if (leftMs > 0) {
      this.#checkBoundIn(waiter, leftMs);
      return;
    }
    // It may be due at this very instant, with the timer of its scheduler node firing next.
    this.#retry(waiter);
    if (waiter.isOver) return;
    // Only the store knows the shared capacity, so its reply decides.
    waiter.isStoreAsked = this.#isStoreAsked(waiter);
    if (waiter.isStoreAsked) this.#checkBoundIn(waiter, STORE_REPLY_MS);
    else this.#refuse(waiter, this.#lateRejection(waiter, nowUs));
  }

  /** Grants the request now if that is possible. */
  #retry(waiter: Waiter): void {
    const { breakerQueue, breakers, queues, peers, time } = this.#deps;
    const { call, roleBudget, units, charge } = waiter;
    if (breakerQueue?.has(waiter)) {
      if (breakers?.check(call) !== undefined) return;
      breakerQueue.leave(waiter);
      this.#unblocked(waiter);
    }
    // The lease that it waits for may have been granted to a request of another key.
    if (peers?.isReady(call, roleBudget, charge, time.monotonicUs())) queues.unpark(roleBudget);
    queues.of(units).hasten(roleBudget);
    this.serve();
  }

  /** Only the store knows the shared capacity: it is asked once for every request, also with `maxWaitMs` 0. */
  #isStoreToBeAsked({ roleBudget, lastStoreRequest }: Waiter): boolean {
    const { peers } = this.#deps;
    return peers !== undefined && peers.requestCount(roleBudget) < lastStoreRequest;
  }

  /** The store is being asked for what this request needs. */
  #isStoreAsked(waiter: Waiter): boolean {
    const { peers } = this.#deps;
    return peers?.isRequesting(waiter) === true && peers.requestCount(waiter.roleBudget) <= waiter.lastStoreRequest;
  }

  #lateRejection(waiter: Waiter, nowUs: number): RejectedError {
    const { breakerQueue, breakers, admission } = this.#deps;
    const denial = breakerQueue?.has(waiter) ? breakers?.check(waiter.call) : undefined;
    if (denial === undefined) return admission.rejectLate(waiter, nowUs);
    return admission.rejectDenied(denial, waiter, waiter.waitedMs(nowUs));
  }
}

/** Changes that let no waiting call start. */
const UNBLOCKING_NONE: ReadonlySet<BreakerChange["kind"]> = new Set([
  "cooldown",
  "failure",
  "recent-failure",
  "success",
  "limit",
]);

/** Whether calls may have to wait for longer than before. */
function delaysCalls(change: BreakerChange): boolean {
  if (change.origin === "timeout") return false;
  if (change.kind === "circuit") return change.now.kind === "open";
  return change.kind === "cooldown" || change.kind === "order" || change.kind === "hold";
}
