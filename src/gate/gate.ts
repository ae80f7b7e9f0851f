import { BusyError, RateLimitExceeded, type RejectedError } from "../errors.ts";
import { type Limits, type SharedBudget, UNLIMITED } from "../policy/limits.ts";
import type { Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { Budget, Lane } from "./budget.ts";
import { constraintOf, plannedUs } from "./forecast.ts";
import type { GateEvent, GateListener } from "./gate-events.ts";
import { Grant, type GrantKeeper, type Refusal } from "./grant.ts";
import { LaneTable } from "./lane-table.ts";
import { Pace, type PaceChange } from "./pace.ts";
import { Turnstile } from "./turnstile.ts";
import { wait } from "./wait.ts";
import type { Waiter } from "./waiting-line.ts";

export interface EntryRequest {
  readonly host: string;
  readonly role: Role;
  /** Matters only for hosts whose parts have budgets of their own. */
  readonly path?: string | undefined;
  /** @default "GET" */
  readonly method?: string | undefined;
  /** Units of every window. @default 1 */
  readonly weight?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * The longest this call may wait, for whatever. 0 never waits, Infinity waits as long as it takes.
   * @default the policy's `max_delay_ms` for rates and cooldowns, no bound for slots
   */
  readonly maxWaitMs?: number | undefined;
}

/**
 * The one way in: every budget on a request's path is taken at one instant, or none is (law L3).
 * Deciding is synchronous; only who must wait gets a promise.
 */
export class Gate implements GrantKeeper {
  readonly #time: Time;
  readonly #limits: Limits;
  readonly #emit: GateListener | undefined;
  readonly #root: Budget;
  readonly #shared = new Map<SharedBudget, Budget>();
  readonly #lanes = new LaneTable(lane => this.#isForgettable(lane));
  readonly #prepared = new Set<Lane>();
  /** Requests that the windows count, and those that they do not, never wait for one another's windows. */
  readonly #counted: Turnstile;
  readonly #uncounted: Turnstile;
  #uncountedFirst = false;

  constructor(limits: Limits, time: Time, emit?: GateListener) {
    this.#limits = limits;
    this.#time = time;
    this.#emit = emit;
    this.#root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    const take = (waiter: Waiter, nowUs: number) => {
      this.#take(waiter.lane, waiter.units);
      waiter.granted(nowUs);
    };
    this.#counted = new Turnstile(this.#root, time, take);
    this.#uncounted = new Turnstile(this.#root, time, take);
  }

  /** Never waits: the grant, or why not and for how long. */
  tryEnter(request: EntryRequest): Grant | Refusal {
    const lane = this.#laneOf(request);
    const units = unitsOf(request, lane);
    const nowUs = this.#time.monotonicUs();
    if (this.#isFree(lane, units, nowUs)) return this.#grant(lane, units, 0);
    return this.#refuse(lane, units, plannedUs(this.#turnstileFor(units), lane, units, nowUs), nowUs);
  }

  /** The grant at once, or a promise of it. Throws, or rejects with, a RejectedError or the signal's reason. */
  enter(request: EntryRequest): Grant | Promise<Grant> {
    const { signal, maxWaitMs } = request;
    if (maxWaitMs !== undefined && !(maxWaitMs >= 0))
      throw new RangeError(`maxWaitMs must be 0 or more, not ${maxWaitMs}`);
    signal?.throwIfAborted();
    const lane = this.#laneOf(request);
    const units = unitsOf(request, lane);
    const nowUs = this.#time.monotonicUs();
    if (this.#isFree(lane, units, nowUs)) return this.#grant(lane, units, 0);
    const turnstile = this.#turnstileFor(units);
    const readyUs = plannedUs(turnstile, lane, units, nowUs);
    const boundMs = maxWaitMs ?? lane.policy.maxDelayMs;
    if (readyUs - nowUs > boundMs * 1000 || maxWaitMs === 0) {
      throw rejection(lane, this.#refuse(lane, units, readyUs, nowUs), boundMs);
    }
    return wait(turnstile, this.#time, {
      lane,
      units,
      arrivedUs: nowUs,
      plannedUs: readyUs,
      signal,
      maxWaitMs,
      granted: waitedMs => this.#granted(lane, units, waitedMs),
      aborted: waitedMs => this.#tellAcquire(lane, units, "block", waitedMs, "aborted"),
      refusal: (untilUs, atUs) => rejection(lane, this.#refuse(lane, units, untilUs, atUs), boundMs),
    });
  }

  /** Sends nothing of this lane before `ms` from now; the later of two holds counts. */
  hold(host: string, role: Role, ms: number): void {
    const lane = this.#laneOf({ host, role });
    const untilUs = this.#time.monotonicUs() + Math.ceil(ms * 1000);
    if (untilUs <= lane.holdUntilUs) return;
    lane.holdUntilUs = untilUs;
    this.#paceChanged(lane);
    this.#tell({ event_type: "ratelimit.cooldown", key: lane.name, role, seconds: ms / 1000 });
  }

  /** Counts an answer, for the pace of its lane. */
  record(host: string, role: Role, isThrottled: boolean): void {
    const lane = this.#laneOf({ host, role });
    if (!isThrottled && lane.pace === undefined && !this.#limits.aimd.enabled) return;
    const nowUs = this.#time.monotonicUs();
    lane.pace ??= new Pace(lane.policy, this.#limits.aimd, nowUs);
    this.#adopt(lane, lane.pace.record(isThrottled, nowUs));
  }

  /** Ends the counting windows that are over. They also end by themselves, with the next answer. */
  tick(): void {
    const nowUs = this.#time.monotonicUs();
    for (const lane of this.#lanes) if (lane.pace !== undefined) this.#adopt(lane, lane.pace.tick(nowUs));
  }

  /** Makes a lane that is there before its first request, and is never forgotten. */
  prepare(host: string, role: Role): void {
    this.#prepared.add(this.#laneOf({ host, role }));
  }

  get inFlight(): number {
    return this.#root.inFlight;
  }

  get waiting(): number {
    return this.#counted.waiting + this.#uncounted.waiting;
  }

  lanes(): Iterable<Lane> {
    return this.#lanes;
  }

  waitingAt(lane: Lane): number {
    return (this.#counted.lineOf(lane)?.length ?? 0) + (this.#uncounted.lineOf(lane)?.length ?? 0);
  }

  stamp(lane: Lane, units: number): void {
    const nowUs = this.#time.monotonicUs();
    if (units > 0) for (let at: Budget | undefined = lane; at; at = at.above) at.log.write(at.windows, units, nowUs);
  }

  giveBack(lane: Lane, units: number): void {
    if (units === 0) return;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      at.log.giveBack(units);
      this.#counted.paceChanged(at);
    }
  }

  freeSlots(lane: Lane): void {
    this.#root.inFlight -= 1;
    for (let at: Budget | undefined = lane; at; at = at.above) at.inFlight -= 1;
    if (this.waiting === 0) return;
    // Turns about, so that neither kind can keep the other from the slots both need.
    this.#uncountedFirst = !this.#uncountedFirst;
    const turnstiles = this.#uncountedFirst ? [this.#uncounted, this.#counted] : [this.#counted, this.#uncounted];
    for (const turnstile of turnstiles) {
      for (let at: Budget | undefined = lane; at; at = at.above) turnstile.slotFreed(at);
      turnstile.slotFreed(this.#root);
      turnstile.pump();
    }
  }

  #laneOf({
    host,
    role,
    path,
  }: {
    readonly host: string;
    readonly role: Role;
    readonly path?: string | undefined;
  }): Lane {
    // Known lanes carry canonical names, so that a name found here needs no more parsing.
    const known = path === undefined ? this.#lanes.get(role, host) : undefined;
    if (known !== undefined) return known;
    const route = this.#limits.route(host, role, path);
    const existing = this.#lanes.get(role, route.name);
    if (existing !== undefined) return existing;
    const above = route.above.reduceRight<Budget | undefined>(
      (outer, budget) => this.#sharedBudget(budget, outer),
      undefined,
    );
    const lane = new Lane(route.name, role, route.lane, above);
    this.#lanes.add(lane);
    return lane;
  }

  #sharedBudget(shared: SharedBudget, above: Budget | undefined): Budget {
    const known = this.#shared.get(shared);
    if (known !== undefined) return known;
    const budget = new Budget(shared.name, shared.policy, above);
    this.#shared.set(shared, budget);
    return budget;
  }

  #isFree(lane: Lane, units: number, nowUs: number): boolean {
    if (!this.#root.hasSlot) return false;
    for (let at: Budget | undefined = lane; at; at = at.above) if (at.readyUs(units, nowUs) > nowUs) return false;
    return !this.#turnstileFor(units).isContended(lane);
  }

  #turnstileFor(units: number): Turnstile {
    return units === 0 ? this.#uncounted : this.#counted;
  }

  #take(lane: Lane, units: number): void {
    this.#root.inFlight += 1;
    for (let at: Budget | undefined = lane; at; at = at.above) {
      at.inFlight += 1;
      at.log.reserve(units);
    }
  }

  #grant(lane: Lane, units: number, waitedMs: number): Grant {
    this.#take(lane, units);
    return this.#granted(lane, units, waitedMs);
  }

  #granted(lane: Lane, units: number, waitedMs: number): Grant {
    if (units > 0) lane.acquired += 1;
    else {
      lane.headSkipped += 1;
      this.#tell({ event_type: "rate_head_skipped", host: lane.name, role: lane.role });
    }
    this.#tellAcquire(lane, units, "block", waitedMs, "granted");
    return new Grant(this, lane, units, waitedMs);
  }

  #refuse(lane: Lane, units: number, readyUs: number, nowUs: number): Refusal {
    lane.refused += 1;
    this.#tellAcquire(lane, units, "fail", 0, "refused");
    const constraint = constraintOf(this.#turnstileFor(units), this.#root, lane, units, readyUs, nowUs);
    const retryAfterMs = constraint.kind === "concurrency" ? undefined : Math.ceil((readyUs - nowUs) / 1000);
    return { isGranted: false, retryAfterMs, constraint };
  }

  #adopt(lane: Lane, changes: readonly PaceChange[]): void {
    if (changes.length === 0) return;
    this.#paceChanged(lane);
    for (const { what, ...change } of changes) {
      const event_type = what === "multiplier" ? "aimd_adjust" : what === "guard_ms" ? "guard_adjust" : "shape_adjust";
      this.#tell({ event_type, host: lane.name, role: lane.role, ...change });
    }
  }

  #paceChanged(lane: Lane): void {
    for (const turnstile of [this.#counted, this.#uncounted]) {
      turnstile.paceChanged(lane);
      turnstile.pump();
    }
  }

  #isForgettable(lane: Lane): boolean {
    if (lane.inFlight > 0 || this.#prepared.has(lane)) return false;
    const nowUs = this.#time.monotonicUs();
    return (
      lane.holdUntilUs <= nowUs &&
      (lane.pace === undefined || lane.pace.isNeutral(nowUs)) &&
      lane.log.isSpent(lane.windows, lane.spacingUs, nowUs) &&
      this.waitingAt(lane) === 0
    );
  }

  #tellAcquire(
    lane: Lane,
    weight: number,
    mode: "block" | "fail",
    blockedMs: number,
    outcome: "granted" | "refused" | "aborted",
  ): void {
    // Nobody listens most of the time, and this is on the way of every request.
    if (this.#emit === undefined) return;
    const { name: key, role, policy } = lane;
    const rates = policy.labels.join("+");
    this.#tell({ event_type: "ratelimit.acquire", key, role, rates, weight, mode, blocked_ms: blockedMs, outcome });
  }

  /** A listener that throws breaks nothing, and is heard of. */
  #tell(event: GateEvent): void {
    if (this.#emit === undefined) return;
    try {
      this.#emit(event);
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error));
    }
  }
}

function unitsOf({ method, weight = 1 }: EntryRequest, lane: Lane): number {
  if (method === "HEAD" && !lane.policy.countsHead) return 0;
  if (weight !== 1) checkWeight(weight, lane);
  return weight;
}

/** A weight that no window could ever grant is the caller's mistake, not an endless wait (law L6). */
function checkWeight(weight: number, lane: Lane): void {
  if (!Number.isSafeInteger(weight) || weight < 1)
    throw new RangeError(`weight must be a whole number from 1, not ${weight}`);
  for (let at: Budget | undefined = lane; at; at = at.above) {
    for (const [index, { limit }] of at.windows.entries()) {
      if (weight > limit)
        throw new RangeError(`weight ${weight} can never pass ${at.policy.labels[index]} of ${at.name}`);
    }
  }
}

function rejection(lane: Lane, { constraint, retryAfterMs }: Refusal, maxWaitMs: number): RejectedError {
  const details = { host: lane.name, role: lane.role, constraint, maxWaitMs };
  return retryAfterMs === undefined ? new BusyError(details) : new RateLimitExceeded({ ...details, retryAfterMs });
}
