/**
 * One circuit: closed, open or half-open, each state with its own fields only (law B2).
 * Pure: a step takes a circuit and answers with the next one, or with the same when nothing changed.
 *
 * The generation counts the changes of state. A permit carries the one it was issued in, and a result that comes back
 * under another belongs to a past that is settled (law B3).
 */
export type Circuit =
  | { readonly kind: "closed"; readonly generation: number; readonly failures: number }
  | { readonly kind: "open"; readonly generation: number; readonly untilUs: number; readonly reopened: number }
  | {
      readonly kind: "half-open";
      readonly generation: number;
      readonly probes: readonly Probe[];
      readonly successes: number;
      readonly reopened: number;
    };

/** A trial call under way. Leased, because whoever made it may never come back. */
export interface Probe {
  readonly id: number;
  readonly expiresUs: number;
}

export interface CircuitPolicy {
  /** So many failures in a row open the circuit. */
  readonly failMax: number;
  readonly resetUs: number;
  /** An open time that grows stops growing here. */
  readonly resetCapUs: number;
  readonly trialCalls: number;
  /** So many probes in a row must succeed. */
  readonly successThreshold: number;
  /** Doubles the open time each time a probe fails, with some jitter so that a fleet does not return as one. */
  readonly isAdaptive: boolean;
}

export const CLOSED: Circuit = Object.freeze({ kind: "closed", generation: 0, failures: 0 });

/** A tenth of the open time at most, and only upward: nobody comes back before he was told. */
const JITTER_SHARE = 0.1;

/** What the passing of time alone does: an open circuit becomes half-open, and leases run out. */
export function advance(circuit: Circuit, nowUs: number): Circuit {
  if (circuit.kind === "closed") return circuit;
  if (circuit.kind === "open") {
    if (nowUs < circuit.untilUs) return circuit;
    const { generation, reopened } = circuit;
    return { kind: "half-open", generation: generation + 1, probes: [], successes: 0, reopened };
  }
  if (circuit.probes.every(({ expiresUs }) => expiresUs > nowUs)) return circuit;
  return { ...circuit, probes: circuit.probes.filter(({ expiresUs }) => expiresUs > nowUs) };
}

/** True when a settled circuit lets one more call through. */
export function admits(circuit: Circuit, policy: CircuitPolicy): boolean {
  if (circuit.kind === "closed") return true;
  return circuit.kind === "half-open" && circuit.probes.length < policy.trialCalls;
}

/** A probe goes out from a half-open circuit that admits it. */
export function sendProbe(circuit: Circuit, probe: Probe): Circuit {
  return circuit.kind === "half-open" ? { ...circuit, probes: [...circuit.probes, probe] } : circuit;
}

export function succeed(circuit: Circuit, policy: CircuitPolicy, generation: number, probeId?: number): Circuit {
  if (circuit.generation !== generation) return circuit;
  if (circuit.kind === "closed") return circuit.failures === 0 ? circuit : { ...circuit, failures: 0 };
  if (circuit.kind === "open") return circuit;
  const successes = circuit.successes + 1;
  if (successes >= policy.successThreshold) return close(circuit);
  return returnProbe({ ...circuit, successes }, generation, probeId);
}

/** `chance` in [0, 1) is the luck of the draw for the jitter. */
export function fail(
  circuit: Circuit,
  policy: CircuitPolicy,
  generation: number,
  nowUs: number,
  random: number,
): Circuit {
  if (circuit.generation !== generation || circuit.kind === "open") return circuit;
  if (circuit.kind === "half-open") return open(circuit, policy, circuit.reopened + 1, nowUs, random);
  const failures = circuit.failures + 1;
  return failures >= policy.failMax ? open(circuit, policy, 0, nowUs, random) : { ...circuit, failures };
}

/** Neither success nor failure: the probe's place is free again, at once. */
export function returnProbe(circuit: Circuit, generation: number, probeId: number | undefined): Circuit {
  if (circuit.kind !== "half-open" || circuit.generation !== generation) return circuit;
  return { ...circuit, probes: circuit.probes.filter(({ id }) => id !== probeId) };
}

/**
 * What other processes have made of it. Open until an instant, half-open after it with so many probes out elsewhere, or
 * closed. The probes of this process, whose ids are above 0, stay.
 */
export function adopt(
  circuit: Circuit,
  other: {
    readonly isClosed: boolean;
    readonly untilUs: number;
    readonly reopened: number;
    readonly probes: readonly Probe[];
  },
  nowUs: number,
): Circuit {
  const { isClosed, untilUs, reopened, probes } = other;
  if (isClosed) return circuit.kind === "closed" ? circuit : close(circuit);
  if (untilUs > nowUs) return { kind: "open", generation: circuit.generation + 1, untilUs, reopened };
  if (circuit.kind === "open" && circuit.untilUs > nowUs) return circuit;
  const { generation, successes, own } =
    circuit.kind === "half-open"
      ? { ...circuit, own: circuit.probes.filter(({ id }) => id > 0) }
      : { generation: circuit.generation + 1, successes: 0, own: [] };
  return { kind: "half-open", generation, probes: [...own, ...probes], successes, reopened };
}

/** When a circuit that admits nobody may do so again: the end of its open time, or of the first lease. */
export function nextAdmissionUs(circuit: Circuit): number {
  if (circuit.kind === "open") return circuit.untilUs;
  return circuit.kind === "half-open" ? Math.min(...circuit.probes.map(({ expiresUs }) => expiresUs)) : 0;
}

export function oldestProbe(circuit: Circuit | undefined): number | undefined {
  return circuit?.kind === "half-open" ? circuit.probes[0]?.id : undefined;
}

/** An operator's act, or the last probe that was needed. */
export function close(circuit: Circuit): Circuit {
  if (circuit.kind === "closed" && circuit.failures === 0) return circuit;
  return { kind: "closed", generation: circuit.generation + 1, failures: 0 };
}

function open(circuit: Circuit, policy: CircuitPolicy, reopened: number, nowUs: number, random: number): Circuit {
  const { resetUs, resetCapUs, isAdaptive } = policy;
  // The first opening is exact; only a host that stays down is left alone for longer.
  const grownUs = isAdaptive ? Math.min(Math.max(resetUs, resetCapUs), resetUs * 2 ** reopened) : resetUs;
  const jitterUs = isAdaptive && reopened > 0 ? Math.floor(grownUs * JITTER_SHARE * random) : 0;
  return { kind: "open", generation: circuit.generation + 1, untilUs: nowUs + grownUs + jitterUs, reopened };
}
