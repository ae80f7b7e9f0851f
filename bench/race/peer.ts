/** A peer's limiter, the retry rules around it and fetch inside: every attempt waits for its turn. */
import type { Client, ClientSetup } from "./client.ts";
import type { RaceRole, RaceWindow } from "./limits.ts";
import { withRetry } from "./retry.ts";
import { type PeerReply, sendBy } from "./send.ts";

/** Starts a task when it is its turn. */
export type TaskRunner = (task: () => Promise<PeerReply>) => Promise<PeerReply>;

/** Makes what takes turns for one host and role; asked once for each. */
export type TaskRunnerOf = (host: string, role: RaceRole) => TaskRunner;

export function peerClient({ wire, random }: ClientSetup, runnerOf: TaskRunnerOf, close?: () => void): Client {
  const send = sendBy(wire);
  const known = new Map<string, TaskRunner>();
  return {
    get(url, role) {
      const { host } = new URL(url);
      const key = `${role} ${host}`;
      const runner = known.get(key) ?? runnerOf(host, role);
      known.set(key, runner);
      return withRetry(() => runner(() => send(url)), random);
    },
    close: async () => close?.(),
  };
}

/**
 * For limiters of one window each: the windows of a role, then those of all roles, one inside the other, and of each the
 * longest outermost. The other way round, what the longer window held back would come out of it in a burst.
 * What counts for all roles of a host is made once for it.
 */
export function nested({ limits }: ClientSetup, one: (window: RaceWindow) => TaskRunner): TaskRunnerOf {
  const totals = new Map<string, TaskRunner>();
  const chained = (windows: readonly RaceWindow[], innermost: TaskRunner) =>
    windows
      .toSorted((a, b) => a.windowMs - b.windowMs)
      .reduce((inner: TaskRunner, window) => within(one(window), inner), innermost);
  return (host, role) => {
    const own = limits[role] ?? [];
    if (limits.total === undefined) return chained(own, runAtOnce);
    const total = totals.get(host) ?? chained(limits.total, runAtOnce);
    totals.set(host, total);
    return chained(own, total);
  };
}

export const runAtOnce: TaskRunner = task => task();

function within(outer: TaskRunner, inner: TaskRunner): TaskRunner {
  return task => outer(() => inner(task));
}
