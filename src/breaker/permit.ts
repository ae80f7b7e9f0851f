import type { CallResult } from "../core/breaker/call-result.ts";
import type { Role } from "../policy/roles.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { HostBreaker } from "./host-breaker.ts";

/** One circuit that a call passed, and the generation it passed in. */
export interface PassedCircuit {
  readonly holder: CircuitHolder;
  readonly generation: number;
  readonly isProbe: boolean;
}

/** A call that was let through. */
export interface IssuedCall {
  /** Counts all permits, so that it can be told which came before a cooldown. Names the call's probes, too. */
  readonly number: number;
  readonly host: HostBreaker;
  readonly role: Role;
  readonly circuit: PassedCircuit;
  readonly resolver: PassedCircuit | undefined;
}

/** Where a permit goes back to. */
export interface PermitOwner {
  settle(call: IssuedCall, result: CallResult): void;
  release(call: IssuedCall): void;
}

/** Leave to make one call. It ends once, by a report or by release; what comes after changes nothing. */
export class Permit implements Disposable {
  /** How long a probe should wait before it goes, so that a fleet's do not arrive as one. 0 while closed. */
  readonly jitterMs: number;
  readonly #owner: PermitOwner;
  readonly #call: IssuedCall;
  #isOver = false;

  constructor(owner: PermitOwner, call: IssuedCall, jitterMs: number) {
    this.#owner = owner;
    this.#call = call;
    this.jitterMs = jitterMs;
  }

  get isAllowed(): true {
    return true;
  }

  /** The gate says how long the call had waited for it. */
  recordWait(waitedMs: number): void {
    this.#call.host.lastRateDelayMs = waitedMs;
  }

  report(result: CallResult): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.settle(this.#call, result);
  }

  /** Nothing was learned: no call was made, or its end says nothing about the host. */
  release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.release(this.#call);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}
