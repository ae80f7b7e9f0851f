import type { Constraint } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { Lane } from "./budget.ts";

/** Where a grant goes back to. */
export interface GrantKeeper {
  stamp(lane: Lane, units: number): void;
  giveBack(lane: Lane, units: number): void;
  freeSlots(lane: Lane): void;
}

/**
 * Leave to send one request, with a slot in everything it passed.
 * Each way out is taken once; what comes after it changes nothing.
 */
export class Grant implements Disposable {
  /** How long the request waited for it. */
  readonly waitedMs: number;
  readonly #keeper: GrantKeeper;
  readonly #lane: Lane;
  readonly #units: number;
  #state: "granted" | "settled" | "over" = "granted";

  constructor(keeper: GrantKeeper, lane: Lane, units: number, waitedMs: number) {
    this.#keeper = keeper;
    this.#lane = lane;
    this.#units = units;
    this.waitedMs = waitedMs;
  }

  get isGranted(): true {
    return true;
  }

  /** The host or group whose budget was drawn on. */
  get host(): string {
    return this.#lane.name;
  }

  get role(): Role {
    return this.#lane.role;
  }

  /** The request's headers are being written now: this is the instant its server counts. */
  written(): void {
    if (this.#state !== "granted") return;
    this.#state = "settled";
    this.#keeper.stamp(this.#lane, this.#units);
  }

  /** The request and its body have ended: its slots are free. One that was never said to be written counts as written now. */
  release(): void {
    if (this.#state === "over") return;
    this.written();
    this.#state = "over";
    this.#keeper.freeSlots(this.#lane);
  }

  /** Nothing was written: everything goes back as if it had never been taken. Too late once it was written. */
  giveBack(): void {
    if (this.#state === "granted") {
      this.#state = "settled";
      this.#keeper.giveBack(this.#lane, this.#units);
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
