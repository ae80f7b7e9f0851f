import type { CallResult } from "../core/breaker/call-result.ts";
import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import type { Constraint } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { RoleBudget } from "./budget.ts";

/** What came back, as far as the pace of its lane goes. */
export interface ServerFeedback {
  /** A 429, or whatever else says that there was too much. */
  readonly isThrottled: boolean;
  /** The limits that it speaks of. Nothing may come from a cache. */
  readonly announced?: readonly AnnouncedLimit[] | undefined;
}

/** The breaker's permission that a grant carries; the limiter only passes it on. */
export interface GrantPermit {
  readonly jitterMs: number;
  report(result: CallResult): void;
  release(): void;
}

/** Where a grant goes back to. */
export interface GrantOwner {
  recordResponse(roleBudget: RoleBudget, feedback: ServerFeedback): void;
  stamp(roleBudget: RoleBudget, units: number, grantedUs: number): void;
  giveBack(roleBudget: RoleBudget, units: number): void;
  freeSlots(roleBudget: RoleBudget): void;
}

/** Granted; stamped or given back, with its slots still out; over but for its stamp; or over. */
export type GrantState = "granted" | "settled" | "unstamped" | "over";

/**
 * Leave to send one request, with a slot in everything it passed.
 * Each way out is taken once; what comes after it changes nothing.
 */
export class Grant implements Disposable {
  /** How long the request waited for it. */
  readonly waitedMs: number;
  /** How much of that no rate accounts for: it was for a slot, or for its turn. */
  slotWaitMs = 0;
  readonly #owner: GrantOwner;
  readonly #roleBudget: RoleBudget;
  readonly #units: number;
  readonly #permit: GrantPermit | undefined;
  readonly #grantedUs: number;
  #state: GrantState;

  constructor(
    owner: GrantOwner,
    roleBudget: RoleBudget,
    units: number,
    waitedMs: number,
    permit: GrantPermit | undefined,
    state: GrantState,
    grantedUs: number,
  ) {
    this.#owner = owner;
    this.#roleBudget = roleBudget;
    this.#units = units;
    this.waitedMs = waitedMs;
    this.#permit = permit;
    this.#state = state;
    this.#grantedUs = grantedUs;
  }

  get isGranted(): true {
    return true;
  }

  /** The host or group whose budget was drawn on. */
  get host(): string {
    return this.#roleBudget.name;
  }

  get role(): Role {
    return this.#roleBudget.role;
  }

  /** How long a probe of a half-open circuit should wait before it goes; 0 for every other request. */
  get jitterMs(): number {
    return this.#permit?.jitterMs ?? 0;
  }

  /** How the call ended, for the breakers. Once; without it the end says nothing about the host. */
  report(result: CallResult): void {
    this.#permit?.report(result);
  }

  /** There is an answer: it counts for the pace of the lane, which learns the limits that it announces. Say it once. */
  recordResponse(feedback: ServerFeedback): void {
    this.#owner.recordResponse(this.#roleBudget, feedback);
  }

  /** The request's headers are being written now: this is the instant its server counts. */
  written(): void {
    if (this.#state !== "granted" && this.#state !== "unstamped") return;
    this.#state = this.#state === "granted" ? "settled" : "over";
    this.#owner.stamp(this.#roleBudget, this.#units, this.#grantedUs);
  }

  /** The request and its body have ended: its slots are free. One that was never said to be written counts as written now. */
  release(): void {
    if (this.#state === "over" || this.#state === "unstamped") return;
    this.written();
    this.#state = "over";
    this.#permit?.release();
    this.#owner.freeSlots(this.#roleBudget);
  }

  /** The same for one that was dropped and whose server may notice it only in a moment: say `written` when it has. */
  releaseUnstamped(): void {
    if (this.#state !== "granted") {
      this.release();
      return;
    }
    this.#state = "unstamped";
    this.#permit?.release();
    this.#owner.freeSlots(this.#roleBudget);
  }

  /** Nothing was written: everything goes back as if it had never been taken. Too late once it was written. */
  giveBack(): void {
    if (this.#state === "granted") {
      this.#state = "settled";
      this.#owner.giveBack(this.#roleBudget, this.#units);
    }
    this.release();
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** A refusal as a value: it costs no stack trace and says when to come back. */
export interface Refusal {
  readonly isGranted: false;
  /** Undefined when nobody can know. */
  readonly retryAfterMs: number | undefined;
  readonly constraint: Constraint;
}
