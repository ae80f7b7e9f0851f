/** The only file that uses `@redis/client`. The package is optional and is loaded when a Redis store is opened. */
import { StoreError } from "../../errors.ts";

export interface RedisDriverOptions {
  readonly url: string;
  readonly isCluster: boolean;
  readonly connectTimeoutMs: number;
  /** Called when an established connection is lost. */
  readonly onLost: (error: Error) => void;
}

export interface RedisDriver {
  /** In a cluster, `key` selects the server. */
  send(key: string, command: readonly string[]): Promise<unknown>;
  destroy(): void;
}

/** How long the cluster client waits before it connects to a server again. */
const RECONNECT_MS = 500;

/** Connects once. The caller decides when to try again, so that an idle program does not reconnect. */
export async function connectDriver({
  url,
  isCluster,
  connectTimeoutMs,
  onLost,
}: RedisDriverOptions): Promise<RedisDriver> {
  const { createClient, createCluster } = await loadClient();
  const options = {
    // The older protocol is sufficient, and every server supports it.
    RESP: 2,
    maintNotifications: "disabled",
    disableClientInfo: true,
    // A command without a reply is never sent again: its caller has got an error.
    disableOfflineQueue: true,
    // RedisConnection has a timeout for the whole call, which is cheaper than a signal for each command.
    commandOptions: { timeout: 0 },
  } as const;
  const socket = { connectTimeout: connectTimeoutMs };
  if (isCluster) {
    // The other servers are discovered through the first. They need the credentials and the TLS option from here.
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
  // An open store does not keep the program alive (law S8); a call in flight does, by its timer.
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
    throw new StoreError("the Redis store needs the package @redis/client: npm install @redis/client", { cause });
  }
}
