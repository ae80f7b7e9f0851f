import type { Probe } from "./circuit.ts";

/**
 * How traffic resumes after a cooldown (law B12): a few calls at first, then twice as many each time that all of them
 * were answered. A failure starts again with the first few.
 * Pure: each function takes a ramp and returns the next one, or the same object when nothing changed.
 */
export interface Ramp {
  /** Calls that may wait for an answer at the same time. */
  readonly limit: number;
  /** Calls that were answered since the limit was last changed. */
  readonly answered: number;
  /** The calls that wait for an answer. Leased, because a caller may never report. */
  readonly calls: readonly Probe[];
}

export interface RampPolicy {
  /** The first limit. */
  readonly trialCalls: number;
  /** The ramp is over when its limit reaches this number. */
  readonly maxCalls: number;
}

/** Undefined where no ramp is needed. */
export function beginRamp({ trialCalls, maxCalls }: RampPolicy): Ramp | undefined {
  return trialCalls < maxCalls ? { limit: trialCalls, answered: 0, calls: [] } : undefined;
}

/** Ends the leases of calls that were never reported. */
export function advanceRamp(ramp: Ramp, nowUs: number): Ramp {
  if (ramp.calls.every(({ expiresUs }) => expiresUs > nowUs)) return ramp;
  return { ...ramp, calls: ramp.calls.filter(({ expiresUs }) => expiresUs > nowUs) };
}

export function rampAdmits({ calls, limit }: Ramp): boolean {
  return calls.length < limit;
}

/** Check `rampAdmits` first. */
export function enterRamp(ramp: Ramp, call: Probe): Ramp {
  return { ...ramp, calls: [...ramp.calls, call] };
}

/**
 * A call was answered without a failure. Undefined when the ramp is over. A call that the ramp did not admit changes
 * nothing.
 */
export function answerRamp(ramp: Ramp, { maxCalls }: RampPolicy, id: number): Ramp | undefined {
  const left = leaveRamp(ramp, id);
  if (left === ramp) return ramp;
  const answered = ramp.answered + 1;
  if (answered < ramp.limit) return { ...left, answered };
  const limit = ramp.limit * 2;
  return limit < maxCalls ? { ...left, limit, answered: 0 } : undefined;
}

/** A call has failed. */
export function failRamp(ramp: Ramp, { trialCalls }: RampPolicy, id: number): Ramp {
  return { ...leaveRamp(ramp, id), limit: trialCalls, answered: 0 };
}

/** A call has ended without an answer that says something about the host. */
export function leaveRamp(ramp: Ramp, id: number): Ramp {
  const calls = ramp.calls.filter(call => call.id !== id);
  return calls.length === ramp.calls.length ? ramp : { ...ramp, calls };
}
