import Bottleneck from "bottleneck";
import Redis from "ioredis";
import type { Client, ClientSetup } from "../client.ts";
import type { RaceWindow } from "../limits.ts";
import { peerClient } from "../peer.ts";

/** The default `timeout` of a Bottleneck group. */
const GROUP_TIMEOUT_MS = 300_000;

/**
 * As in its guide: `minTime` for the short window, a reservoir that is refilled for the long one, a chain for shared
 * limits, a group for several hosts, and its clustering for several processes.
 */
export async function open(setup: ClientSetup): Promise<Client> {
  const { limits, store } = setup;
  const shared = store?.startsWith("redis:") ? clustering(store) : {};
  const groupOf = (id: string, windows: readonly RaceWindow[]) =>
    new Bottleneck.Group({ ...optionsOf(windows), ...shared, id, timeout: keptMs(windows) });
  const groups = {
    metadata: groupOf("metadata", limits.metadata),
    artifact: groupOf("artifact", limits.artifact ?? []),
  };
  const totals = limits.total && groupOf("total", limits.total);
  const runnerOf = (host: string, role: keyof typeof groups) => {
    const limiter = groups[role].key(host);
    if (totals !== undefined) limiter.chain(totals.key(host));
    return <Result>(task: () => Promise<Result>) => limiter.schedule(task);
  };
  return peerClient(setup, runnerOf);
}

function optionsOf(windows: readonly RaceWindow[]): Bottleneck.ConstructorOptions {
  const [short, long, ...others] = windows.toSorted((a, b) => a.windowMs - b.windowMs);
  if (others.length > 0) throw new RangeError("bottleneck has a spacing and a reservoir, for two windows at the most");
  return {
    ...(short && { minTime: Math.ceil(short.windowMs / short.limit) }),
    ...(long && {
      reservoir: long.limit,
      reservoirRefreshAmount: long.limit,
      reservoirRefreshInterval: long.windowMs,
    }),
  };
}

/** A group drops a limiter that started no job for this long, with its queue. So it is longer than any window. */
function keptMs(windows: readonly RaceWindow[]): number {
  return Math.max(GROUP_TIMEOUT_MS, ...windows.map(({ windowMs }) => 2 * windowMs));
}

function clustering(url: string): Bottleneck.ConstructorOptions {
  const { hostname, port } = new URL(url);
  return { datastore: "ioredis", Redis, clientOptions: { host: hostname, port: Number(port) } };
}
