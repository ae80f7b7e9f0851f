import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import type { RejectedError } from "../errors.ts";
import { Budget, type RoleBudget } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { constraintOf, estimatedUs, overdueUs, type WaitEstimate } from "../limiter/estimate.ts";
import type { Grant, Refusal } from "../limiter/grant.ts";
import { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { RoleBudgets } from "../limiter/role-budgets.ts";
import { Scheduler } from "../limiter/scheduler.ts";
import { Tuner } from "../limiter/tuner.ts";
import type { Waiter } from "../limiter/wait-queue.ts";
import { checkWeight, unitsOf } from "../limiter/weight.ts";
import type { Listener } from "../listeners.ts";
import { type LimitPolicies, shareOf, UNLIMITED } from "../policy/limits.ts";
import type { Role } from "../policy/roles.ts";
import { Peers, type PeersOptions } from "../sharing/peers.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { checkBounds, mayWaitFor, rejection, unitsNeeded } from "./admission.ts";
import { BreakerQueue } from "./breaker-queue.ts";
import { GrantIssuer } from "./grant-issuer.ts";
import { type WaitDeps, wait } from "./wait.ts";

export interface GateOptions {
  readonly listener?: Listener<LimiterEvent> | undefined;
  /** With these, every grant carries a permit that was taken at the same instant. */
  readonly breakers?: BreakerRegistry | undefined;
  /** With this, every budget is shared with the other processes that use the same store. */
  readonly store?: Store | undefined;
  /** The same for breakers. @default `store` */
  readonly breakerStore?: Store | undefined;
  /** In [0, 1). @default Math.random */
  readonly random?: (() => number) | undefined;
}

/**
 * The one way in: the breaker's permit and every budget on a request's path are taken at one instant, or none is
 * (law L3). Deciding is synchronous; only who must wait gets a promise.
 */
export class Gate implements WaitDeps {
  readonly #time: Time;
  readonly #emitter = new LimiterEmitter();
  readonly #root: Budget;
  readonly #roleBudgets: RoleBudgets;
  readonly #breakers: BreakerRegistry | undefined;
  readonly #breakerQueue: BreakerQueue | undefined;
  /** Requests that the windows count, and those that they do not, never wait for one another's windows. */
  readonly #counted: Scheduler;
  readonly #uncounted: Scheduler;
  readonly #tuner: Tuner;
  readonly #issuer: GrantIssuer;
  readonly #peers: Peers | undefined;
  /** As the policy says, whether or not this process keeps to a share of them for now. */
  #limits: LimitPolicies;
  #shareCount = 1;

  constructor(limits: LimitPolicies, time: Time, options: GateOptions = {}) {
    const { listener, breakers, store, breakerStore = store, random = Math.random } = options;
    this.#time = time;
    this.#limits = limits;
    if (listener !== undefined) this.#emitter.add(listener);
    this.#breakers = breakers;
    this.#breakerQueue = breakers && new BreakerQueue(breakers, time, waiter => this.#unblocked(waiter));
    this.#roleBudgets = new RoleBudgets(
      limits,
      time,
      roleBudget => this.#isForgettable(roleBudget),
      (roleBudget, changes) => this.#emitter.learned(roleBudget, changes),
    );
    this.#root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    const issue = (waiter: Waiter, nowUs: number) => this.#serve(waiter, nowUs);
    const peers = (store ?? breakerStore) && this.#joinPeers({ store, breakerStore, breakers, time, random });
    this.#peers = peers;
    const isPeerReady = peers && ((...about: Parameters<Peers["ensureReady"]>) => peers.ensureReady(...about));
    this.#counted = new Scheduler(this.#root, time, issue, isPeerReady);
    this.#uncounted = new Scheduler(this.#root, time, issue, isPeerReady);
    this.#tuner = new Tuner(this.#roleBudgets, time, this.#emitter, this.#counted, this.#uncounted);
    this.#issuer = new GrantIssuer(this.#root, time, this.#emitter, this.#counted, this.#uncounted, this.#tuner, peers);
  }

  /** Never waits: the grant, or why not and for how long. */
  tryEnter(request: EntryRequest): Grant | Refusal {
    const roleBudget = this.#roleBudgetOf(request);
    const units = unitsOf(request, roleBudget);
    const nowUs = this.#time.monotonicUs();
    if (!this.#isFree(request, roleBudget, units, nowUs)) {
      const scheduler = this.#schedulerFor(units);
      const readyUs = estimatedUs(scheduler, roleBudget, units, 0, nowUs);
      return this.#refuse(roleBudget, units, unitsNeeded(scheduler, roleBudget, units), readyUs, nowUs);
    }
    const permit = this.#permit(request, roleBudget, units, nowUs);
    if (permit === undefined || permit instanceof Permit)
      return this.#issuer.issue(request, roleBudget, units, nowUs, 0, permit);
    if (permit === "taken") return this.tryEnter(request);
    return { isGranted: false, retryAfterMs: permit.remainingMs, constraint: permit.constraint };
  }

  /** The grant at once, or a promise of it. Throws, or rejects with, a RejectedError or the signal's reason. */
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

  /** Shadow mode: tells what would have been, and lets it go. Other processes leave it no units, and need not. */
  #passShadow(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): Grant | Promise<Grant> {
    // Breakers are enforced all the same, unless they have a shadow mode of their own: no old news.
    const refreshed = this.#peers?.refreshBefore(call, undefined);
    if (refreshed !== undefined) return refreshed.then(() => this.enter(call));
    const permit = this.#breakers?.tryAllow(call);
    if (permit !== undefined && !(permit instanceof Permit)) return this.#admit(call, roleBudget, units, nowUs, permit);
    const scheduler = this.#schedulerFor(units);
    const boundMs = call.maxWaitMs ?? roleBudget.policy.maxDelayMs;
    const readyUs = estimatedUs(scheduler, roleBudget, units, boundMs, nowUs);
    if (!this.#hasCapacity(roleBudget, units, nowUs)) {
      const refusal = this.#refusal(roleBudget, unitsNeeded(scheduler, roleBudget, units), readyUs, nowUs);
      this.#emitter.shadowed(roleBudget, readyUs > nowUs + boundMs * 1000 ? "refuse" : "wait", refusal);
    }
    return this.#issuer.issue(call, roleBudget, units, nowUs, 0, permit);
  }

  /** Goes on under other limits: what was sent still counts, and whoever waits stays in line. */
  reload(limits: LimitPolicies): void {
    this.#limits = limits;
    this.#applyLimits(this.#shareCount === 1 ? limits : shareOf(limits, this.#shareCount));
  }

  /** Gives back what other processes could use. Nobody is let in through a store any more. */
  async close(): Promise<void> {
    await this.#peers?.close();
  }

  #applyLimits(limits: LimitPolicies): void {
    const waiting = [...this.#counted.removeAll(), ...this.#uncounted.removeAll()];
    this.#root.policy = { ...this.#root.policy, maxConcurrent: limits.maxInFlight };
    this.#roleBudgets.reload(limits);
    // By arrival: hosts may have come together in a group.
    for (const waiter of waiting.sort((a, b) => a.arrivedUs - b.arrivedUs)) this.#rejoin(waiter);
  }

  /** Sends nothing of this lane before `ms` from now; the later of two holds counts. */
  hold(host: string, role: Role, ms: number, path?: string): void {
    this.#tuner.hold(this.#roleBudgets.forHost(host, role, path), ms);
  }

  /** Counts an answer, for the pace of its lane. */
  record(host: string, role: Role, isThrottled: boolean, path?: string): void {
    this.#tuner.record(this.#roleBudgets.forHost(host, role, path), isThrottled);
  }

  /** Ends the counting windows that are over. They also end by themselves, with the next answer. */
  tick(): void {
    this.#tuner.tick();
  }

  /** Makes a lane that is there before its first request, and is never forgotten. */
  prepare(host: string, role: Role): void {
    this.#roleBudgets.pin(host, role);
  }

  /** Answers with the way to stop listening. */
  listen(listener: Listener<LimiterEvent>): () => void {
    return this.#emitter.add(listener);
  }

  get inFlight(): number {
    return this.#root.inFlight;
  }

  get waiting(): number {
    return this.#counted.waiting + this.#uncounted.waiting + (this.#breakerQueue?.waiting ?? 0);
  }

  roleBudgets(): Iterable<RoleBudget> {
    return this.#roleBudgets;
  }

  waitingAt(roleBudget: RoleBudget): number {
    return (this.#counted.queueOf(roleBudget)?.length ?? 0) + (this.#uncounted.queueOf(roleBudget)?.length ?? 0);
  }

  /** Costs nothing for each of those who wait: theirs are not made anew for it. */
  estimate(roleBudget: RoleBudget, nowUs: number): WaitEstimate {
    const readyUs = estimatedUs(this.#counted, roleBudget, 1, Number.POSITIVE_INFINITY, nowUs);
    if (readyUs <= nowUs && this.#hasCapacity(roleBudget, 1, nowUs) && !this.#counted.isContended(roleBudget))
      return { readyUs: nowUs, constraint: undefined };
    return {
      readyUs,
      constraint: constraintOf(this.#root, roleBudget, unitsNeeded(this.#counted, roleBudget, 1), readyUs, nowUs),
    };
  }

  join(waiter: Waiter): void {
    const denial = this.#breakers?.check(waiter.call);
    if (denial === undefined) this.#schedulerFor(waiter.units).join(waiter);
    else this.#queueForBreaker(waiter, denial);
  }

  leave(waiter: Waiter): void {
    if (this.#breakerQueue?.has(waiter)) this.#breakerQueue.leave(waiter);
    else this.#schedulerFor(waiter.units).leave(waiter);
  }

  retry(waiter: Waiter): void {
    if (this.#breakerQueue?.has(waiter)) {
      if (this.#breakers?.check(waiter.call) !== undefined) return;
      this.#breakerQueue.leave(waiter);
      this.#unblocked(waiter);
    }
    const scheduler = this.#schedulerFor(waiter.units);
    // What it still asks for may have come by another lane's question.
    const { call, roleBudget, units } = waiter;
    if (this.#peers?.isReady(call, roleBudget, units, this.#time.monotonicUs())) scheduler.slotFreed(roleBudget);
    scheduler.retry(roleBudget);
  }

  isRequesting(waiter: Waiter): boolean {
    return this.#peers?.isRequesting(waiter) ?? false;
  }

  requestCount({ roleBudget }: Waiter): number {
    return this.#peers?.requestCount(roleBudget) ?? 0;
  }

  readyUs(waiter: Waiter, nowUs: number): number {
    const isBlocked = this.#breakerQueue?.has(waiter);
    return isBlocked ? Number.POSITIVE_INFINITY : overdueUs(this.#schedulerFor(waiter.units), waiter, nowUs);
  }

  /** Refuses what cannot be served in time (law L4), and lets the rest wait. */
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
      // Others may know better, and that takes a moment even for who may not wait.
      const refreshed = this.#peers?.refreshBefore(call, denial);
      if (refreshed !== undefined) return refreshed.then(() => this.enter(call));
      if (!mayWaitFor(denial, call, latestStartUs, nowUs)) throw denial.error();
    }
    const scheduler = this.#schedulerFor(units);
    const readyUs = estimatedUs(scheduler, roleBudget, units, boundMs, nowUs);
    // Whether other processes leave room only the store can say, and that takes a moment even for who may not wait.
    const mustAskStore = readyUs <= nowUs && !this.#isPeerReady(call, roleBudget, units, nowUs);
    if (readyUs > latestStartUs || (call.maxWaitMs === 0 && !mustAskStore)) {
      throw rejection(
        roleBudget,
        this.#refuse(roleBudget, units, unitsNeeded(scheduler, roleBudget, units), readyUs, nowUs),
        boundMs,
        call,
      );
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

  /** For somebody who was admitted and whose own bound is over all the same. */
  #lateRefusal(waiter: Waiter, nowUs: number, boundMs: number): RejectedError {
    const { roleBudget, units, call, arrivedUs } = waiter;
    const denial = this.#breakerQueue?.has(waiter) ? this.#breakers?.check(call) : undefined;
    if (denial !== undefined) return denial.error();
    const scheduler = this.#schedulerFor(units);
    const wanted = units + (scheduler.queueOf(roleBudget)?.unitsBefore(waiter) ?? 0);
    const readyUs = overdueUs(scheduler, waiter, nowUs);
    return rejection(
      roleBudget,
      this.#refuse(roleBudget, units, wanted, readyUs, nowUs, (nowUs - arrivedUs) / 1000),
      boundMs,
      call,
    );
  }

  /** Its host may be called again. */
  #unblocked(waiter: Waiter): void {
    waiter.blockedUntilUs = this.#time.monotonicUs();
    this.#rejoin(waiter);
  }

  /** Back into line: the lane may be another one by now, after a reload, or because the old one was forgotten. */
  #rejoin(waiter: Waiter): void {
    try {
      waiter.roleBudget = this.#roleBudgetOf(waiter.call);
      if (waiter.units > 0) checkWeight(waiter.units, waiter.roleBudget);
    } catch (error) {
      // New limits that could never grant it, or have no such service: to wait on would be for ever.
      if (!(error instanceof RangeError)) throw error;
      waiter.refused(error);
      return;
    }
    const scheduler = this.#schedulerFor(waiter.units);
    scheduler.join(waiter);
    // What was foretold to it was under other limits, or before its host was cut off.
    scheduler.markStale(waiter.roleBudget);
  }

  /** Somebody's turn has come. False when the breaker is against it: then it waits elsewhere, or not at all. */
  #serve(waiter: Waiter, nowUs: number): boolean {
    const permit = this.#permit(waiter.call, waiter.roleBudget, waiter.units, nowUs);
    if (permit === "taken") {
      this.#rejoin(waiter);
      return false;
    }
    if (permit !== undefined && !(permit instanceof Permit)) {
      if (permit.probeReply !== undefined || mayWaitFor(permit, waiter.call, waiter.latestStartUs, nowUs))
        this.#queueForBreaker(waiter, permit);
      else waiter.refused(permit.error());
      return false;
    }
    const waitedMs = (nowUs - waiter.arrivedUs) / 1000;
    // Looked up first: taking it changes what the windows say.
    const rateReadyUs = this.#rateReadyUs(waiter, nowUs);
    const grant = this.#issuer.issue(waiter.call, waiter.roleBudget, waiter.units, nowUs, waitedMs, permit);
    grant.slotWaitMs = Math.max(0, (nowUs - rateReadyUs) / 1000);
    waiter.granted(grant);
    return true;
  }

  /** Since when neither rates nor a breaker have held this waiter back. */
  #rateReadyUs({ roleBudget, units, arrivedUs, blockedUntilUs }: Waiter, nowUs: number): number {
    let rateReadyUs = Math.max(arrivedUs, blockedUntilUs);
    for (let at: Budget | undefined = roleBudget; at; at = at.above)
      rateReadyUs = Math.max(rateReadyUs, at.earliestUs(units, nowUs));
    return rateReadyUs;
  }

  /**
   * The breaker's permit for a request that was found free. Whoever listens to the breakers is told meanwhile and may
   * come in here and take what was free: then the permit goes back, and the request is judged once more.
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

  /** As far as this process is concerned. */
  #hasCapacity(roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    if (!this.#root.hasSlot) return false;
    for (let at: Budget | undefined = roleBudget; at; at = at.above) if (at.readyUs(units, nowUs) > nowUs) return false;
    return true;
  }

  #isPeerReady(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#peers?.isReady(call, roleBudget, units, nowUs) ?? true;
  }

  #queueForBreaker(waiter: Waiter, denial: Denial): void {
    this.#breakerQueue?.add(waiter, denial);
    this.#peers?.pollBlockers();
  }

  #joinPeers(options: PeersOptions): Peers {
    return new Peers(options, {
      heard: roleBudget => {
        for (const scheduler of [this.#counted, this.#uncounted]) {
          scheduler.slotFreed(roleBudget);
          scheduler.serveReady();
        }
      },
      isWaitedFor: roleBudget => this.waitingAt(roleBudget) > 0,
      limitsChanged: away => {
        this.#shareCount = away?.processes ?? 1;
        this.#emitter.store(away);
        this.#applyLimits(away === undefined ? this.#limits : shareOf(this.#limits, away.processes));
      },
      breakersChanged: away => this.#emitter.store(away),
      overruled: roleBudget => this.#emitter.overruled(roleBudget),
      blockers: () => this.#breakerQueue?.blockers() ?? [],
    });
  }

  #isFree(call: EntryRequest, roleBudget: RoleBudget, units: number, nowUs: number): boolean {
    return this.#isReady(call, roleBudget, units, nowUs) && !this.#schedulerFor(units).isContended(roleBudget);
  }

  #schedulerFor(units: number): Scheduler {
    return units === 0 ? this.#uncounted : this.#counted;
  }

  #refuse(
    roleBudget: RoleBudget,
    units: number,
    wanted: number,
    readyUs: number,
    nowUs: number,
    waitedMs?: number,
  ): Refusal {
    roleBudget.refused += 1;
    this.#emitter.refused(roleBudget, units, waitedMs);
    return this.#refusal(roleBudget, wanted, readyUs, nowUs);
  }

  #refusal(roleBudget: RoleBudget, wanted: number, readyUs: number, nowUs: number): Refusal {
    const constraint = constraintOf(this.#root, roleBudget, wanted, readyUs, nowUs);
    const isUnknown = constraint.kind === "concurrency";
    return {
      isGranted: false,
      retryAfterMs: isUnknown ? undefined : Math.max(1, Math.ceil((readyUs - nowUs) / 1000)),
      constraint,
    };
  }

  #isForgettable(roleBudget: RoleBudget): boolean {
    if (roleBudget.inFlight > 0) return false;
    const nowUs = this.#time.monotonicUs();
    return (
      roleBudget.holdUntilUs <= nowUs &&
      (roleBudget.pace === undefined || roleBudget.pace.isNeutral(nowUs)) &&
      (roleBudget.learned === undefined || roleBudget.learned.isLapsed(nowUs)) &&
      roleBudget.log.isExpired(roleBudget.windows, roleBudget.spacingUs, nowUs) &&
      (roleBudget.unitLease === undefined ||
        (roleBudget.unitLease.isIdle && roleBudget.unitLease.notBeforeUs <= nowUs)) &&
      this.waitingAt(roleBudget) === 0
    );
  }
}
