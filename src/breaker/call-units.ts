import type { HostBreaker } from "./host-breaker.ts";

/** The hosts and services whose breaker state decides about a call. Most calls have one: their host. */
export interface CallUnits {
  /** The owner of the call's circuits: a host or a service. */
  readonly circuit: HostBreaker;
  /** What a cooldown that the answer causes blocks: everything that shares the service, or the host. */
  readonly cooldown: HostBreaker;
  /** The host itself, if it is neither of the two and has state: an operator may have opened it alone. */
  readonly host: HostBreaker | undefined;
}

/** Each unit once. */
export function distinctUnits({ circuit, cooldown, host }: CallUnits): readonly HostBreaker[] {
  const units = circuit === cooldown ? [circuit] : [circuit, cooldown];
  return host === undefined ? units : [...units, host];
}
