import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Breakers } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import { breakersOf } from "../breaker/registry-breakers.ts";
import type { RejectedError } from "../errors.ts";
import { Budget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { estimatedUs, estimateNew, overdueUs, unitsWanted } from "../limiter/estimate.ts";
import type { Grant } from "../limiter/grant.ts";
import { type KeySnapshot, keySnapshotOf } from "../limiter/key-snapshot.ts";
import { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { Queues } from "../limiter/queues.ts";
import { type Refusal, refusalOf } from "../limiter/refusal.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { RoleBudgets } from "../limiter/role-budgets.ts";
import { Tuner } from "../limiter/tuner.ts";
import type { Waiter } from "../limiter/waiter.ts";
import { checkWeight, unitsOf } from "../limiter/weight.ts";
import type { Listener } from "../listeners.ts";
import { UNLIMITED } from "../policy/budget-policy.ts";
import type { LimitPolicies } from "../policy/limits.ts";
import { shareOf } from "../policy/limits-share.ts";
import type { Role } from "../policy/roles.ts";
import type { PeerChange } from "../sharing/peer-change.ts";
import { Peers } from "../sharing/peers.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { checkBounds, mayWaitFor, rejection } from "./admission.ts";
import { BreakerQueue } from "./breaker-queue.ts";
import { GrantIssuer } from "./grant-issuer.ts";
import { type WaitDeps, wait } from "./wait.ts";

export interface GateOptions {
  readonly listener?: Listener<LimiterEvent> | undefined;
  /** If given, every grant carries a permit that was taken at the same instant. */
  readonly breakers?: BreakerRegistry | undefined;
  /** If given, every budget is shared with the other processes that use the same store. */
  readonly store?: Store | undefined;
  /** The store that shares the breakers. @default `store` */
  readonly breakerStore?: Store | undefined;
  /** Source of randomness in [0, 1), for the retry intervals of a store that is away. @default Math.random */
  readonly random?: (() => number) | undefined;
}

/**
 * Joins limiter, breakers and peers: the breaker's permit and every budget of a request are taken at one instant, or
 * none is (law L3). The decision is synchronous; only a request that has to wait gets a promise.
 */
export class Gate implements WaitDeps {
  readonly #time: Time;
  readonly #emitter = new LimiterEmitter();
  readonly #root: Budget;
  readonly #roleBudgets: RoleBudgets;
  readonly #breakers: Breakers | undefined;
  readonly #breakerQueue: BreakerQueue | undefined;
  readonly #queues: Queues;
  readonly #tuner: Tuner;
  readonly #issuer: GrantIssuer;
  readonly #peers: Peers | undefined;
  /** The limits of the policy, undivided, also while the store is away and this process uses a share of them. */
  #limits: LimitPolicies;
  #shareCount = 1;
  #isRunning = false;

  constructor(limits: LimitPolicies, time: Time, options: GateOptions = {}) {
    const { listener, breakers, store, breakerStore = store, random = Math.random } = options;
    this.#time = time;
    this.#limits = limits;
    if (listener !== undefined) this.#emitter.add(listener);
    this.#breakers = breakers && breakersOf(breakers);
    const wake = () => this.#run();
    this.#breakerQueue = this.#breakers && new BreakerQueue(time, wake);
    this.#breakers?.onUnblocked(blocker => {
      this.#breakerQueue?.unblock(blocker);
      wake();
    });
    this.#roleBudgets = new RoleBudgets(limits, time, this.#emitter);
    this.#root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    this.#queues = new Queues(this.#root, time, wake);
    this.#peers = (store ?? breakerStore) && new Peers({ store, breakerStore, breakers, time, random }, wake);
    this.#tuner = new Tuner(this.#roleBudgets, time, this.#emitter, this.#queues, wake);
    this.#issuer = new GrantIssuer(this.#root, time, this.#emitter, this.#queues, this.#tuner, this.#peers, wake);
  }

  /** A grant, or undefined if the request cannot start now. Never waits; `check` says when and why. */
  tryEnter(request: EntryRequest): Grant | undefined {
    const roleBudget = this.#roleBudgetOf(request);
    const units = unitsOf(request, roleBudget);
    const nowUs = this.#time.monotonicUs();
    if (!this.#isFree(request, roleBudget, units, nowUs)) {
      this.#recordRefusal(roleBudget, units);
      return undefined;
    }
    const permit = this.#permit(request, roleBudget, units, nowUs);
    if (permit === undefined || permit instanceof Permit)
      return this.#issuer.issue(request, roleBudget, units, nowUs, 0, permit);
    return permit === "taken" ? this.tryEnter(request) : undefined;
  }

  /**
   * Why and for how long the request would be refused now; undefined if it would be granted. Takes and counts nothing.
   */
  check(request: EntryRequest): Refusal | undefined {
    const roleBudget = this.#roleBudgetOf(request);
    const units = unitsOf(request, roleBudget);
    const nowUs = this.#time.monotonicUs();
    if (!this.#isFree(request, roleBudget, units, nowUs)) {
      const scheduler = this.#queues.of(units);
      const readyUs = estimatedUs(scheduler, roleBudget, units, 0, nowUs);
      return refusalOf(this.#root, roleBudget, unitsWanted(scheduler, roleBudget, units), readyUs, nowUs);
    }
    const denial = this.#breakers?.check(request);
    return denial && { retryAfterMs: denial.retryAfterMs, constraint: denial.constraint };
  }

  /**
   * The grant if the request can start now, else a promise of it. Throws or rejects with a RejectedError or the
   * signal's reason.
   */
  enter(request: EntryRequest): Grant | Promise<Grant> {
    checkBounds(request);
    request.signal?.throwIfAborted();
    const roleBudget = this.#roleBudgetOf(request);
    const units = unitsOf(request, roleBudget);
    const nowUs = this.#time.monotonicUs();
    this.#peers?.retryStore(nowUs);
    const isFree = this.#isFree(request, roleBudget, units, nowUs);
    const permit = isFree ? this.#permit(request, roleBudget, units, nowUs) : this.#breakers?.check(request);
    if (permit === "taken") return this.enter(request);
    if (isFree && (permit === undefined || permit instanceof Permit)) {
      return this.#issuer.issue(request, roleBudget, units, nowUs, 0, permit);
    }
    if (roleBudget.policy.isShadow && permit === undefined) return this.#passShadow(request, roleBudget, units, nowUs);
    return this.#admit(request, roleBudget, units, nowUs, permit instanceof Permit ? undefined : permit);
  }

  /** Shadow mode: emits what enforcing would have done, and grants. Shared units are neither needed nor used. */
  #passShadow(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): Grant | Promise<Grant> {
    // Breakers have their own shadow mode and may be enforced here: their records must be fresh.
    const refreshed = this.#peers?.refreshBefore(call, undefined);
    if (refreshed !== undefined) return refreshed.then(() => this.enter(call));
    const permit = this.#breakers?.tryAllow(call);
    if (permit !== undefined && !(permit instanceof Permit)) return this.#admit(call, roleBudget, units, nowUs, permit);
    const scheduler = this.#queues.of(units);
    const boundMs = call.maxWaitMs ?? roleBudget.policy.maxDelayMs;
    const readyUs = estimatedUs(scheduler, roleBudget, units, boundMs, nowUs);
    if (!this.#hasCapacity(roleBudget, units, nowUs)) {
      const refusal = refusalOf(this.#root, roleBudget, unitsWanted(scheduler, roleBudget, units), readyUs, nowUs);
      this.#emitter.shadowed(roleBudget, readyUs > nowUs + boundMs * 1000 ? "refuse" : "wait", refusal);
    }
    return this.#issuer.issue(call, roleBudget, units, nowUs, 0, permit);
  }

  /** Applies new limits: requests already sent still count, waiting requests stay queued. */
  reload(limits: LimitPolicies): void {
    this.#limits = limits;
    this.#applyShare(this.#shareCount);
  }

  /**
   * Returns leased units and slots to the store and publishes pending breaker records. No request may enter afterwards.
   */
  async close(): Promise<void> {
    await this.#peers?.close();
  }

  /** Applies the limits, divided by `shareCount`. */
  #applyShare(shareCount: number): void {
    this.#shareCount = shareCount;
    const limits = shareOf(this.#limits, shareCount);
    const waiters = this.#queues.removeAll();
    this.#root.policy = { ...this.#root.policy, maxConcurrent: limits.maxInFlight };
    this.#roleBudgets.reload(limits);
    // In order of arrival: the new policy may put several hosts into one group, with one queue.
    for (const waiter of waiters) this.#rejoin(waiter);
    this.#run();
  }

  /** Sends nothing of this host and role for `ms` from now. Of two holds the later end counts. */
  hold(host: string, role: Role, ms: number, path?: string): void {
    this.#tuner.hold(this.#roleBudgets.forHost(host, role, path), ms);
  }

  /** Records an answer, which may change the pace of its host and role. */
  record(host: string, role: Role, isThrottled: boolean, path?: string): void {
    this.#tuner.record(this.#roleBudgets.forHost(host, role, path), isThrottled);
  }

  /** Ends the AIMD counting windows that are over. The next answer of a key ends its window too. */
  tick(): void {
    this.#tuner.tick();
  }

  /** Creates the budget of a host and role before its first request. It is never forgotten. */
  prepare(host: string, role: Role): void {
    this.#roleBudgets.pin(host, role);
  }

  /** Returns a function that removes the listener. */
  listen(listener: Listener<LimiterEvent>): () => void {
    return this.#emitter.add(listener);
  }

  get inFlight(): number {
    return this.#root.inFlight;
  }

  get waiting(): number {
    return this.#queues.waiting + (this.#breakerQueue?.waiting ?? 0);
  }

  roleBudgets(): Iterable<RoleBudget> {
    return this.#roleBudgets;
  }

  /** The state of every key. Takes time proportional to their number. */
  keySnapshots(): readonly KeySnapshot[] {
    const nowUs = this.#time.monotonicUs();
    return Array.from(this.#roleBudgets, roleBudget =>
      keySnapshotOf(roleBudget, estimateNew(this.#root, this.#queues.counted, roleBudget, nowUs), nowUs),
    );
  }

  join(waiter: Waiter): void {
    const denial = this.#breakers?.check(waiter.call);
    if (denial === undefined) this.#queues.of(waiter.units).join(waiter);
    else this.#breakerQueue?.add(waiter, denial);
    this.#run();
  }

  leave(waiter: Waiter): void {
    if (this.#breakerQueue?.has(waiter)) this.#breakerQueue.leave(waiter);
    else this.#queues.of(waiter.units).leave(waiter);
    this.#run();
  }

  retry(waiter: Waiter): void {
    if (this.#breakerQueue?.has(waiter)) {
      if (this.#breakers?.check(waiter.call) !== undefined) return;
      this.#breakerQueue.leave(waiter);
      this.#unblocked(waiter);
    }
    // The lease that it waits for may have been granted to a request of another key.
    const { call, roleBudget, units } = waiter;
    if (this.#peers?.isReady(call, roleBudget, units, this.#time.monotonicUs())) this.#queues.unpark(roleBudget);
    this.#queues.of(units).hasten(roleBudget);
    this.#run();
  }

  isRequesting(waiter: Waiter): boolean {
    return this.#peers?.isRequesting(waiter) ?? false;
  }

  requestCount({ roleBudget }: Waiter): number {
    return this.#peers?.requestCount(roleBudget) ?? 0;
  }

  readyUs(waiter: Waiter, nowUs: number): number {
    const isBlocked = this.#breakerQueue?.has(waiter);
    return isBlocked ? Number.POSITIVE_INFINITY : overdueUs(this.#queues.of(waiter.units), waiter, nowUs);
  }

  /** Refuses a request that cannot start in time (law L4), and queues the others. */
  #admit(
    call: EntryRequest,
    roleBudget: RoleBudget,
    units: number,
    nowUs: number,
    denial: Denial | undefined,
  ): Promise<Grant> {
    const boundMs = call.maxWaitMs ?? roleBudget.policy.maxDelayMs;
    const latestStartUs = nowUs + boundMs * 1000;
    if (denial !== undefined) {
      // Re-read the shared record before refusing, also when maxWaitMs is 0: another process may have closed the
      // circuit.
      const refreshed = this.#peers?.refreshBefore(call, denial);
      if (refreshed !== undefined) return refreshed.then(() => this.enter(call));
      if (!mayWaitFor(denial, call, latestStartUs, nowUs)) throw denial.error();
    }
    const scheduler = this.#queues.of(units);
    const readyUs = estimatedUs(scheduler, roleBudget, units, boundMs, nowUs);
    // Only the store knows the shared capacity, so it is asked before refusing, also when maxWaitMs is 0.
    const mustAskStore = readyUs <= nowUs && !this.#isPeerReady(call, roleBudget, units, nowUs);
    if (readyUs > latestStartUs || (call.maxWaitMs === 0 && !mustAskStore)) {
      this.#recordRefusal(roleBudget, units);
      const wanted = unitsWanted(scheduler, roleBudget, units);
      throw rejection(roleBudget, refusalOf(this.#root, roleBudget, wanted, readyUs, nowUs), boundMs, call);
    }
    return wait(this, this.#time, {
      roleBudget,
      units,
      call,
      arrivedUs: nowUs,
      estimatedUs: readyUs,
      boundMs,
      aborted: waitedMs => this.#emitter.aborted(roleBudget, units, waitedMs),
      refusal: (waiter, atUs) => this.#lateRefusal(waiter, atUs, boundMs),
    });
  }

  /** The error for a request that was admitted and did not start within its bound. */
  #lateRefusal(waiter: Waiter, nowUs: number, boundMs: number): RejectedError {
    const { roleBudget, units, call, arrivedUs } = waiter;
    const denial = this.#breakerQueue?.has(waiter) ? this.#breakers?.check(call) : undefined;
    if (denial !== undefined) return denial.error();
    const scheduler = this.#queues.of(units);
    const wanted = units + (scheduler.queueOf(roleBudget)?.unitsBefore(waiter) ?? 0);
    const readyUs = overdueUs(scheduler, waiter, nowUs);
    this.#recordRefusal(roleBudget, units, (nowUs - arrivedUs) / 1000);
    return rejection(roleBudget, refusalOf(this.#root, roleBudget, wanted, readyUs, nowUs), boundMs, call);
  }

  /** The circuit or cooldown that blocked the request has ended. */
  #unblocked(waiter: Waiter): void {
    waiter.blockedUntilUs = this.#time.monotonicUs();
    this.#rejoin(waiter);
  }

  /** Queues a request again. Its budget may be a new one, after a reload or because the old one was forgotten. */
  #rejoin(waiter: Waiter): void {
    try {
      waiter.roleBudget = this.#roleBudgetOf(waiter.call);
      if (waiter.units > 0) checkWeight(waiter.units, waiter.roleBudget);
    } catch (error) {
      // The new limits can never grant its weight, or have no such service: it would wait for ever.
      if (!(error instanceof RangeError)) throw error;
      waiter.refused(error);
      return;
    }
    const scheduler = this.#queues.of(waiter.units);
    scheduler.join(waiter);
    // Its estimate was made under the old limits, or before its circuit opened.
    scheduler.markStale(waiter.roleBudget);
  }

  /**
   * Serves the waiting requests that are ready. This is the only loop over them: every part that makes one ready calls
   * `wake`, which is this method. A grant may call listeners that call it again; then the outer loop continues with the
   * changed state.
   */
  #run(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    try {
      do {
        for (const change of this.#peers?.takeChanges() ?? []) this.#applyPeerChange(change);
        for (const waiter of this.#breakerQueue?.takeUnblocked() ?? []) this.#unblocked(waiter);
      } while (this.#serveNext());
      if (this.#breakerQueue?.waiting) this.#peers?.poll(this.#breakerQueue.blockers());
    } finally {
      this.#isRunning = false;
    }
  }

  #applyPeerChange(change: PeerChange): void {
    if (change.kind === "ready") this.#queues.unpark(change.roleBudget);
    else if (change.kind === "overruled") this.#emitter.overruled(change.roleBudget);
    else {
      const { away, shares } = change;
      this.#emitter.store(away);
      if (shares === "limits") this.#applyShare(away?.processes ?? 1);
    }
  }

  /** Serves the request that has the turn and what it needs from the peers. False if there is none. */
  #serveNext(): boolean {
    const nowUs = this.#time.monotonicUs();
    for (let waiter = this.#queues.next(nowUs); waiter !== undefined; waiter = this.#queues.next(nowUs)) {
      const scheduler = this.#queues.of(waiter.units);
      const queue = scheduler.queueOf(waiter.roleBudget);
      if (queue !== undefined && this.#peers?.ensureReady(waiter, queue, nowUs) === false) {
        scheduler.park(waiter);
        continue;
      }
      scheduler.take(waiter, nowUs);
      if (this.#serve(waiter, nowUs)) scheduler.granted(waiter);
      return true;
    }
    return false;
  }

  /** Grants a request that every budget admits. False if the breaker denies it: then it is queued again or refused. */
  #serve(waiter: Waiter, nowUs: number): boolean {
    const permit = this.#permit(waiter.call, waiter.roleBudget, waiter.units, nowUs);
    if (permit === "taken") {
      this.#rejoin(waiter);
      return false;
    }
    if (permit !== undefined && !(permit instanceof Permit)) {
      if (permit.probeReply !== undefined || mayWaitFor(permit, waiter.call, waiter.latestStartUs, nowUs))
        this.#breakerQueue?.add(waiter, permit);
      else waiter.refused(permit.error());
      return false;
    }
    const waitedMs = (nowUs - waiter.arrivedUs) / 1000;
    // Read before the grant is charged, because the charge moves the windows.
    const rateReadyUs = this.#rateReadyUs(waiter, nowUs);
    const grant = this.#issuer.issue(waiter.call, waiter.roleBudget, waiter.units, nowUs, waitedMs, permit);
    grant.slotWaitMs = Math.max(0, (nowUs - rateReadyUs) / 1000);
    waiter.granted(grant);
    return true;
  }

  /** The instant since which only slots and turns have delayed the request: no rate and no breaker. */
  #rateReadyUs({ roleBudget, units, arrivedUs, blockedUntilUs }: Waiter, nowUs: number): number {
    let rateReadyUs = Math.max(arrivedUs, blockedUntilUs);
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      rateReadyUs = Math.max(rateReadyUs, at.earliestUs(units, nowUs));
    return rateReadyUs;
  }

  /**
   * The breaker's permit for a request that every budget admits. Listeners of the breaker are called meanwhile and may
   * enter the gate and take the capacity. Then the permit is released, and "taken" makes the caller decide again.
   */
  #permit(
    call: EntryRequest,
    roleBudget: RoleBudget,
    units: number,
    nowUs: number,
  ): Permit | Denial | "taken" | undefined {
    const permit = this.#breakers?.tryAllow(call);
    const isStillFree =
      this.#hasCapacity(roleBudget, units, nowUs) && this.#peers?.hasLeases(roleBudget, units, nowUs) !== false;
    if (!(permit instanceof Permit) || isStillFree) return permit;
    permit.release();
    return "taken";
  }

  #roleBudgetOf({ service, host, role, path }: EntryRequest): RoleBudget {
    return service === undefined
      ? this.#roleBudgets.forHost(host, role, path)
      : this.#roleBudgets.forService(service, role, host);
  }

  #isReady(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#hasCapacity(roleBudget, units, nowUs) && this.#isPeerReady(call, roleBudget, units, nowUs);
  }

  /** Whether the budgets of this process admit the request now; leases of shared budgets are not looked at. */
  #hasCapacity(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#root.hasSlot && roleBudget.hasCapacity(units, nowUs);
  }

  #isPeerReady(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#peers?.isReady(call, roleBudget, units, nowUs) ?? true;
  }

  #isFree(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#isReady(call, roleBudget, units, nowUs) && !this.#queues.of(units).isContended(roleBudget);
  }

  /** `waitedMs` for a request that was queued first; undefined if it is refused on arrival. */
  #recordRefusal(roleBudget: RoleBudget, units: number, waitedMs?: number): void {
    roleBudget.refused += 1;
    this.#emitter.refused(roleBudget, units, waitedMs);
  }
}
