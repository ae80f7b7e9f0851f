/** What a server allows, in the words that both ends of the race share. */

export type RaceRole = "metadata" | "artifact";

export interface RaceWindow {
  readonly limit: number;
  readonly windowMs: number;
}

/** `total` holds over all roles. A role that is not listed is not asked for. */
export interface RaceLimits {
  readonly total?: readonly RaceWindow[];
  readonly metadata: readonly RaceWindow[];
  readonly artifact?: readonly RaceWindow[];
}

/** What each of several processes may do that cannot see each other. */
export function shareOf(limits: RaceLimits, processes: number): RaceLimits {
  const divided = (windows: readonly RaceWindow[]) =>
    windows.map(({ limit, windowMs }) => ({ limit: Math.max(1, Math.floor(limit / processes)), windowMs }));
  return {
    metadata: divided(limits.metadata),
    ...(limits.artifact && { artifact: divided(limits.artifact) }),
    ...(limits.total && { total: divided(limits.total) }),
  };
}

/** `10/SECOND` and the like, as our policy reads it. */
export function rateOf({ limit, windowMs }: RaceWindow): string {
  return `${limit}/${windowMs}ms`;
}
