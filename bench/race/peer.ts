/** A peer's limiter, the retry rules around it and fetch inside: every attempt waits for its turn. */
import type { Client, Setting } from "./client.ts";
import type { Role, Window } from "./limits.ts";
import { withRetry } from "./retry.ts";
import { type Reply, sendBy } from "./send.ts";

/** Starts a task when it is its turn. */
export type Turns = (task: () => Promise<Reply>) => Promise<Reply>;

/** Makes what takes turns for one host and role; asked once for each. */
export type TurnsOf = (host: string, role: Role) => Turns;

export function peerClient({ wire, random }: Setting, turnsOf: TurnsOf, close?: () => void): Client {
  const send = sendBy(wire);
  const known = new Map<string, Turns>();
  return {
    get(url, role) {
      const { host } = new URL(url);
      const key = `${role} ${host}`;
      const turns = known.get(key) ?? turnsOf(host, role);
      known.set(key, turns);
      return withRetry(() => turns(() => send(url)), random);
    },
    close: async () => close?.(),
  };
}

/**
 * For limiters of one window each: the windows of a role, then those of all roles, one inside the other, and of each the
 * longest outermost. The other way round, what the longer window held back would come out of it in a burst.
 * What counts for all roles of a host is made once for it.
 */
export function nested({ limits }: Setting, one: (window: Window) => Turns): TurnsOf {
  const totals = new Map<string, Turns>();
  const chained = (windows: readonly Window[], innermost: Turns) =>
    windows
      .toSorted((a, b) => a.windowMs - b.windowMs)
      .reduce((inner: Turns, window) => within(one(window), inner), innermost);
  return (host, role) => {
    const own = limits[role] ?? [];
    if (limits.total === undefined) return chained(own, straight);
    const total = totals.get(host) ?? chained(limits.total, straight);
    totals.set(host, total);
    return chained(own, total);
  };
}

export const straight: Turns = task => task();

function within(outer: Turns, inner: Turns): Turns {
  return task => outer(() => inner(task));
}
