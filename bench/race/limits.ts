/** The limits of a server, in the form that clients and server use. */

export type RaceRole = "metadata" | "artifact";

export interface RaceWindow {
  readonly limit: number;
  readonly windowMs: number;
}

/** `total` applies to all roles together. A role that is not listed is not requested. */
export interface RaceLimits {
  readonly total?: readonly RaceWindow[];
  readonly metadata: readonly RaceWindow[];
  readonly artifact?: readonly RaceWindow[];
}

/** The share of one of several processes that do not share a store. */
export function shareOf(limits: RaceLimits, processes: number): RaceLimits {
  const divided = (windows: readonly RaceWindow[]) =>
    windows.map(({ limit, windowMs }) => ({ limit: Math.max(1, Math.floor(limit / processes)), windowMs }));
  return {
    metadata: divided(limits.metadata),
    ...(limits.artifact && { artifact: divided(limits.artifact) }),
    ...(limits.total && { total: divided(limits.total) }),
  };
}

/** In the form of the policy, such as `10/SECOND`. */
export function rateOf({ limit, windowMs }: RaceWindow): string {
  return `${limit}/${windowMs}ms`;
}
