import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import { FailureWindow } from "../core/breaker/failure-window.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import { type Cooldown, Cooldowns } from "./cooldowns.ts";

/** So many Retry-Afters in a row that are longer than the reset make a habit of it. */
const RAISE_AFTER = 2;
const IDLE_US = 3_600_000_000;

/** What is known of one host: a circuit for each role that was used, its cooldowns, its recent failures. */
export class HostBreaker {
  readonly name: string;
  readonly circuits: Record<Role, CircuitHolder | undefined> = {
    metadata: undefined,
    landing: undefined,
    artifact: undefined,
  };
  /** Made when there is something to put in: most hosts are well. */
  #cooldowns: Cooldowns | undefined;
  #failures: FailureWindow | undefined;
  /** Permits that are out. */
  permits = 0;
  /** When somebody last asked. */
  usedUs: number;
  /** How long the last call that was let through had waited at the gate; undefined where there is none. */
  lastRateDelayMs: number | undefined = undefined;
  /** A host that keeps asking for longer than its reset is given what it asks for, for the run. */
  learnedResetUs = 0;
  #longRetryAfters = 0;

  constructor(name: string, nowUs: number) {
    this.name = name;
    this.usedUs = nowUs;
  }

  get cooldowns(): Cooldowns {
    this.#cooldowns ??= new Cooldowns();
    return this.#cooldowns;
  }

  get failures(): FailureWindow {
    this.#failures ??= new FailureWindow();
    return this.#failures;
  }

  /** The cooldown that runs, if any. Looking makes nothing. */
  cooldownAt(nowUs: number): Cooldown | undefined {
    return this.#cooldowns?.current(nowUs);
  }

  failuresAt(nowUs: number, windowUs: number): number {
    return this.#failures?.count(nowUs, windowUs) ?? 0;
  }

  clearFailures(): void {
    this.#failures?.clear();
  }

  /** False for a host that never had a cooldown: nothing to look up, not even the time. */
  get mayHaveCooldown(): boolean {
    return this.#cooldowns !== undefined;
  }

  /** Notes a Retry-After. True when it has become a habit that raises the reset. */
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

  /** A circuit's policy with what was learned of this host's resets. */
  withLearnedReset(policy: CircuitPolicy): CircuitPolicy {
    return this.learnedResetUs > policy.resetUs ? { ...policy, resetUs: this.learnedResetUs } : policy;
  }

  /** An operator's act: nothing is held against it any more. */
  reset(): void {
    this.#cooldowns?.clear();
    this.#failures?.clear();
    this.learnedResetUs = 0;
    this.#longRetryAfters = 0;
  }

  isForgettable(nowUs: number, windowUs: number): boolean {
    if (this.cooldownAt(nowUs) !== undefined) return false;
    // A crawler meets dead hosts once. What was held against one that nobody asked for in an hour is let go, and so are
    // permits that nobody ever reported.
    if (nowUs - this.usedUs > IDLE_US) return true;
    if (this.permits > 0 || this.learnedResetUs > 0 || this.#longRetryAfters > 0) return false;
    if (this.failuresAt(nowUs, windowUs) > 0) return false;
    return ROLES.every(role => this.circuits[role]?.isFresh ?? true);
  }
}
