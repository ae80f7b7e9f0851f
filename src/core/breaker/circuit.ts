/**
 * One circuit: closed, open or half-open, each state with its own fields only (law B2).
 * Pure: each function takes a circuit and returns the next one. `advance`, `succeed` and `fail` return the same object
 * when nothing changed.
 *
 * The generation grows with each change of state, and when `close` resets the failures of a closed circuit. A permit
 * carries the generation in which it was issued; a result that arrives in a later generation has no effect (law B3).
 */
export type Circuit =
  | {
      readonly kind: "closed";
      readonly generation: number;
      /** Consecutive failures that were not throttles. */
      readonly failures: number;
      /** Failures among these that never reached the host: a success of another process does not reset them. */
      readonly unreached: number;
      /** Throttles since the last success. They are counted apart: a throttled host is not down (law B10). */
      readonly throttles: number;
    }
  | {
      readonly kind: "open";
      readonly generation: number;
      readonly untilUs: number;
      /** Probes that have failed since the circuit was last closed; each of them doubles the open time. */
      readonly reopened: number;
      /** Opened by failures that never reached the host, so that it applies to this process alone. Absent otherwise. */
      readonly isLocalOnly?: true;
      /** How the call that opened the circuit ended, for messages. Absent if it was a call of another process. */
      readonly lastFailure?: string;
    }
  | {
      readonly kind: "half-open";
      readonly generation: number;
      readonly probes: readonly Probe[];
      readonly successes: number;
      readonly reopened: number;
      readonly isLocalOnly?: true;
    };

/** A running probe. Leased, because its caller may never report. */
export interface Probe {
  readonly id: number;
  readonly sentUs: number;
  readonly expiresUs: number;
}

export interface CircuitPolicy {
  /** This many consecutive failures, or this many throttles without a success, open the circuit. */
  readonly failMax: number;
  /** How long the circuit stays open the first time. */
  readonly resetUs: number;
  /** Upper bound of a growing open time, before jitter. Has no effect if it is less than `resetUs`. */
  readonly resetCapUs: number;
  /** Probes that may run at the same time while the circuit is half-open. */
  readonly trialCalls: number;
  /** Successful probes that close the circuit. */
  readonly successThreshold: number;
  /** Doubles the open time with each failed probe, with jitter so that processes do not probe at the same time. */
  readonly isAdaptive: boolean;
}

export const CLOSED: Circuit = Object.freeze({
  kind: "closed",
  generation: 0,
  failures: 0,
  unreached: 0,
  throttles: 0,
});

/**
 * The jitter is at most a tenth of the open time. It is only added, so that no call is allowed before the announced
 * end.
 */
const JITTER_SHARE = 0.1;

/** An instant that was converted between two clocks is late by less than this. */
const CONVERSION_US = 1_000_000;

/** Applies the time that has passed: an open circuit becomes half-open, and expired leases end. */
export function advance(circuit: Circuit, nowUs: number): Circuit {
  if (circuit.kind === "closed") return circuit;
  if (circuit.kind === "open") {
    if (nowUs < circuit.untilUs) return circuit;
    const { generation, reopened } = circuit;
    return {
      kind: "half-open",
      generation: generation + 1,
      probes: [],
      successes: 0,
      reopened,
      ...localOnlyOf(circuit),
    };
  }
  if (circuit.probes.every(({ expiresUs }) => expiresUs > nowUs)) return circuit;
  return { ...circuit, probes: circuit.probes.filter(({ expiresUs }) => expiresUs > nowUs) };
}

/** True when the circuit allows one more call. Call `advance` first. */
export function admits(circuit: Circuit, policy: CircuitPolicy): boolean {
  if (circuit.kind === "closed") return true;
  return circuit.kind === "half-open" && circuit.probes.length < policy.trialCalls;
}

/** Adds a probe to a half-open circuit. Check `admits` first. */
export function sendProbe(circuit: Circuit, probe: Probe): Circuit {
  return circuit.kind === "half-open" ? { ...circuit, probes: [...circuit.probes, probe] } : circuit;
}

export function succeed(circuit: Circuit, policy: CircuitPolicy, generation: number, probeId?: number): Circuit {
  if (circuit.generation !== generation) return circuit;
  if (circuit.kind === "closed") {
    return hasFailures(circuit) ? { ...circuit, failures: 0, unreached: 0, throttles: 0 } : circuit;
  }
  if (circuit.kind === "open") return circuit;
  const successes = circuit.successes + 1;
  if (successes >= policy.successThreshold) return close(circuit);
  return returnProbe({ ...circuit, successes }, generation, probeId);
}

/**
 * A complete answer that is neither a success nor a failure shows that the host is alive (law B9): it closes a half-open
 * circuit as a success does. A closed circuit keeps its failures.
 */
export function answer(circuit: Circuit, policy: CircuitPolicy, generation: number, probeId?: number): Circuit {
  return circuit.kind === "half-open" ? succeed(circuit, policy, generation, probeId) : circuit;
}

/**
 * A call of another process has succeeded. Failures that never reached the host stay counted: they are faults of this
 * process.
 */
export function succeedElsewhere(circuit: Circuit): Circuit {
  if (circuit.kind !== "closed") return circuit;
  const { failures, unreached, throttles } = circuit;
  return failures === unreached && throttles === 0 ? circuit : { ...circuit, failures: unreached, throttles: 0 };
}

/** What a failed call says about its host. */
export interface FailureKind {
  /** The host works, and requires fewer requests. Report throttles that are one event only once. */
  readonly isThrottled: boolean;
  /** The call never reached the host. */
  readonly isUnreached: boolean;
  /** How the call ended, for messages: `HTTP 503`, or the code of its error. */
  readonly text?: string | undefined;
}

const PLAIN_FAILURE: FailureKind = Object.freeze({ isThrottled: false, isUnreached: false });

/** `random` in [0, 1) draws the jitter. */
export function fail(
  circuit: Circuit,
  policy: CircuitPolicy,
  generation: number,
  nowUs: number,
  random: number,
  { isThrottled, isUnreached, text } = PLAIN_FAILURE,
): Circuit {
  if (circuit.generation !== generation || circuit.kind === "open") return circuit;
  if (circuit.kind === "half-open") {
    const isLocalOnly = isUnreached || circuit.isLocalOnly === true;
    return openedBy(text, isLocalOnly, open(circuit, policy, circuit.reopened + 1, nowUs, random));
  }
  const failures = circuit.failures + (isThrottled ? 0 : 1);
  const unreached = circuit.unreached + (isUnreached && !isThrottled ? 1 : 0);
  const throttles = circuit.throttles + (isThrottled ? 1 : 0);
  if (Math.max(failures, throttles) < policy.failMax) return { ...circuit, failures, unreached, throttles };
  const isLocalOnly = failures - unreached < policy.failMax && throttles < policy.failMax;
  return openedBy(text, isLocalOnly, open(circuit, policy, 0, nowUs, random));
}

/** Removes a probe, so that another one can be sent before its lease ends. */
export function returnProbe(circuit: Circuit, generation: number, probeId: number | undefined): Circuit {
  if (circuit.kind !== "half-open" || circuit.generation !== generation) return circuit;
  return { ...circuit, probes: circuit.probes.filter(({ id }) => id !== probeId) };
}

/**
 * Applies the state that another process recorded: closed; open, if `untilUs` is in the future; otherwise half-open, with
 * the `probes` of other processes. Of two open times the later end counts. Probes of this process, whose ids are above 0,
 * are kept. A circuit that is open for this process alone is closed by its own calls only.
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
  if (isClosed) return circuit.kind === "closed" || circuit.isLocalOnly ? circuit : close(circuit);
  if (circuit.kind === "open" && circuit.untilUs > Math.max(untilUs, nowUs)) return circuit;
  if (untilUs > nowUs) {
    const lastFailure = circuit.kind === "open" ? circuit.lastFailure : undefined;
    return openedBy(lastFailure, false, { kind: "open", generation: circuit.generation + 1, untilUs, reopened });
  }
  const { generation, successes, own } =
    circuit.kind === "half-open"
      ? { ...circuit, own: circuit.probes.filter(({ id }) => id > 0) }
      : { generation: circuit.generation + 1, successes: 0, own: [] };
  return { kind: "half-open", generation, probes: [...own, ...probes], successes, reopened };
}

/**
 * The latest instant at which a circuit that refuses calls allows one: the end of its open time, or of the first probe
 * lease.
 */
export function nextAdmissionUs(circuit: Circuit): number {
  if (circuit.kind === "open") return circuit.untilUs;
  return circuit.kind === "half-open" ? firstLeaseEndUs(circuit.probes) : 0;
}

/** As `nextAdmissionUs`, with an estimate of when the first probe ends, which is mostly long before its lease does. */
export function estimatedAdmissionUs(circuit: Circuit, nowUs: number): number {
  return circuit.kind === "half-open" ? estimatedEndUs(circuit.probes, nowUs) : nextAdmissionUs(circuit);
}

export function firstLeaseEndUs(probes: readonly Probe[]): number {
  return Math.min(...probes.map(({ expiresUs }) => expiresUs));
}

/** A call in flight is expected to take as long again as it has taken so far, and at least this long. */
const LEAST_ESTIMATE_US = 1_000_000;

/**
 * When the first of these calls is expected to end. A caller that asks again at that instant doubles its pause each
 * time.
 */
export function estimatedEndUs(probes: readonly Probe[], nowUs: number): number {
  return Math.min(
    ...probes.map(({ sentUs, expiresUs }) => Math.min(expiresUs, nowUs + Math.max(LEAST_ESTIMATE_US, nowUs - sentUs))),
  );
}

export function oldestProbe(circuit: Circuit | undefined): number | undefined {
  return circuit?.kind === "half-open" ? circuit.probes[0]?.id : undefined;
}

/** Called when an operator or another process has closed the circuit, and when enough probes have succeeded. */
export function close(circuit: Circuit): Circuit {
  if (circuit.kind === "closed" && !hasFailures(circuit)) return circuit;
  return { kind: "closed", generation: circuit.generation + 1, failures: 0, unreached: 0, throttles: 0 };
}

/** Whether a closed circuit has counted anything that a success would reset. */
export function hasFailures(circuit: Circuit): boolean {
  return circuit.kind === "closed" && (circuit.failures > 0 || circuit.throttles > 0);
}

/**
 * The longest time for which a circuit can be open.
 * @param learnedUs the longest reset timeout that can be learned from Retry-After
 */
export function longestOpenUs({ resetUs, resetCapUs, isAdaptive }: CircuitPolicy, learnedUs: number): number {
  const openUs = isAdaptive ? Math.max(resetUs, resetCapUs, learnedUs) * (1 + JITTER_SHARE) : resetUs;
  return openUs + CONVERSION_US;
}

function localOnlyOf(circuit: Circuit): { readonly isLocalOnly?: true } {
  return circuit.kind !== "closed" && circuit.isLocalOnly ? { isLocalOnly: true } : {};
}

type OpenState = Extract<Circuit, { kind: "open" }>;

function openedBy(lastFailure: string | undefined, isLocalOnly: boolean, circuit: OpenState): OpenState {
  return { ...circuit, ...(isLocalOnly && { isLocalOnly }), ...(lastFailure !== undefined && { lastFailure }) };
}

function open(circuit: Circuit, policy: CircuitPolicy, reopened: number, nowUs: number, random: number): OpenState {
  const { resetUs, resetCapUs, isAdaptive } = policy;
  // The first open time has no jitter and no growth; only failed probes make it longer.
  const grownUs = isAdaptive ? Math.min(Math.max(resetUs, resetCapUs), resetUs * 2 ** reopened) : resetUs;
  const jitterUs = isAdaptive && reopened > 0 ? Math.floor(grownUs * JITTER_SHARE * random) : 0;
  return { kind: "open", generation: circuit.generation + 1, untilUs: nowUs + grownUs + jitterUs, reopened };
}

/**
 * Processes wait in monotonic time and publish deadlines in wall time (law B8).
 * Both clocks are read at the same moment.
 */
export interface ClockReading {
  readonly monotonicUs: number;
  readonly wallMs: number;
}

/** The deadline in epoch milliseconds, for events and tables. Rounded up, so that it is never early. */
export function wallDeadlineMs(deadlineUs: number, { monotonicUs, wallMs }: ClockReading): number {
  return wallMs + Math.ceil((deadlineUs - monotonicUs) / 1000);
}
