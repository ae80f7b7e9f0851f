/** The one file that knows `@redis/client`, which is loaded when a store on redis is opened, and never before. */
import { StoreError } from "../../errors.ts";

export interface RedisDriverOptions {
  readonly url: string;
  readonly isCluster: boolean;
  readonly connectTimeoutMs: number;
  /** A connection that had been made is gone. */
  readonly onLost: (error: Error) => void;
}

export interface RedisDriver {
  /** `key` finds the server in a cluster. */
  send(key: string, command: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** How long to wait before a server of a cluster is tried again. */
const RECONNECT_MS = 500;

/** Connects once. Whoever calls decides when to try again: then nothing is done while nobody wants anything. */
export async function connectDriver({
  url,
  isCluster,
  connectTimeoutMs,
  onLost,
}: RedisDriverOptions): Promise<RedisDriver> {
  const { createClient, createCluster } = await loadClient();
  const options = {
    // The older protocol is all that is needed, and every server speaks it.
    RESP: 2,
    maintNotifications: "disabled",
    disableClientInfo: true,
    // What was not answered is never sent again: whoever asked has been told that it failed.
    disableOfflineQueue: true,
    // Our own time-out covers the whole call, and is cheaper than a signal for each command.
    commandOptions: { timeout: 0 },
  } as const;
  const socket = { connectTimeout: connectTimeoutMs };
  if (isCluster) {
    // The servers are found by asking the first, which does not tell them our password, nor that they are to use TLS.
    const tls = url.startsWith("rediss:") ? { tls: true as const } : {};
    const defaults = {
      ...options,
      ...credentialsOf(url),
      socket: { ...socket, ...tls, reconnectStrategy: RECONNECT_MS },
    };
    const cluster = createCluster({ rootNodes: [{ url }], defaults });
    cluster.on("error", onLost);
    cluster.on("node-error", onLost);
    await cluster.connect();
    return {
      send: (key, command) => cluster.sendCommand(key, false, [...command]),
      destroy: () => cluster.destroy(),
    };
  }
  const client = createClient({ ...options, url, socket: { ...socket, reconnectStrategy: false } });
  let isConnected = false;
  client.on("error", (error: Error) => {
    if (isConnected) onLost(error);
  });
  await client.connect();
  isConnected = true;
  // An open store does not keep a program alive that has nothing else to do; a call under way does, by its time-out.
  client.unref();
  return {
    send: (_, command) => client.sendCommand(command),
    destroy: () => {
      if (client.isOpen) client.destroy();
    },
  };
}

function credentialsOf(url: string): { username?: string; password?: string } {
  const { username, password } = new URL(url);
  return {
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
}

async function loadClient() {
  try {
    return await import("@redis/client");
  } catch (cause) {
    throw new StoreError("a store on redis needs its driver: npm install @redis/client", { cause });
  }
}
