import {
  admits,
  adopt,
  advance,
  answer,
  type Circuit,
  type CircuitPolicy,
  CLOSED,
  close,
  type FailureKind,
  fail,
  hasFailures,
  oldestProbe,
  type Probe,
  returnProbe,
  sendProbe,
  succeed,
  succeedElsewhere,
} from "../core/breaker/circuit.ts";
import { ThrottleEvents } from "../core/breaker/failure-window.ts";
import type { OpenReason } from "../errors.ts";
import type { ChangeOrigin } from "./breaker-change.ts";
import type { CircuitName, CircuitState } from "./breaker-events.ts";
import type { PassedCircuit } from "./permit.ts";

/** Called after each change of the state or of its counts, and when a probe ends. Not called when a probe is sent. */
export type OnCircuitChange = (holder: CircuitHolder, old: Circuit, origin: ChangeOrigin) => void;

/** An order of an operator for a limited time: a host or circuit is open, or the calls of a role are held. */
export interface TimedOrder {
  readonly untilUs: number;
  readonly reason: OpenReason;
}

/** The current state of one circuit. The steps themselves are pure functions of the core. */
export class CircuitHolder {
  readonly name: CircuitName;
  /** Replaced by a reload; the state stays. */
  policy: CircuitPolicy;
  /**
   * The shared record may have failures of this circuit, from this process or its peers. The next success resets them.
   */
  hasSharedFailures = false;
  readonly #onChange: OnCircuitChange;
  #circuit: Circuit = CLOSED;
  #order: TimedOrder | undefined;
  #openedUs: number | undefined;
  /** Created on first use: only circuits of resolvers have one. */
  #throttles: ThrottleEvents | undefined;
  #passed: PassedCircuit | undefined;

  constructor(name: CircuitName, policy: CircuitPolicy, onChange: OnCircuitChange) {
    this.name = name;
    this.policy = policy;
    this.#onChange = onChange;
  }

  /** The state at `nowUs`, after the timeouts that have ended by then. */
  at(nowUs: number): Circuit {
    this.#set(advance(this.#circuit, nowUs), "timeout");
    return this.#circuit;
  }

  admits(nowUs: number): boolean {
    return admits(this.at(nowUs), this.policy) && (this.#order === undefined || this.orderAt(nowUs) === undefined);
  }

  /** The running order of an operator to open this circuit, if any. */
  orderAt(nowUs: number): TimedOrder | undefined {
    return this.#order !== undefined && this.#order.untilUs > nowUs ? this.#order : undefined;
  }

  /** Whether failures or an order keep it open for a time that is not over. Unlike `at` it changes nothing. */
  isHeldOpen(nowUs: number): boolean {
    const isOpen = this.#circuit.kind === "open" && this.#circuit.untilUs > nowUs;
    return isOpen || this.orderAt(nowUs) !== undefined;
  }

  setOrder(order: TimedOrder | undefined): void {
    this.#order = order;
  }

  /**
   * Whether the throttle of a call with this permit is part of a burst that was counted. Only for a resolver: for a host,
   * `HostBreaker` counts.
   */
  isThrottleCounted(permit: number): boolean {
    return this.#throttles?.isCounted(permit) ?? false;
  }

  countThrottle(lastPermit: number): void {
    this.#throttles ??= new ThrottleEvents();
    this.#throttles.count(lastPermit);
  }

  /** True if a new circuit would behave the same, so that this one may be evicted (law L11). */
  get isFresh(): boolean {
    const isUnused = this.#circuit.kind === "closed" && !hasFailures(this.#circuit);
    return isUnused && this.#order === undefined && !this.hasSharedFailures;
  }

  get isClosed(): boolean {
    return this.#circuit.kind === "closed";
  }

  /** Open or half-open for this process alone, by calls that never reached the host. */
  get isLocalOnly(): boolean {
    return this.#circuit.kind !== "closed" && this.#circuit.isLocalOnly === true;
  }

  /** When calls of this process last opened it; undefined if they did not since it was closed. */
  get openedUs(): number | undefined {
    return this.#openedUs;
  }

  /** Whether calls of this process have opened it after that instant, and nothing has closed it since. */
  isOpenedSince(instantUs: number): boolean {
    return this.#openedUs !== undefined && this.#openedUs > instantUs;
  }

  /** For a call that passes now and is no probe. One object for all calls of a generation. */
  get passed(): PassedCircuit {
    const { generation } = this.#circuit;
    if (this.#passed?.generation !== generation) this.#passed = { holder: this, generation, isProbe: false };
    return this.#passed;
  }

  get generation(): number {
    return this.#circuit.generation;
  }

  sendProbe(probe: Probe): void {
    this.#circuit = sendProbe(this.#circuit, probe);
  }

  /** @param permit the number of the call's permit; 0 for a result without one, which counts for the oldest probe */
  succeed(generation: number, permit?: number): void {
    this.#set(succeed(this.#circuit, this.policy, generation, this.#probeOf(permit)), "local");
  }

  /** As `succeed`. */
  answer(generation: number, permit?: number): void {
    this.#set(answer(this.#circuit, this.policy, generation, this.#probeOf(permit)), "local");
  }

  fail(generation: number, policy: CircuitPolicy, nowUs: number, random: number, kind: FailureKind): void {
    const next = fail(this.#circuit, policy, generation, nowUs, random, kind);
    if (next !== this.#circuit && next.kind === "open") this.#openedUs = nowUs;
    this.#set(next, "local");
  }

  /** A call of another process has succeeded. */
  succeedElsewhere(): void {
    this.#set(succeedElsewhere(this.#circuit), "peer");
  }

  /** @param permit as for `succeed` */
  returnProbe(generation: number, permit: number): void {
    this.#set(returnProbe(this.#circuit, generation, this.#probeOf(permit)), "local");
  }

  #probeOf(permit: number | undefined): number | undefined {
    return permit === 0 ? oldestProbe(this.#circuit) : permit;
  }

  /** Takes over the state that the record of the peers holds. */
  adopt(other: Parameters<typeof adopt>[1], nowUs: number, origin: ChangeOrigin): void {
    this.#set(adopt(this.#circuit, other, nowUs), origin);
  }

  /** Also clears `hasSharedFailures`: the counts in the shared record are cleared too. An operator's order stays. */
  close(origin: ChangeOrigin): void {
    this.hasSharedFailures = false;
    this.#set(close(this.#circuit), origin);
  }

  /** The next calls are trial calls, whatever the state was. An operator's order stays. */
  halfOpen(nowUs: number, origin: ChangeOrigin): void {
    this.close(origin);
    this.#set(adopt(this.#circuit, { isClosed: false, untilUs: nowUs, reopened: 0, probes: [] }, nowUs), origin);
  }

  #set(next: Circuit, origin: ChangeOrigin): void {
    if (next === this.#circuit) return;
    const old = this.#circuit;
    this.#circuit = next;
    if (next.kind === "closed") this.#openedUs = undefined;
    this.#onChange(this, old, origin);
  }
}

/** Failures that count toward opening: consecutive ones or throttles, whichever are more; 0 unless closed. */
export function failuresOf(circuit: Circuit): number {
  return circuit.kind === "closed" ? Math.max(circuit.failures, circuit.throttles) : 0;
}

export function stateName(circuit: Circuit): CircuitState {
  return circuit.kind === "half-open" ? "half_open" : circuit.kind;
}
