import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { Denial } from "../breaker/denial.ts";
import { Permit } from "../breaker/permit.ts";
import type { RejectedError } from "../errors.ts";
import { Budget, type Lane } from "../limiter/budget.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { constraintOf, type Forecast, overdueUs, plannedUs } from "../limiter/estimate.ts";
import type { Grant, Refusal } from "../limiter/grant.ts";
import { GateTeller } from "../limiter/limiter-emitter.ts";
import type { GateEvent } from "../limiter/limiter-events.ts";
import { Lanes } from "../limiter/role-budgets.ts";
import { Turnstile } from "../limiter/scheduler.ts";
import { Tuner } from "../limiter/tuner.ts";
import type { Waiter } from "../limiter/wait-queue.ts";
import { checkWeight, unitsOf } from "../limiter/weight.ts";
import type { Listener } from "../listeners.ts";
import { type Limits, shareOf, UNLIMITED } from "../policy/limits.ts";
import type { Role } from "../policy/roles.ts";
import { OtherProcesses, type OtherProcessesOptions } from "../sharing/peers.ts";
import type { Store } from "../stores/store.ts";
import type { Time } from "../time/time.ts";
import { checkBounds, mayWaitFor, rejection, wantedBy } from "./admission.ts";
import { Cooling } from "./breaker-queue.ts";
import { Till } from "./grant-issuer.ts";
import { type WaitingRoom, wait } from "./wait.ts";

export interface GateOptions {
  readonly listener?: Listener<GateEvent> | undefined;
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
export class Gate implements WaitingRoom {
  readonly #time: Time;
  readonly #teller = new GateTeller();
  readonly #root: Budget;
  readonly #lanes: Lanes;
  readonly #breakers: BreakerRegistry | undefined;
  readonly #cooling: Cooling | undefined;
  /** Requests that the windows count, and those that they do not, never wait for one another's windows. */
  readonly #counted: Turnstile;
  readonly #uncounted: Turnstile;
  readonly #tuner: Tuner;
  readonly #till: Till;
  readonly #others: OtherProcesses | undefined;
  /** As the policy says, whether or not this process keeps to a share of them for now. */
  #limits: Limits;
  #share = 1;

  constructor(limits: Limits, time: Time, options: GateOptions = {}) {
    const { listener, breakers, store, breakerStore = store, random = Math.random } = options;
    this.#time = time;
    this.#limits = limits;
    if (listener !== undefined) this.#teller.add(listener);
    this.#breakers = breakers;
    this.#cooling = breakers && new Cooling(breakers, time, waiter => this.#warmedUp(waiter));
    this.#lanes = new Lanes(
      limits,
      time,
      lane => this.#isForgettable(lane),
      (lane, changes) => this.#teller.learned(lane, changes),
    );
    this.#root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    const take = (waiter: Waiter, nowUs: number) => this.#serve(waiter, nowUs);
    const others = (store ?? breakerStore) && this.#meet({ store, breakerStore, breakers, time, random });
    this.#others = others;
    const isCovered = others && ((...about: Parameters<OtherProcesses["cover"]>) => others.cover(...about));
    this.#counted = new Turnstile(this.#root, time, take, isCovered);
    this.#uncounted = new Turnstile(this.#root, time, take, isCovered);
    this.#tuner = new Tuner(this.#lanes, time, this.#teller, this.#counted, this.#uncounted);
    this.#till = new Till(this.#root, time, this.#teller, this.#counted, this.#uncounted, this.#tuner, others);
  }

  /** Never waits: the grant, or why not and for how long. */
  tryEnter(request: EntryRequest): Grant | Refusal {
    const lane = this.#laneOf(request);
    const units = unitsOf(request, lane);
    const nowUs = this.#time.monotonicUs();
    if (!this.#isFree(request, lane, units, nowUs)) {
      const turnstile = this.#turnstileFor(units);
      const readyUs = plannedUs(turnstile, lane, units, 0, nowUs);
      return this.#refuse(lane, units, wantedBy(turnstile, lane, units), readyUs, nowUs);
    }
    const permit = this.#permit(request, lane, units, nowUs);
    if (permit === undefined || permit instanceof Permit)
      return this.#till.take(request, lane, units, nowUs, 0, permit);
    if (permit === "taken") return this.tryEnter(request);
    return { isGranted: false, retryAfterMs: permit.remainingMs, constraint: permit.constraint };
  }

  /** The grant at once, or a promise of it. Throws, or rejects with, a RejectedError or the signal's reason. */
  enter(request: EntryRequest): Grant | Promise<Grant> {
    checkBounds(request);
    request.signal?.throwIfAborted();
    const lane = this.#laneOf(request);
    const units = unitsOf(request, lane);
    const nowUs = this.#time.monotonicUs();
    this.#others?.revisit(nowUs);
    const isFree = this.#isFree(request, lane, units, nowUs);
    const permit = isFree ? this.#permit(request, lane, units, nowUs) : this.#breakers?.check(request);
    if (permit === "taken") return this.enter(request);
    if (isFree && (permit === undefined || permit instanceof Permit)) {
      return this.#till.take(request, lane, units, nowUs, 0, permit);
    }
    if (lane.policy.isShadow && permit === undefined) return this.#pass(request, lane, units, nowUs);
    return this.#admit(request, lane, units, nowUs, permit instanceof Permit ? undefined : permit);
  }

  /** Shadow mode: tells what would have been, and lets it go. Other processes leave it no units, and need not. */
  #pass(call: EntryRequest, lane: Lane, units: number, nowUs: number): Grant | Promise<Grant> {
    // Breakers are enforced all the same, unless they have a shadow mode of their own: no old news.
    const toHear = this.#others?.newsBefore(call, undefined);
    if (toHear !== undefined) return toHear.then(() => this.enter(call));
    const permit = this.#breakers?.tryAllow(call);
    if (permit !== undefined && !(permit instanceof Permit)) return this.#admit(call, lane, units, nowUs, permit);
    const turnstile = this.#turnstileFor(units);
    const boundMs = call.maxWaitMs ?? lane.policy.maxDelayMs;
    const readyUs = plannedUs(turnstile, lane, units, boundMs, nowUs);
    if (!this.#hasRoom(lane, units, nowUs)) {
      const refusal = this.#refusal(lane, wantedBy(turnstile, lane, units), readyUs, nowUs);
      this.#teller.shadowed(lane, readyUs > nowUs + boundMs * 1000 ? "refuse" : "wait", refusal);
    }
    return this.#till.take(call, lane, units, nowUs, 0, permit);
  }

  /** Goes on under other limits: what was sent still counts, and whoever waits stays in line. */
  follow(limits: Limits): void {
    this.#limits = limits;
    this.#keepTo(this.#share === 1 ? limits : shareOf(limits, this.#share));
  }

  /** Gives back what other processes could use. Nobody is let in through a store any more. */
  async close(): Promise<void> {
    await this.#others?.close();
  }

  #keepTo(limits: Limits): void {
    const waiting = [...this.#counted.evacuate(), ...this.#uncounted.evacuate()];
    this.#root.policy = { ...this.#root.policy, maxConcurrent: limits.maxInFlight };
    this.#lanes.follow(limits);
    // By arrival: hosts may have come together in a group.
    for (const waiter of waiting.sort((a, b) => a.arrivedUs - b.arrivedUs)) this.#rejoin(waiter);
  }

  /** Sends nothing of this lane before `ms` from now; the later of two holds counts. */
  hold(host: string, role: Role, ms: number, path?: string): void {
    this.#tuner.hold(this.#lanes.at(host, role, path), ms);
  }

  /** Counts an answer, for the pace of its lane. */
  record(host: string, role: Role, isThrottled: boolean, path?: string): void {
    this.#tuner.record(this.#lanes.at(host, role, path), isThrottled);
  }

  /** Ends the counting windows that are over. They also end by themselves, with the next answer. */
  tick(): void {
    this.#tuner.tick();
  }

  /** Makes a lane that is there before its first request, and is never forgotten. */
  prepare(host: string, role: Role): void {
    this.#lanes.keep(host, role);
  }

  /** Answers with the way to stop listening. */
  listen(listener: Listener<GateEvent>): () => void {
    return this.#teller.add(listener);
  }

  get inFlight(): number {
    return this.#root.inFlight;
  }

  get waiting(): number {
    return this.#counted.waiting + this.#uncounted.waiting + (this.#cooling?.waiting ?? 0);
  }

  lanes(): Iterable<Lane> {
    return this.#lanes;
  }

  waitingAt(lane: Lane): number {
    return (this.#counted.lineOf(lane)?.length ?? 0) + (this.#uncounted.lineOf(lane)?.length ?? 0);
  }

  /** Costs nothing for each of those who wait: theirs are not made anew for it. */
  forecast(lane: Lane, nowUs: number): Forecast {
    const readyUs = plannedUs(this.#counted, lane, 1, Number.POSITIVE_INFINITY, nowUs);
    if (readyUs <= nowUs && this.#hasRoom(lane, 1, nowUs) && !this.#counted.isContended(lane))
      return { readyUs: nowUs, constraint: undefined };
    return { readyUs, constraint: constraintOf(this.#root, lane, wantedBy(this.#counted, lane, 1), readyUs, nowUs) };
  }

  join(waiter: Waiter): void {
    const denial = this.#breakers?.check(waiter.call);
    if (denial === undefined) this.#turnstileFor(waiter.units).join(waiter);
    else this.#cutOff(waiter, denial);
  }

  leave(waiter: Waiter): void {
    if (this.#cooling?.has(waiter)) this.#cooling.leave(waiter);
    else this.#turnstileFor(waiter.units).leave(waiter);
  }

  retry(waiter: Waiter): void {
    if (this.#cooling?.has(waiter)) {
      if (this.#breakers?.check(waiter.call) !== undefined) return;
      this.#cooling.leave(waiter);
      this.#warmedUp(waiter);
    }
    const turnstile = this.#turnstileFor(waiter.units);
    // What it still asks for may have come by another lane's question.
    const { call, lane, units } = waiter;
    if (this.#others?.allow(call, lane, units, this.#time.monotonicUs())) turnstile.slotFreed(lane);
    turnstile.retry(lane);
  }

  isAsking(waiter: Waiter): boolean {
    return this.#others?.isAsked(waiter) ?? false;
  }

  asked({ lane }: Waiter): number {
    return this.#others?.questions(lane) ?? 0;
  }

  readyUs(waiter: Waiter, nowUs: number): number {
    const isCut = this.#cooling?.has(waiter);
    return isCut ? Number.POSITIVE_INFINITY : overdueUs(this.#turnstileFor(waiter.units), waiter, nowUs);
  }

  /** Refuses what cannot be served in time (law L4), and lets the rest wait. */
  #admit(call: EntryRequest, lane: Lane, units: number, nowUs: number, denial: Denial | undefined): Promise<Grant> {
    const boundMs = call.maxWaitMs ?? lane.policy.maxDelayMs;
    const lastUs = nowUs + boundMs * 1000;
    if (denial !== undefined) {
      // Others may know better, and that takes a moment even for who may not wait.
      const toHear = this.#others?.newsBefore(call, denial);
      if (toHear !== undefined) return toHear.then(() => this.enter(call));
      if (!mayWaitFor(denial, call, lastUs, nowUs)) throw denial.error();
    }
    const turnstile = this.#turnstileFor(units);
    const readyUs = plannedUs(turnstile, lane, units, boundMs, nowUs);
    // Whether other processes leave room only the store can say, and that takes a moment even for who may not wait.
    const mustAsk = readyUs <= nowUs && !this.#isCovered(call, lane, units, nowUs);
    if (readyUs > lastUs || (call.maxWaitMs === 0 && !mustAsk)) {
      throw rejection(lane, this.#refuse(lane, units, wantedBy(turnstile, lane, units), readyUs, nowUs), boundMs);
    }
    return wait(this, this.#time, {
      lane,
      units,
      call,
      arrivedUs: nowUs,
      plannedUs: readyUs,
      boundMs,
      aborted: waitedMs => this.#teller.aborted(lane, units, waitedMs),
      refusal: (waiter, atUs) => this.#lateRefusal(waiter, atUs, boundMs),
    });
  }

  /** For somebody who was admitted and whose own bound is over all the same. */
  #lateRefusal(waiter: Waiter, nowUs: number, boundMs: number): RejectedError {
    const { lane, units, call, arrivedUs } = waiter;
    const cut = this.#cooling?.has(waiter) ? this.#breakers?.check(call) : undefined;
    if (cut !== undefined) return cut.error();
    const turnstile = this.#turnstileFor(units);
    const wanted = units + (turnstile.lineOf(lane)?.unitsBefore(waiter) ?? 0);
    const readyUs = overdueUs(turnstile, waiter, nowUs);
    return rejection(lane, this.#refuse(lane, units, wanted, readyUs, nowUs, (nowUs - arrivedUs) / 1000), boundMs);
  }

  /** Its host may be called again. */
  #warmedUp(waiter: Waiter): void {
    waiter.cutUntilUs = this.#time.monotonicUs();
    this.#rejoin(waiter);
  }

  /** Back into line: the lane may be another one by now, after a reload, or because the old one was forgotten. */
  #rejoin(waiter: Waiter): void {
    try {
      waiter.lane = this.#laneOf(waiter.call);
      if (waiter.units > 0) checkWeight(waiter.units, waiter.lane);
    } catch (error) {
      // New limits that could never grant it, or have no such service: to wait on would be for ever.
      if (!(error instanceof RangeError)) throw error;
      waiter.refused(error);
      return;
    }
    const turnstile = this.#turnstileFor(waiter.units);
    turnstile.join(waiter);
    // What was foretold to it was under other limits, or before its host was cut off.
    turnstile.outdate(waiter.lane);
  }

  /** Somebody's turn has come. False when the breaker is against it: then it waits elsewhere, or not at all. */
  #serve(waiter: Waiter, nowUs: number): boolean {
    const permit = this.#permit(waiter.call, waiter.lane, waiter.units, nowUs);
    if (permit === "taken") {
      this.#rejoin(waiter);
      return false;
    }
    if (permit !== undefined && !(permit instanceof Permit)) {
      if (permit.answered !== undefined || mayWaitFor(permit, waiter.call, waiter.lastUs, nowUs))
        this.#cutOff(waiter, permit);
      else waiter.refused(permit.error());
      return false;
    }
    const waitedMs = (nowUs - waiter.arrivedUs) / 1000;
    // Looked up first: taking it changes what the windows say.
    const ratedUs = this.#ratedUs(waiter, nowUs);
    const grant = this.#till.take(waiter.call, waiter.lane, waiter.units, nowUs, waitedMs, permit);
    grant.slotWaitMs = Math.max(0, (nowUs - ratedUs) / 1000);
    waiter.granted(grant);
    return true;
  }

  /** Since when neither rates nor a breaker have held this waiter back. */
  #ratedUs({ lane, units, arrivedUs, cutUntilUs }: Waiter, nowUs: number): number {
    let ratedUs = Math.max(arrivedUs, cutUntilUs);
    for (let at: Budget | undefined = lane; at; at = at.above) ratedUs = Math.max(ratedUs, at.earliestUs(units, nowUs));
    return ratedUs;
  }

  /**
   * The breaker's permit for a request that was found free. Whoever listens to the breakers is told meanwhile and may
   * come in here and take what was free: then the permit goes back, and the request is judged once more.
   */
  #permit(call: EntryRequest, lane: Lane, units: number, nowUs: number): Permit | Denial | "taken" | undefined {
    const permit = this.#breakers?.tryAllow(call);
    const isThere = this.#hasRoom(lane, units, nowUs) && this.#others?.leave(lane, units, nowUs) !== false;
    if (!(permit instanceof Permit) || isThere) return permit;
    permit.release();
    return "taken";
  }

  #laneOf({ service, host, role, path }: EntryRequest): Lane {
    return service === undefined ? this.#lanes.at(host, role, path) : this.#lanes.of(service, role, host);
  }

  #isReady(call: EntryRequest, lane: Lane, units: number, nowUs: number): boolean {
    return this.#hasRoom(lane, units, nowUs) && this.#isCovered(call, lane, units, nowUs);
  }

  /** As far as this process is concerned. */
  #hasRoom(lane: Lane, units: number, nowUs: number): boolean {
    if (!this.#root.hasSlot) return false;
    for (let at: Budget | undefined = lane; at; at = at.above) if (at.readyUs(units, nowUs) > nowUs) return false;
    return true;
  }

  #isCovered(call: EntryRequest, lane: Lane, units: number, nowUs: number): boolean {
    return this.#others?.allow(call, lane, units, nowUs) ?? true;
  }

  #cutOff(waiter: Waiter, denial: Denial): void {
    this.#cooling?.hold(waiter, denial);
    this.#others?.watch();
  }

  #meet(options: OtherProcessesOptions): OtherProcesses {
    return new OtherProcesses(options, {
      heard: lane => {
        for (const turnstile of [this.#counted, this.#uncounted]) {
          turnstile.slotFreed(lane);
          turnstile.pump();
        }
      },
      isWanted: lane => this.waitingAt(lane) > 0,
      limitsChanged: away => {
        this.#share = away?.processes ?? 1;
        this.#teller.store(away);
        this.#keepTo(away === undefined ? this.#limits : shareOf(this.#limits, away.processes));
      },
      breakersChanged: away => this.#teller.store(away),
      overruled: lane => this.#teller.overruled(lane),
      blockers: () => this.#cooling?.blockers() ?? [],
    });
  }

  #isFree(call: EntryRequest, lane: Lane, units: number, nowUs: number): boolean {
    return this.#isReady(call, lane, units, nowUs) && !this.#turnstileFor(units).isContended(lane);
  }

  #turnstileFor(units: number): Turnstile {
    return units === 0 ? this.#uncounted : this.#counted;
  }

  #refuse(lane: Lane, units: number, wanted: number, readyUs: number, nowUs: number, blockedMs?: number): Refusal {
    lane.refused += 1;
    this.#teller.refused(lane, units, blockedMs);
    return this.#refusal(lane, wanted, readyUs, nowUs);
  }

  #refusal(lane: Lane, wanted: number, readyUs: number, nowUs: number): Refusal {
    const constraint = constraintOf(this.#root, lane, wanted, readyUs, nowUs);
    const isUnknown = constraint.kind === "concurrency";
    return {
      isGranted: false,
      retryAfterMs: isUnknown ? undefined : Math.max(1, Math.ceil((readyUs - nowUs) / 1000)),
      constraint,
    };
  }

  #isForgettable(lane: Lane): boolean {
    if (lane.inFlight > 0) return false;
    const nowUs = this.#time.monotonicUs();
    return (
      lane.holdUntilUs <= nowUs &&
      (lane.pace === undefined || lane.pace.isNeutral(nowUs)) &&
      (lane.learned === undefined || lane.learned.isLapsed(nowUs)) &&
      lane.log.isSpent(lane.windows, lane.spacingUs, nowUs) &&
      (lane.stock === undefined || (lane.stock.isIdle && lane.stock.notBeforeUs <= nowUs)) &&
      this.waitingAt(lane) === 0
    );
  }
}
