import type { HostBreaker } from "./host-breaker.ts";

/** The hosts and services whose breaker state decides about a call. Most calls have one: their host. */
export interface CallUnits {
  /** The owner of the call's circuits: a host or a service. */
  readonly circuit: HostBreaker;
  /** What a cooldown that the answer causes blocks: everything that shares the service, or the host. */
  readonly cooldown: HostBreaker;
  /** The host itself, if it is neither of the two and has state: an operator may have opened it alone. */
  readonly host: HostBreaker | undefined;
  /** For a call of a partition: what it is a partition of. Only an operator's order for these applies to it. */
  readonly common: readonly HostBreaker[];
  /** Calls that would be refused are reported and sent. */
  readonly isShadow: boolean;
}

/** For calls that belong to no partition. */
export const NO_COMMON_UNITS: readonly HostBreaker[] = [];

/** Everything that a cooldown may have held: the units, and for a partition what it is a partition of. */
export function allUnits(units: CallUnits): readonly HostBreaker[] {
  return units.common.length === 0 ? distinctUnits(units) : [...distinctUnits(units), ...units.common];
}

/** Each unit once. */
export function distinctUnits({ circuit, cooldown, host }: CallUnits): readonly HostBreaker[] {
  const units = circuit === cooldown ? [circuit] : [circuit, cooldown];
  return host === undefined ? units : [...units, host];
}
