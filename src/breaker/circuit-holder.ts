import {
  admits,
  adopt,
  type Circuit,
  type CircuitPolicy,
  CLOSED,
  close,
  fail,
  returnProbe,
  sendProbe,
  settle,
  succeed,
} from "../core/breaker/circuit.ts";
import type { CircuitName } from "./breaker-events.ts";

/** Hears of every change: of state, or of a probe's place that is free again; and whether time alone has done it. */
export type CircuitChange = (holder: CircuitHolder, old: Circuit, isByTime: boolean) => void;

/** The state of one circuit as it changes: the pure steps of the core, in one place that can be shared. */
export class CircuitHolder {
  readonly name: CircuitName;
  /** Another one after the policy was changed; the state stays. */
  policy: CircuitPolicy;
  readonly #changed: CircuitChange;
  #circuit: Circuit = CLOSED;

  constructor(name: CircuitName, policy: CircuitPolicy, changed: CircuitChange) {
    this.name = name;
    this.policy = policy;
    this.#changed = changed;
  }

  /** As it is now, after what time alone has done to it. */
  at(nowUs: number): Circuit {
    this.#become(settle(this.#circuit, nowUs), true);
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
    this.#become(succeed(this.#circuit, this.policy, generation, probeId));
  }

  fail(generation: number, policy: CircuitPolicy, nowUs: number, chance: number): void {
    this.#become(fail(this.#circuit, policy, generation, nowUs, chance));
  }

  returnProbe(generation: number, probeId: number | undefined): void {
    this.#become(returnProbe(this.#circuit, generation, probeId));
  }

  /** What other processes have made of it. */
  adopt(other: Parameters<typeof adopt>[1], nowUs: number): void {
    this.#become(adopt(this.#circuit, other, nowUs));
  }

  close(): void {
    this.#become(close(this.#circuit));
  }

  #become(next: Circuit, isByTime = false): void {
    if (next === this.#circuit) return;
    const old = this.#circuit;
    this.#circuit = next;
    this.#changed(this, old, isByTime);
  }
}
