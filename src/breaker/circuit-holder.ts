import {
  admits,
  adopt,
  advance,
  type Circuit,
  type CircuitPolicy,
  CLOSED,
  close,
  fail,
  returnProbe,
  sendProbe,
  succeed,
} from "../core/breaker/circuit.ts";
import type { CircuitName } from "./breaker-events.ts";

/** Hears of every change: of state, or of a probe's place that is free again; and whether time alone has done it. */
export type OnCircuitChange = (holder: CircuitHolder, old: Circuit, isTimeout: boolean) => void;

/** The state of one circuit as it changes: the pure steps of the core, in one place that can be shared. */
export class CircuitHolder {
  readonly name: CircuitName;
  /** Another one after the policy was changed; the state stays. */
  policy: CircuitPolicy;
  readonly #onChange: OnCircuitChange;
  #circuit: Circuit = CLOSED;

  constructor(name: CircuitName, policy: CircuitPolicy, onChange: OnCircuitChange) {
    this.name = name;
    this.policy = policy;
    this.#onChange = onChange;
  }

  /** As it is now, after what time alone has done to it. */
  at(nowUs: number): Circuit {
    this.#set(advance(this.#circuit, nowUs), true);
    return this.#circuit;
  }

  admits(nowUs: number): boolean {
    return admits(this.at(nowUs), this.policy);
  }

  /** Only what no longer differs from a fresh one need not be remembered. */
  get isFresh(): boolean {
    return this.#circuit.kind === "closed" && this.#circuit.failures === 0;
  }

  get isClosed(): boolean {
    return this.#circuit.kind === "closed";
  }

  get generation(): number {
    return this.#circuit.generation;
  }

  sendProbe(id: number, expiresUs: number): void {
    this.#circuit = sendProbe(this.#circuit, { id, expiresUs });
  }

  succeed(generation: number, probeId?: number): void {
    this.#set(succeed(this.#circuit, this.policy, generation, probeId));
  }

  fail(generation: number, policy: CircuitPolicy, nowUs: number, random: number): void {
    this.#set(fail(this.#circuit, policy, generation, nowUs, random));
  }

  returnProbe(generation: number, probeId: number | undefined): void {
    this.#set(returnProbe(this.#circuit, generation, probeId));
  }

  /** What other processes have made of it. */
  adopt(other: Parameters<typeof adopt>[1], nowUs: number): void {
    this.#set(adopt(this.#circuit, other, nowUs));
  }

  close(): void {
    this.#set(close(this.#circuit));
  }

  #set(next: Circuit, isTimeout = false): void {
    if (next === this.#circuit) return;
    const old = this.#circuit;
    this.#circuit = next;
    this.#onChange(this, old, isTimeout);
  }
}
