import type { CircuitHolder } from "../breaker/circuit-holder.ts";
import type { Circuit } from "../core/breaker/circuit.ts";
import type { Timer } from "../time/time.ts";

/** The permission to send a probe that no call has used yet, or the reason why there is none. */
export type ProbePermission =
  | { readonly kind: "requested"; readonly reply: Promise<void> }
  /** `serial`: that of the circuit's record with the lease. Infinity if the store could not be asked. */
  | { readonly kind: "granted"; readonly id: string; readonly serial: number; readonly returnTimer: Timer }
  | { readonly kind: "refused"; readonly untilUs: number };

/** The probes that this process has leased from the store, or has asked it for, by circuit. */
export class ProbeLeases {
  readonly #permissions = new WeakMap<CircuitHolder, ProbePermission>();
  /** The circuits with a granted permission. */
  readonly #granted = new Set<CircuitHolder>();
  /** Probes in flight: their ids in the store, by circuit and permit. */
  readonly #inFlight = new WeakMap<CircuitHolder, Map<number, string>>();

  permissionOf(circuit: CircuitHolder): ProbePermission | undefined {
    return this.#permissions.get(circuit);
  }

  setPermission(circuit: CircuitHolder, permission: ProbePermission | undefined): void {
    if (permission === undefined) this.#permissions.delete(circuit);
    else this.#permissions.set(circuit, permission);
    if (permission?.kind === "granted") this.#granted.add(circuit);
    else this.#granted.delete(circuit);
  }

  /** The call with this permit sends a probe, with the permission if there is one. */
  use(circuit: CircuitHolder, permit: number): void {
    const permission = this.#permissions.get(circuit);
    if (permission?.kind !== "granted") return;
    permission.returnTimer.cancel();
    this.setPermission(circuit, undefined);
    const probes = this.#inFlight.get(circuit) ?? new Map<number, string>();
    probes.set(permit, permission.id);
    this.#inFlight.set(circuit, probes);
  }

  /** Takes back every permission that no call has used. The leases of these ids are to be returned. */
  takeUnused(): readonly { readonly circuit: CircuitHolder; readonly id: string }[] {
    return [...this.#granted].flatMap(circuit => {
      const permission = this.#permissions.get(circuit);
      this.setPermission(circuit, undefined);
      if (permission?.kind !== "granted") return [];
      permission.returnTimer.cancel();
      return [{ circuit, id: permission.id }];
    });
  }

  /** The id of the oldest probe in flight. */
  oldestOf(circuit: CircuitHolder): string | undefined {
    const [oldest] = this.#inFlight.get(circuit)?.values() ?? [];
    return oldest;
  }

  /** Forgets the probes that the circuit no longer has in its new state. Returns those whose leases are to be returned. */
  takeEnded(circuit: CircuitHolder, now: Circuit): readonly string[] {
    const probes = this.#inFlight.get(circuit);
    if (probes === undefined) return [];
    const left = new Set(now.kind === "half-open" ? now.probes.map(({ id }) => id) : []);
    const ended = [...probes].filter(([permit]) => !left.has(permit));
    for (const [permit] of ended) probes.delete(permit);
    if (probes.size === 0) this.#inFlight.delete(circuit);
    // The record of a circuit that has closed or opened for all has no probes.
    const isKept = now.kind === "half-open" || (now.kind === "open" && now.isLocalOnly);
    return isKept ? ended.map(([, id]) => id) : [];
  }
}
