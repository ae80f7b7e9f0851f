/**
 * A client from another library: its limiter, with retry rules around it and fetch inside. Every attempt waits in the
 * limiter.
 */
import type { Client, ClientSetup } from "./client.ts";
import type { RaceRole, RaceWindow } from "./limits.ts";
import { withRetry } from "./retry.ts";
import { type PeerReply, sendBy } from "./send.ts";

/** Starts a task when the limiter allows it. */
export type TaskRunner = (task: () => Promise<PeerReply>) => Promise<PeerReply>;

/** Creates the limiter of a host and role; called once for each. */
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
 * For limiters with one window: nests the windows of a role and those of all roles, the longest outermost. In the other
 * order, calls that the longer window has delayed would start in a burst. The limiters of all roles are created once
 * for each host.
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
