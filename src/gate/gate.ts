import type { Breakers, HeldOwner } from "../breaker/breakers.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import { type Constraint, decidedByText, explainRejection, HubClosedError, RejectedError } from "../errors.ts";
import type { Charge } from "../limiter/charge.ts";
import { type EntryRequest, leftOfBoundMs } from "../limiter/entry-request.ts";
import type { Grant } from "../limiter/grant.ts";
import { NO_WAIT } from "../limiter/granted-wait.ts";
import { type KeySnapshot, keySnapshotOf } from "../limiter/key-snapshot.ts";
import { LimiterEmitter } from "../limiter/limiter-emitter.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { Queues } from "../limiter/queues.ts";
import type { Refusal } from "../limiter/refusal.ts";
import type { RoleBudget } from "../limiter/role-budget.ts";
import { RoleBudgets } from "../limiter/role-budgets.ts";
import { Tuner } from "../limiter/tuner.ts";
import type { WaiterDetails } from "../limiter/waiter.ts";
import type { Listener } from "../listeners.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { isServiceName } from "../policy/service-name.ts";
import { Peers } from "../sharing/peers.ts";
import type { AwayPolicy } from "../sharing/store-outage.ts";
import type { BreakerRecordName } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { Admission, checkBounds, mayWaitFor } from "./admission.ts";
import { BreakerQueue, keyOf } from "./breaker-queue.ts";
import type { BreakerRegistry } from "./breaker-registry.ts";
import { GrantIssuer } from "./grant-issuer.ts";
import { breakersOf } from "./registry-breakers.ts";
import { type ExplainConstraint, WaitingRequests } from "./waiting-requests.ts";

export interface GateOptions {
  readonly listener?: Listener<LimiterEvent> | undefined;
  /** If given, every grant carries a permit that was taken at the same instant. */
  readonly breakers?: BreakerRegistry | undefined;
  /** If given, every budget is shared with the other processes that use the same store. */
  readonly store?: Store | undefined;
  /** The store that shares the breakers. @default `store` */
  readonly breakerStore?: Store | undefined;
  /** What calls do while `store` does not answer. @default they use this process's share */
  readonly awayPolicy?: (() => AwayPolicy) | undefined;
  /** Called with one sentence when the store goes away, and when it is back. @default none */
  readonly warn?: ((message: string) => void) | undefined;
  /** The setting behind a refusal or a wait. @default refusals and waits have no `decidedBy` */
  readonly explain?: ExplainConstraint | undefined;
  /**
   * Called when calls may start before the time that their refusals have named: an operator, another process or a
   * success has changed a limit, a circuit or a cooldown, an operator's order has ended, or the store is back.
   * @default none
   */
  readonly onLimitsEased?: (() => void) | undefined;
  /** Source of randomness in [0, 1), for the retry intervals of a store that is away. @default Math.random */
  readonly random?: (() => number) | undefined;
  /** Keys of each role that are kept although they are idle, so that the counts in snapshots go on. @default 0 */
  readonly keptKeys?: number | undefined;
}

/** A timer of Node may fire up to 1 ms early or late. */
const RETRY_MARGIN_MS = 2;

/**
 * Joins limiter, breakers and peers: the breaker's permit and every budget of a request are taken at one instant, or
 * none is (law L3). The decision is synchronous; only a request that has to wait gets a promise.
 */
export class Gate {
  readonly #time: Time;
  readonly #explain: ExplainConstraint | undefined;
  readonly #emitter = new LimiterEmitter();
  readonly #roleBudgets: RoleBudgets;
  readonly #breakers: Breakers | undefined;
  readonly #peers: Peers | undefined;
  readonly #admission: Admission;
  readonly #tuner: Tuner;
  readonly #issuer: GrantIssuer;
  readonly #waiting: WaitingRequests;
  #isClosed = false;

  constructor(limits: LimitPolicies, time: Time, options: GateOptions = {}) {
    const { listener, breakers: registry, store, breakerStore = store, random = Math.random, keptKeys, warn } = options;
    const { awayPolicy = () => ({ mode: "share", fleetSize: undefined }) } = options;
    const emitter = this.#emitter;
    if (listener !== undefined) emitter.add(listener);
    const wake = () => this.#waiting.serve();
    const roleBudgets = new RoleBudgets(limits, time, emitter, keptKeys);
    roleBudgets.isShared = store !== undefined;
    const { root } = roleBudgets;
    const queues = new Queues(root, time, wake);
    const breakers = registry && breakersOf(registry);
    const breakerQueue = breakers && new BreakerQueue(time, wake);
    breakers?.watch(wake);
    const { explain } = options;
    if (breakers !== undefined && explain !== undefined)
      breakers.explain = (constraint, { role = "metadata", ...request }) =>
        decidedByText(explain(constraint, { ...request, role }, {}));
    const nextBeside = (roleBudget: RoleBudget) => queues.counted.nextBeside(roleBudget);
    const peersOptions = { store, breakerStore, breakers, time, random, awayPolicy, nextBeside };
    const peers = (store ?? breakerStore) && new Peers(peersOptions, wake);
    const admission = new Admission(root, queues, emitter, breakers, peers);
    const tuner = new Tuner(roleBudgets, time, emitter, queues, wake, () => store?.processes ?? 1);
    const issuer = new GrantIssuer(roleBudgets, time, emitter, queues, tuner, peers, wake);
    this.#time = time;
    this.#explain = explain;
    this.#roleBudgets = roleBudgets;
    this.#breakers = breakers;
    this.#peers = peers;
    this.#admission = admission;
    this.#tuner = tuner;
    this.#issuer = issuer;
    const shared = { time, roleBudgets, queues, peers, emitter, warn };
    const parts = { ...shared, breakers, breakerQueue, admission, issuer };
    const explainTo = (error: RejectedError, request: EntryRequest) => this.#explainTo(error, request);
    this.#waiting = new WaitingRequests({ ...parts, explainTo, explain, onLimitsEased: options.onLimitsEased });
  }

  /**
   * A grant, or undefined if the request cannot start now. Never waits; `check` says when and why. If only the
   * store can tell, it is asked in the background, and the next call can use its reply.
   */
  tryEnter(request: EntryRequest): Grant | undefined {
    this.#checkOpen();
    const roleBudget = this.#roleBudgets.of(request);
    const charge = roleBudget.chargeOf(request);
    const nowUs = this.#time.monotonicUs();
    if (!this.#admission.isFree(request, roleBudget, charge, nowUs)) {
      if (roleBudget.policy.isShadow) return this.#tryShadow(request, roleBudget, charge, nowUs);
      this.#admission.recordRefusal(roleBudget, charge);
      if (this.#peers !== undefined && this.#admission.isFreeHere(roleBudget, charge, nowUs))
        this.#peers.requestAhead(request, roleBudget, charge, nowUs);
      return undefined;
    }
    const permit = this.#admission.permit(request, roleBudget, charge, nowUs);
    if (permit === undefined || permit instanceof Permit)
      return this.#issueAtOnce(request, roleBudget, charge, nowUs, permit);
    return permit === "taken" ? this.tryEnter(request) : undefined;
  }

  /**
   * Why and for how long the request would be refused now; undefined if it would be granted, as far as the last replies
   * of the store say. Takes and counts nothing.
   */
  check(request: EntryRequest): Refusal | undefined {
    const roleBudget = this.#roleBudgets.of(request);
    const charge = roleBudget.chargeOf(request);
    const nowUs = this.#time.monotonicUs();
    const refusal = roleBudget.policy.isShadow ? undefined : this.#admission.refusal(roleBudget, charge, nowUs);
    const denial = this.#breakers?.check(request);
    // What ends last decides. If that is a slot, its end is not known.
    if (denial === undefined || (refusal?.retryAfterMs ?? 0) > denial.retryAfterMs) return refusal;
    return { retryAfterMs: denial.retryAfterMs, constraint: denial.constraint };
  }

  /**
   * The grant if the request can start now, else a promise of it. Throws or rejects with a RejectedError, a
   * HubClosedError or the signal's reason.
   * @param nowUs for a caller that has just read the clock. @default now
   */
  enter(request: EntryRequest, nowUs = this.#time.monotonicUs()): Grant | Promise<Grant> {
    try {
      return this.#enter(request, nowUs);
    } catch (error) {
      if (error instanceof RejectedError) this.#explainTo(error, request);
      throw error;
    }
  }

  /**
   * Enters again after a reply of the store. The wait for the reply counts against the call's own bound, as a wait for a
   * lease does, but not against the policy's bound.
   */
  #enterAgain(call: EntryRequest, arrivedUs: number): Grant | Promise<Grant> {
    if (call.caller?.isOver) throw new DOMException("the caller has ended the request", "AbortError");
    const replyMs = (this.#time.monotonicUs() - arrivedUs) / 1000;
    const { waitedMs = 0, slotWaitMs = 0, breakerWaitMs = 0 } = call.earlier ?? {};
    const earlier = { waitedMs: waitedMs + replyMs, slotWaitMs: slotWaitMs + replyMs, breakerWaitMs };
    return this.enter({ ...call, earlier });
  }

  #explainTo(error: RejectedError, request: EntryRequest): void {
    if (this.#explain === undefined || error.decidedBy !== undefined) return;
    explainRejection(error, this.#explain(error.constraint, request, this.#roleBudgets.of(request)));
  }

  #enter(request: EntryRequest, nowUs: number): Grant | Promise<Grant> {
    this.#checkOpen();
    checkBounds(request);
    request.signal?.throwIfAborted();
    const roleBudget = this.#roleBudgets.of(request);
    const charge = roleBudget.chargeOf(request);
    this.#peers?.retryStore(nowUs);
    const away = this.#peers?.away;
    if (away?.mode === "refuse" && !roleBudget.policy.isShadow && !this.#peers?.hasLeases(roleBudget, charge, nowUs))
      throw this.#admission.rejectWithoutStore(roleBudget, charge, away);
    const isFree = this.#admission.isFree(request, roleBudget, charge, nowUs);
    const permit = isFree ? this.#admission.permit(request, roleBudget, charge, nowUs) : this.#breakers?.check(request);
    if (permit === "taken") return this.enter(request);
    if (isFree && (permit === undefined || permit instanceof Permit))
      return this.#issueAtOnce(request, roleBudget, charge, nowUs, permit);
    if (roleBudget.policy.isShadow && permit === undefined) return this.#passShadow(request, roleBudget, charge, nowUs);
    return this.#admit(request, roleBudget, charge, nowUs, permit instanceof Permit ? undefined : permit);
  }

  /** Shadow mode: emits what enforcing would have done, and grants. Shared units are neither needed nor used. */
  #passShadow(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, nowUs: number): Grant | Promise<Grant> {
    // Breakers have their own shadow mode and may be enforced here: their records must be fresh.
    const refreshed = this.#peers?.refreshBefore(call, undefined);
    if (refreshed !== undefined) return refreshed.then(() => this.#enterAgain(call, nowUs));
    const permit = this.#breakers?.tryAllow(call, this.#peers?.probes);
    if (permit !== undefined && !(permit instanceof Permit))
      return this.#admit(call, roleBudget, charge, nowUs, permit);
    return this.#issueShadow(call, roleBudget, charge, nowUs, permit);
  }

  /** The same without waiting: undefined if the breaker denies the request. */
  #tryShadow(call: EntryRequest, roleBudget: RoleBudget, charge: Charge, nowUs: number): Grant | undefined {
    const permit = this.#breakers?.tryAllow(call, this.#peers?.probes);
    if (permit !== undefined && !(permit instanceof Permit)) return undefined;
    return this.#issueShadow({ ...call, maxWaitMs: 0 }, roleBudget, charge, nowUs, permit);
  }

  #issueShadow(
    call: EntryRequest,
    roleBudget: RoleBudget,
    charge: Charge,
    nowUs: number,
    permit: Permit | undefined,
  ): Grant {
    const boundMs = leftOfBoundMs(call, roleBudget.policy.maxDelayMs);
    const explain = this.#explain;
    const explainLimit = explain && ((limit: Constraint) => explain(limit, call, roleBudget));
    this.#admission.reportShadow(roleBudget, charge, boundMs, call.maxWaitMs !== undefined, nowUs, explainLimit);
    return this.#issueAtOnce(call, roleBudget, charge, nowUs, permit);
  }

  /** Grants a request that did not wait. Requests of other roles that wait may start later because of it. */
  #issueAtOnce(
    call: EntryRequest,
    roleBudget: RoleBudget,
    charge: Charge,
    nowUs: number,
    permit: Permit | undefined,
  ): Grant {
    const grant = this.#issuer.issue(call, roleBudget, charge, nowUs, NO_WAIT, permit);
    if (roleBudget.above !== undefined && charge.units > 0) this.#waiting.capacityTaken(roleBudget);
    return grant;
  }

  /** Refuses a request that cannot start in time (law L4), and queues the others. */
  #admit(
    call: EntryRequest,
    roleBudget: RoleBudget,
    charge: Charge,
    nowUs: number,
    denial: Denial | undefined,
  ): Promise<Grant> {
    const boundMs = call.maxWaitMs ?? roleBudget.policy.maxDelayMs;
    const leftMs = leftOfBoundMs(call, boundMs);
    const latestStartUs = nowUs + leftMs * 1000;
    const details = { roleBudget, charge, call, arrivedUs: nowUs, boundMs };
    if (denial !== undefined) {
      // Read the shared record again before refusing, even when maxWaitMs is 0: another process may have closed the
      // circuit.
      const refreshed = this.#peers?.refreshBefore(call, denial);
      if (refreshed !== undefined) return refreshed.then(() => this.#enterAgain(call, nowUs));
      if (!mayWaitFor(denial, call, latestStartUs, nowUs)) throw this.#rejectDenied(denial, details, nowUs);
      // Breakers have their own shadow mode. The request waits for the breaker, and then no limit delays it.
      if (roleBudget.policy.isShadow) return this.#waiting.add(details);
    }
    const readyUs =
      boundMs === Number.POSITIVE_INFINITY
        ? roleBudget.freeUs(charge, nowUs)
        : this.#admission.earliestStartUs(roleBudget, charge, nowUs);
    // Only the store knows the shared capacity, so it is asked before refusing, even when maxWaitMs is 0.
    const mustAskStore = readyUs <= nowUs && this.#peers?.isReady(call, roleBudget, charge, nowUs) === false;
    const mayNotWait = call.maxWaitMs !== undefined && leftMs === 0;
    if (readyUs > latestStartUs || (mayNotWait && !mustAskStore))
      throw this.#admission.reject(call, roleBudget, charge, boundMs, nowUs);
    return this.#waiting.add(details);
  }

  /** An operator's hold is a rate limit. Of several limits, the one that ends last decides (law L4). */
  #rejectDenied(denial: Denial, details: WaiterDetails, nowUs: number): RejectedError {
    const { call, roleBudget, charge, boundMs } = details;
    const isLimitLater =
      denial.isHold &&
      !roleBudget.policy.isShadow &&
      this.#admission.earliestStartUs(roleBudget, charge, nowUs) > denial.untilUs;
    if (isLimitLater) return this.#admission.reject(call, roleBudget, charge, boundMs, nowUs);
    return this.#admission.rejectDenied(denial, details);
  }

  /** Applies new limits: requests already sent still count, waiting requests stay queued. */
  reload(limits: LimitPolicies): void {
    this.#waiting.reload(limits);
  }

  /** Reads shared breaker records and applies them. Resolves to false if the store could not be reached. */
  async refreshRecords(names: readonly BreakerRecordName[]): Promise<boolean> {
    return (await this.#peers?.refreshRecords(names)) ?? true;
  }

  /**
   * Returns leased units and slots to the store and publishes pending breaker records. Without a store that shares
   * limits, requests go on. With one, waiting and later requests reject with a HubClosedError: no process would count
   * them.
   */
  async close(): Promise<void> {
    if (this.#roleBudgets.isShared && !this.#isClosed) {
      this.#isClosed = true;
      this.#waiting.close(new HubClosedError("the limiter was closed while the request waited"));
    }
    await this.#peers?.close();
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new HubClosedError("the limiter is closed: it accepts no more requests");
  }

  /** These processes that share the store have ended: their leases end now, and not at their time. */
  processesEnded(processIds: readonly string[]): void {
    this.#peers?.processesEnded(processIds, this.#roleBudgets);
    this.#waiting.serve();
  }

  /**
   * When a call that was refused is worth trying again before the estimated time: another process has a turn before it,
   * and may have left it. In milliseconds; undefined if no other process is before it.
   * @param key `host` of the refusal: a host or a service
   */
  retryMs(key: string, role: Role): number | undefined {
    const roleBudget = this.#roleBudgets.known(key, role);
    const nowUs = this.#time.monotonicUs();
    const askUs = roleBudget?.unitLease?.askUs ?? 0;
    if (roleBudget === undefined || askUs <= nowUs || roleBudget.storeReadyUs(1) <= askUs) return undefined;
    // The timer of the lease must fire first.
    return Math.ceil((askUs - nowUs) / 1000) + RETRY_MARGIN_MS;
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

  /** Creates the budget of a host and role before its first request. It is never evicted. */
  prepare(host: string, role: Role): void {
    this.#roleBudgets.pin(host, role);
  }

  /** Returns a function that removes the listener. */
  listen(listener: Listener<LimiterEvent>): () => void {
    return this.#emitter.add(listener);
  }

  get inFlight(): number {
    return this.#roleBudgets.root.inFlight;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  roleBudgets(): Iterable<RoleBudget> {
    return this.#roleBudgets;
  }

  /**
   * The state of every key. The requests that wait below one total are estimated once for all its keys, and once more for
   * each key that waits for a slot of its own.
   */
  keySnapshots(): readonly KeySnapshot[] {
    const nowUs = this.#time.monotonicUs();
    const blocked = this.#waiting.blockedByKey();
    const known = new Map(Array.from(this.#roleBudgets, roleBudget => [keyOf(roleBudget), roleBudget]));
    // A key with blocked requests is listed, even if its budget was evicted.
    for (const [key, { roleBudget }] of blocked) if (!known.has(key)) known.set(key, roleBudget);
    const held = new Map(ROLES.map(role => [role, this.#breakers?.holds(role) ?? []]));
    const estimates = this.#admission.estimatesUnlessFree([...known.values()], nowUs);
    return Array.from(known, ([key, roleBudget]) => {
      const estimate = estimates.get(roleBudget);
      const denial = this.#breakers?.denialOfKey(roleBudget.name, roleBudget.role);
      const isBlocked = denial !== undefined && nowUs + denial.retryAfterMs * 1000 > (estimate?.readyUs ?? nowUs);
      const latest = isBlocked
        ? { readyUs: nowUs + denial.retryAfterMs * 1000, constraint: denial.constraint }
        : estimate;
      return keySnapshotOf(roleBudget, latest, nowUs, blocked.get(key)?.waiting, this.#holdOf(roleBudget, held));
    });
  }

  /**
   * The hold to show for a key: of the key itself, of its service, or of a host whose requests the key of a service
   * counts.
   */
  #holdOf({ name, role }: RoleBudget, held: ReadonlyMap<Role, readonly HeldOwner[]>): HeldOwner | undefined {
    const ofRole = held.get(role) ?? [];
    if (ofRole.length === 0) return undefined;
    const names = this.#breakers?.table.ownerNamesOfKey(name).names ?? [];
    const matching = ofRole.filter(({ target }) => names.includes(target));
    const [longest] = matching.toSorted((a, b) => b.remainingMs - a.remainingMs);
    if (longest !== undefined || !isServiceName(name)) return longest;
    return ofRole.find(
      ({ target }) => !isServiceName(target) && this.#roleBudgets.forHost(commonName(target), role).name === name,
    );
  }
}
