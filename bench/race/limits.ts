/** What a server allows, in the words that both ends of the race share. */

export type Role = "metadata" | "artifact";

export interface Window {
  readonly limit: number;
  readonly windowMs: number;
}

/** `total` holds over all roles. A role that is not listed is not asked for. */
export interface Limits {
  readonly total?: readonly Window[];
  readonly metadata: readonly Window[];
  readonly artifact?: readonly Window[];
}

/** What each of several processes may do that cannot see each other. */
export function shareOf(limits: Limits, processes: number): Limits {
  const divided = (windows: readonly Window[]) =>
    windows.map(({ limit, windowMs }) => ({ limit: Math.max(1, Math.floor(limit / processes)), windowMs }));
  return {
    metadata: divided(limits.metadata),
    ...(limits.artifact && { artifact: divided(limits.artifact) }),
    ...(limits.total && { total: divided(limits.total) }),
  };
}

/** `10/SECOND` and the like, as our policy reads it. */
export function rateOf({ limit, windowMs }: Window): string {
  return `${limit}/${windowMs}ms`;
}
