import type { CallResult } from "../core/breaker/call-result.ts";
import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import type { Constraint } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import { actualCosts, type Charge, type Costs, costsBeyond, greaterCosts, NO_CHARGE, NO_COSTS } from "./charge.ts";
import type { GrantedWait } from "./granted-wait.ts";
import type { RoleBudget } from "./role-budget.ts";

/** What a response says about the limits of its server. */
export interface ServerFeedback {
  /** A throttle with a 5xx shows an outage or maintenance, and nothing about how the server counts. @default 429 */
  readonly status?: number | undefined;
  /** True for a 429 and every other response that is classified as a throttle. */
  readonly isThrottled: boolean;
  /** Delay of a valid Retry-After, in milliseconds. The breaker applies it; a throttle without one holds its key. */
  readonly retryAfterMs?: number | undefined;
  /** Limits that the response announces. Never pass those of a cached response. */
  readonly announced?: readonly AnnouncedLimit[] | undefined;
}

/** The breaker's permission that a grant carries; the limiter only passes it on. */
export interface GrantPermit {
  /** The host or service whose cooldowns hold back the request. */
  readonly cooldownKey: string;
  readonly jitterMs: number;
  readonly isProbe: boolean;
  answered(): void;
  report(result: CallResult): void;
  release(): void;
}

/**
 * Settles a grant with the budgets that count it. `generation` is that of the role budget when the grant was issued.
 */
export interface GrantOwner {
  recordResponse(roleBudget: RoleBudget, feedback: ServerFeedback): void;
  /** The request is written now; returns that instant. */
  stamp(roleBudget: RoleBudget, generation: number, charge: Charge, grantedUs: number): number;
  /** Nothing of the request was written. */
  giveBack(roleBudget: RoleBudget, generation: number, charge: Charge): void;
  /** Whether the budgets can return costs and units of a request that counts since `stampedUs`. */
  isRefundable(stampedUs: number): boolean;
  /** A request that was stamped when it was granted was not sent: returns its units and costs, if that is possible. */
  refund(roleBudget: RoleBudget, charge: Charge, stampedUs: number): void;
  /** Reports to the peers what a request used of the costs that were leased for it. */
  reportCosts(roleBudget: RoleBudget, leased: Costs, used: Costs): void;
  /** The request used other amounts than it was charged; `stampedUs` is undefined if it is not written yet. */
  settle(roleBudget: RoleBudget, generation: number, charged: Costs, used: Costs, stampedUs: number | undefined): void;
  freeSlots(roleBudget: RoleBudget, generation: number): void;
}

/**
 * - `granted`: not written yet; counts as written now.
 * - `settled`: stamped or given back; still holds its slots.
 * - `unstamped`: slots freed, stamp still to come.
 * - `over`: nothing left to do.
 */
export type GrantState = "granted" | "settled" | "unstamped" | "over";

/**
 * Permission to send one request, with a slot in every budget that applies. It ends once; later calls have no effect.
 */
export class Grant implements Disposable {
  /** How long the request waited for the grant, and for what. */
  readonly wait: GrantedWait;
  readonly #owner: GrantOwner;
  readonly #roleBudget: RoleBudget;
  readonly #generation: number;
  /** What the budgets count. */
  #charge: Charge;
  /** What the request really used, as last said; undefined if nothing was said. */
  #usedCosts: Costs | undefined = undefined;
  readonly #permit: GrantPermit | undefined;
  /** When it was granted; once it is stamped, the time of the stamp. */
  #atUs: number;
  #state: GrantState;
  /** It was stamped when it was granted, and the caller can still say that it was not used. */
  #isReturnable: boolean;
  /** The leased costs that are not reported yet: the true costs may still become known. */
  #leasedCosts: Costs | undefined;
  /** The costs that the peers count for the request: the largest amount of each unit that was reported. */
  #reportedCosts: Costs = NO_COSTS;

  constructor(
    owner: GrantOwner,
    roleBudget: RoleBudget,
    charge: Charge,
    wait: GrantedWait,
    permit: GrantPermit | undefined,
    state: GrantState,
    grantedUs: number,
  ) {
    this.#owner = owner;
    this.#roleBudget = roleBudget;
    this.#generation = roleBudget.generation;
    this.#charge = charge;
    this.wait = wait;
    this.#permit = permit;
    this.#state = state;
    this.#atUs = grantedUs;
    this.#isReturnable = state !== "granted";
    this.#leasedCosts = charge.costs;
    // A grant that was stamped when it was issued may never be released: its costs are reported now.
    if (this.#isReturnable && charge.costs !== undefined) this.#reportCosts(charge.costs);
  }

  /** Milliseconds that the request waited for the grant. */
  get waitedMs(): number {
    return this.wait.waitedMs;
  }

  /**
   * The rate, slot or circuit that the longest part of the wait was spent on; undefined if none delayed the request. Of
   * several rates or several slots, the one that held the request last.
   */
  get waitedFor(): Constraint | undefined {
    return this.wait.waitedFor;
  }

  /** Name of the host or service whose budget was charged. */
  get host(): string {
    return this.#roleBudget.name;
  }

  /** Name of the host or service whose cooldowns hold back the request; undefined without breakers. */
  get cooldownKey(): string | undefined {
    return this.#permit?.cooldownKey;
  }

  get role(): Role {
    return this.#roleBudget.role;
  }

  /** Milliseconds that a probe of a half-open circuit should wait before it is sent; 0 for every other request. */
  get jitterMs(): number {
    return this.#permit?.jitterMs ?? 0;
  }

  /** True for a trial call of a half-open circuit. */
  get isProbe(): boolean {
    return this.#permit?.isProbe ?? false;
  }

  /**
   * Reports the outcome of the call to the breaker, once. Without a report the call neither opens nor closes a circuit.
   */
  report(result: CallResult): void {
    this.#permit?.report(result);
  }

  /** The headers of a response that is no failure have arrived: after a cooldown, more calls may follow. */
  answered(): void {
    this.#permit?.answered();
  }

  /**
   * Records the response for the pace of its key, and learns the limits that it announces. Call it once per response.
   */
  recordResponse(feedback: ServerFeedback): void {
    this.#owner.recordResponse(this.#roleBudget, feedback);
  }

  /** Stamps the request: its headers are written now, which is the instant the windows count. */
  written(): void {
    if (this.#state !== "granted" && this.#state !== "unstamped") return;
    this.#state = this.#state === "granted" ? "settled" : "over";
    this.#atUs = this.#owner.stamp(this.#roleBudget, this.#generation, this.#charge, this.#atUs);
    if (this.#state === "over") this.#reportCosts(this.#charge.costs);
  }

  /** Frees the slots when the request and its body have ended. A request without a stamp is stamped now. */
  release(): void {
    this.#isReturnable = false;
    if (this.#state === "over" || this.#state === "unstamped") return;
    this.written();
    this.#state = "over";
    this.#reportCosts(this.#charge.costs);
    this.#permit?.release();
    this.#owner.freeSlots(this.#roleBudget, this.#generation);
  }

  /**
   * Frees the slots of a request that was dropped while its headers may still be on the way to the server. It counts as
   * written now until `written()` is called.
   */
  releaseUnstamped(): void {
    if (this.#state !== "granted") {
      this.release();
      return;
    }
    this.#state = "unstamped";
    this.#permit?.release();
    this.#owner.freeSlots(this.#roleBudget, this.#generation);
  }

  /**
   * Returns units, costs and slots of a request that was not sent. After `written()` it only frees the slots, and after
   * `release()` it has no effect.
   */
  giveBack(): void {
    const charge = this.#charge;
    if (this.#state === "granted") {
      this.#state = "settled";
      this.#charge = NO_CHARGE;
      this.#owner.giveBack(this.#roleBudget, this.#generation, charge);
      this.#reportCosts(NO_COSTS);
    } else if (this.#isReturnable) {
      this.#isReturnable = false;
      this.#charge = NO_CHARGE;
      this.#owner.refund(this.#roleBudget, charge, this.#atUs);
    }
    this.release();
  }

  /**
   * Says what the request really used, `{ credits: 25 }`: the difference is charged now, or returned unless the limits
   * were changed since the request was written. Units that it does not name stay as they are. It may be called again when more is known; where no limit counts costs it has no effect.
   * Throws a RangeError for an amount that is not a whole number of 0 or more, and for a unit that no limit counts.
   */
  settle(used: Readonly<Record<string, number>>): void {
    const { units, costs } = this.#charge;
    if (costs === undefined) return;
    const before = this.#usedCosts ?? costs;
    const actual = actualCosts(before, used, `${this.host} (${this.role})`);
    const isStamped = this.#state !== "granted" && this.#state !== "unstamped";
    const counted = isStamped && !this.#owner.isRefundable(this.#atUs) ? greaterCosts(costs, actual) : actual;
    this.#usedCosts = actual;
    this.#charge = { units, costs: counted };
    // Costs that were reported as used cannot be returned any more, but more can be added.
    if (isStamped && this.#leasedCosts === undefined) {
      this.#owner.reportCosts(this.#roleBudget, NO_COSTS, costsBeyond(this.#reportedCosts, actual));
      this.#reportedCosts = greaterCosts(actual, this.#reportedCosts);
    } else if (isStamped) this.#reportCosts(actual);
    this.#owner.settle(this.#roleBudget, this.#generation, costs, counted, isStamped ? this.#atUs : undefined);
  }

  /** Reports the costs of the request once: the real ones if they are known, else those that it was charged. */
  #reportCosts(used = NO_COSTS): void {
    const leased = this.#leasedCosts;
    if (leased === undefined) return;
    this.#leasedCosts = undefined;
    this.#reportedCosts = used;
    this.#owner.reportCosts(this.#roleBudget, leased, used);
  }

  /** Whether a limit counts this unit for the request. */
  counts(unit: string): boolean {
    return this.#charge.costs?.has(unit) ?? false;
  }

  /** The response headers that say what the request used, by unit. */
  get costHeaders(): Readonly<Record<string, string>> {
    return this.#roleBudget.policy.costHeaders;
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
