import type { CallResult } from "../core/breaker/call-result.ts";
import type { Role } from "../policy/roles.ts";
import type { CallOwners } from "./breaker-table.ts";
import type { CircuitHolder } from "./circuit-holder.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { RampUp } from "./ramp-up.ts";

/**
 * Permission to make one call. It ends once: by `report`, by `release`, or at the end of its `using` block.
 * Later calls of `report` and `release` have no effect.
 */
export interface BreakerPermit extends Disposable {
  /** Always true; distinguishes a permit from a `BreakerDenial`. */
  readonly isAllowed: true;
  /**
   * Milliseconds to wait before the call is sent, so that the trial calls of several processes do not arrive together.
   * For a trial call of a half-open circuit, and for a trial call after a cooldown, a random integer from 0 to
   * `half_open.jitter_ms`; otherwise 0.
   */
  readonly jitterMs: number;
  /**
   * Ends the permit with the result of the call, which may open or close the circuit.
   * @throws TypeError if the outcome is not one that `classify` returns; the permit stays valid.
   */
  report(result: CallResult): void;
  /** Ends the permit without a result: the call was not made, or its end says nothing about the host. */
  release(): void;
}

/** A circuit that a call has passed, and the generation of the circuit at that moment (law B3). */
export interface PassedCircuit {
  readonly holder: CircuitHolder;
  readonly generation: number;
  readonly isProbe: boolean;
}

/** When a call was sent, to measure how long its answer takes. */
export interface CallLatency {
  /** When it was sent, after its jitter, in monotonic microseconds. */
  readonly sentUs: number;
  /** Set when the response began: a later report of the same call does not count it again. */
  isCounted: boolean;
}

/** A call that has a permit, or the call of a result that was reported without one: its `number` is 0. */
export interface IssuedCall {
  /**
   * Grows with each permit of the process, so that it shows whether a permit is older than a cooldown. It is also the
   * id of the call's probes.
   */
  readonly number: number;
  /** The owner of its circuits. */
  readonly host: HostBreaker;
  /** The host or service whose cooldown the answer can start; usually equal to `host`. */
  readonly cooldownHost: HostBreaker;
  readonly role: Role;
  readonly circuit: PassedCircuit;
  readonly resolver: PassedCircuit | undefined;
  /** Undefined if slow calls do not count. */
  readonly latency: CallLatency | undefined;
  /** The ramp-ups that have admitted the call. */
  readonly rampUps: readonly RampUp[];
}

/** Applies the progress of a call to its host and its circuits. */
export interface PermitOwner {
  settle(call: IssuedCall, result: CallResult): void;
  responseBegan(call: IssuedCall): void;
  release(call: IssuedCall): void;
}

/** A permit is also the `IssuedCall`: every call needs both, so one object saves memory. */
export class Permit implements BreakerPermit, IssuedCall {
  readonly number: number;
  readonly host: HostBreaker;
  readonly cooldownHost: HostBreaker;
  readonly role: Role;
  readonly circuit: PassedCircuit;
  readonly resolver: PassedCircuit | undefined;
  readonly latency: CallLatency | undefined;
  readonly rampUps: readonly RampUp[];
  readonly jitterMs: number;
  readonly #owner: PermitOwner;
  #isOver = false;

  constructor(
    owner: PermitOwner,
    number: number,
    { circuit: host, cooldown }: CallOwners,
    role: Role,
    circuit: PassedCircuit,
    resolver: PassedCircuit | undefined,
    latency: CallLatency | undefined,
    rampUps: readonly RampUp[],
    jitterMs: number,
  ) {
    this.#owner = owner;
    this.number = number;
    this.host = host;
    this.cooldownHost = cooldown;
    this.role = role;
    this.circuit = circuit;
    this.resolver = resolver;
    this.latency = latency;
    this.rampUps = rampUps;
    this.jitterMs = jitterMs;
  }

  get isAllowed(): true {
    return true;
  }

  /** Name of the host or service, or of a partition of it, whose cooldowns hold back the call. */
  get cooldownKey(): string {
    return this.cooldownHost.name;
  }

  /** True for a trial call of a half-open circuit, of the host or of the resolver. */
  get isProbe(): boolean {
    return this.circuit.isProbe || this.resolver?.isProbe === true;
  }

  /**
   * The gate reports how long the call has waited for its rate limits, for `breaker_state_change.last_rate_delay_ms`.
   */
  recordWait(waitedMs: number): void {
    this.host.lastRateDelayMs = waitedMs;
  }

  /** The headers of a response that is no failure have arrived. More calls may follow now; the body may take minutes. */
  answered(): void {
    if (!this.#isOver && (this.rampUps.length > 0 || this.latency !== undefined)) this.#owner.responseBegan(this);
  }

  report(result: CallResult): void {
    if (this.#isOver) return;
    checkOutcome(result);
    this.#isOver = true;
    this.#owner.settle(this, result);
  }

  release(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.release(this);
  }

  [Symbol.dispose](): void {
    this.release();
  }
}

/** Any other outcome would count as a failure, also the text "success". */
function checkOutcome(result: CallResult | undefined): void {
  const outcome = result?.outcome;
  const kind = outcome?.kind;
  if (kind === "success" || kind === "failure" || kind === "neutral") return;
  const found = JSON.stringify(outcome) ?? "no outcome";
  throw new TypeError(
    `report: expected { outcome } with an outcome that classify returns, such as { kind: "success" }, got ${found}`,
  );
}
