import type { Time } from "../../time/time.ts";
import { connectCluster } from "./redis-cluster.ts";
import { connectData } from "./redis-history.ts";
import { subscribeAt } from "./redis-node.ts";
import { connectPrimary } from "./redis-sentinel.ts";
import type { RedisAddress } from "./redis-url.ts";

export interface RedisDriverOptions {
  /** The time limit for opening one connection, including the login. */
  readonly timeoutMs: number;
  readonly time: Time;
  /** Called when the driver has lost its connection and cannot be used any more. */
  readonly onLost: (error: Error) => void;
  /** Called when the driver has lost a connection that it reopens by itself. */
  readonly onNodeLost: (error: Error) => void;
}

/** Returns the command for a server whose data has this history (`DataNode.history`). */
export type CommandFor = (history: string) => readonly string[];

/** A connection to one server, to the primary that sentinels name, or to a cluster. */
export interface RedisDriver {
  /** Sends a command. In a cluster, `key` selects the server. */
  send(key: string, commandFor: CommandFor): Promise<unknown>;
  /** Opens another connection, and calls `onLost` if it is lost. Returns a function that ends the subscription. */
  subscribe(channel: string, onMessage: () => void, onLost: () => void): Promise<() => void>;
  /** Gives up the connection that serves `key`, because its server does not answer or has become a replica. */
  abandon(key: string, reason: Error): void;
  destroy(): void;
}

/** Connects once. The caller decides when to try again. */
export async function connectDriver(address: RedisAddress, options: RedisDriverOptions): Promise<RedisDriver> {
  const { timeoutMs, time, onLost } = options;
  if (address.kind === "cluster") return connectCluster(address, options);
  if (address.kind === "sentinel") return connectPrimary(address, options);
  const { credentials, database, tls, hosts } = address;
  const [host = { host: "", port: 0 }] = hosts;
  const node = await connectData(host, { credentials, database, tls, timeoutMs, time, onLost });
  return {
    send: (_, commandFor) => node.send(commandFor(node.history)),
    subscribe: (...subscription) => subscribeAt(host, { credentials, database, tls, timeoutMs, time }, ...subscription),
    abandon: (_, reason) => {
      node.destroy();
      onLost(reason);
    },
    destroy: () => node.destroy(),
  };
}
