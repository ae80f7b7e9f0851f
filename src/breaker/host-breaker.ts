import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import { FailureWindow, ThrottleEvents } from "../core/breaker/failure-window.ts";
import { SlowCallWindow } from "../core/breaker/slow-call-window.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { LIMIT_PARTS, type LimitPart, ROLES, type Role } from "../policy/roles.ts";
import type { CallOwners } from "./breaker-table.ts";
import type { CircuitHolder, TimedOrder } from "./circuit-holder.ts";
import { type Cooldown, Cooldowns } from "./cooldowns.ts";
import { NO_RAMP_UPS, RampUp } from "./ramp-up.ts";

/** This many consecutive values of Retry-After that are longer than the reset timeout raise it. */
const RAISE_AFTER = 2;
/** A host that is unused for this long may be evicted with its failures. */
const IDLE_US = 3_600_000_000;

/** The breaker state of one host: a circuit for each role that was used, its cooldowns, its recent failures. */
export class HostBreaker {
  readonly name: string;
  readonly circuits: Record<Role, CircuitHolder | undefined> = {
    metadata: undefined,
    landing: undefined,
    artifact: undefined,
  };
  /** Created on first use: most hosts never have a cooldown or failure, and a million hosts must fit in memory. */
  #cooldowns: Cooldowns | undefined;
  #failures: FailureWindow | undefined;
  #throttles: ThrottleEvents | undefined;
  #slowCalls: SlowCallWindow | undefined;
  #rampUps: Partial<Record<Role, RampUp>> | undefined;
  #holds: Partial<Record<Role, TimedOrder>> | undefined;
  #limits: Partial<Record<LimitPart, OrderedLimit>> | undefined;
  /**
   * The owners of the calls to this host, if the host alone decides about all of them, whatever the path. Undefined if
   * it does not, or if that is not known yet. Nearly every call needs only this.
   */
  soleOwners: CallOwners | undefined = undefined;
  /** Permits that are neither reported nor released. */
  permits = 0;
  /**
   * When a permit was last requested, or a failure reported. Undefined after a plain call, which does not read the
   * clock: the next check for eviction sets its own time.
   */
  usedUs: number | undefined = undefined;
  /** How long the last permitted call waited for its rate limits; undefined without a gate. */
  lastRateDelayMs: number | undefined = undefined;
  /** The Retry-After that replaces a shorter reset timeout until `reset`; 0 for none. */
  learnedResetUs = 0;
  #longRetryAfters = 0;

  constructor(name: string) {
    this.name = name;
  }

  get cooldowns(): Cooldowns {
    this.#cooldowns ??= new Cooldowns();
    return this.#cooldowns;
  }

  get failures(): FailureWindow {
    this.#failures ??= new FailureWindow();
    return this.#failures;
  }

  get slowCalls(): SlowCallWindow {
    this.#slowCalls ??= new SlowCallWindow();
    return this.#slowCalls;
  }

  /** Whether a throttled answer is part of a burst that was counted: its permit is older than the last event. */
  isThrottleCounted(permit: number): boolean {
    return this.#throttles?.isCounted(permit) ?? false;
  }

  countThrottle(lastPermit: number): void {
    this.#throttles ??= new ThrottleEvents();
    this.#throttles.count(lastPermit);
  }

  /** The running cooldown that ends last, if any. */
  cooldownAt(nowUs: number): Cooldown | undefined {
    return this.#cooldowns?.current(nowUs);
  }

  /** The running cooldown that an operator has ordered, if any. */
  orderAt(nowUs: number): Cooldown | undefined {
    return this.#cooldowns?.ordered(nowUs);
  }

  /** The running order of an operator to hold the calls of this role, if any. */
  holdAt(role: Role, nowUs: number): TimedOrder | undefined {
    const hold = this.#holds?.[role];
    return hold !== undefined && hold.untilUs > nowUs ? hold : undefined;
  }

  /** Undefined releases the calls of the role. */
  setHold(role: Role, hold: TimedOrder | undefined): void {
    this.#holds = { ...this.#holds, [role]: hold };
  }

  /** The running order of an operator that changes the limits of this part, if any. The limiter applies it. */
  limitAt(role: LimitPart, nowUs: number): OrderedLimit | undefined {
    const limit = this.#limits?.[role];
    return limit !== undefined && limit.untilUs > nowUs ? limit : undefined;
  }

  setLimit(role: LimitPart, limit: OrderedLimit): void {
    this.#limits = { ...this.#limits, [role]: limit };
  }

  /** How the traffic of the role resumes after a cooldown; undefined when it is not limited. */
  rampUp(role: Role): RampUp | undefined {
    const rampUp = this.#rampUps?.[role];
    return rampUp?.isOver === false ? rampUp : undefined;
  }

  rampUps(): readonly RampUp[] {
    return this.#rampUps === undefined ? NO_RAMP_UPS : Object.values(this.#rampUps);
  }

  /** The same object for all cooldowns of the role, because calls may wait for it. */
  createRampUp(role: Role): RampUp {
    this.#rampUps ??= {};
    const rampUp = this.#rampUps[role] ?? new RampUp(this.name, role);
    this.#rampUps[role] = rampUp;
    return rampUp;
  }

  failuresAt(nowUs: number, windowUs: number): number {
    return this.#failures?.count(nowUs, windowUs) ?? 0;
  }

  clearFailures(): void {
    this.#failures?.clear();
  }

  /** False for a host that never had a cooldown or a hold: then the caller need not even read the clock. */
  get mayHaveCooldown(): boolean {
    return this.#cooldowns !== undefined || this.#rampUps !== undefined || this.#holds !== undefined;
  }

  /** Counts a Retry-After. True when it raises the reset timeout. */
  learnReset(retryAfterUs: number, resetUs: number): boolean {
    if (retryAfterUs <= Math.max(resetUs, this.learnedResetUs)) {
      this.#longRetryAfters = 0;
      return false;
    }
    this.#longRetryAfters += 1;
    if (this.#longRetryAfters < RAISE_AFTER) return false;
    this.#longRetryAfters = 0;
    this.learnedResetUs = retryAfterUs;
    return true;
  }

  /** The policy of a circuit, with the learned reset timeout if that is longer. */
  withLearnedReset(policy: CircuitPolicy): CircuitPolicy {
    return this.learnedResetUs > policy.resetUs ? { ...policy, resetUs: this.learnedResetUs } : policy;
  }

  /** Clears cooldowns, failures and the learned reset timeout, as an operator has ordered at `orderedUs`. */
  reset(orderedUs = Number.POSITIVE_INFINITY): void {
    this.#cooldowns?.clear(orderedUs);
    this.#failures?.clear();
    this.#slowCalls?.clear();
    this.learnedResetUs = 0;
    this.#longRetryAfters = 0;
  }

  /** Whether the host may be evicted (law L11). Sets `usedUs` if a plain call has cleared it. */
  isEvictable(nowUs: number, windowUs: number): boolean {
    this.usedUs ??= nowUs;
    if (this.cooldownAt(nowUs) !== undefined) return false;
    if (ROLES.some(role => this.circuits[role]?.isHeldOpen(nowUs))) return false;
    if (ROLES.some(role => this.holdAt(role, nowUs))) return false;
    if (LIMIT_PARTS.some(part => this.limitAt(part, nowUs))) return false;
    // A crawler calls a dead host once: its failures are dropped after an idle hour, and so are permits that were never
    // reported.
    if (nowUs - this.usedUs > IDLE_US) return true;
    if (this.rampUps().some(({ isOver }) => !isOver)) return false;
    if (this.permits > 0 || this.learnedResetUs > 0 || this.#longRetryAfters > 0) return false;
    if (this.failuresAt(nowUs, windowUs) > 0) return false;
    if (this.#slowCalls?.isEmpty(nowUs, windowUs) === false) return false;
    return ROLES.every(role => this.circuits[role]?.isFresh ?? true);
  }
}
