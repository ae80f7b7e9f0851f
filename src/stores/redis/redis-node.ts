/** The only file that uses `@redis/client`. The package is optional and is loaded when a Redis store is opened. */
import { readFile } from "node:fs/promises";
import { messageOf, StoreError } from "../../errors.ts";
import { setStallTolerantTimer } from "../../time/stall-tolerant-timer.ts";
import type { Time } from "../../time/time.ts";
import type { RedisCredentials, RedisHost, RedisTls } from "./redis-url.ts";

export interface RedisNodeOptions {
  readonly credentials: RedisCredentials;
  readonly database: number;
  readonly tls: RedisTls | undefined;
  /** The time limit for the connection, log-in included. */
  readonly timeoutMs: number;
  readonly time: Time;
  /** Called once when the established connection is lost, `destroy` excepted. */
  readonly onLost: (error: Error) => void;
}

/** One connection to one server. */
export interface RedisNode {
  readonly address: RedisHost;
  send(command: readonly string[]): Promise<unknown>;
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  destroy(): void;
}

/** Connects once. The caller decides when to try again, so that an idle program does not reconnect. */
export async function connectNode(
  address: RedisHost,
  { credentials, database, tls, timeoutMs, time, onLost }: RedisNodeOptions,
): Promise<RedisNode> {
  const { createClient } = await loadClient();
  const client = createClient({
    // The older protocol is sufficient, and every server supports it.
    RESP: 2,
    maintNotifications: "disabled",
    disableClientInfo: true,
    // A command without a reply is never sent again: its caller has already got an error.
    disableOfflineQueue: true,
    // RedisConnection has a timeout for the whole call, which is cheaper than a signal for each command.
    commandOptions: { timeout: 0 },
    ...credentials,
    ...(database > 0 && { database }),
    socket: {
      ...address,
      ...(tls && { tls: true as const, ...(await pemFiles(tls)) }),
      connectTimeout: timeoutMs,
      reconnectStrategy: false,
    },
  });
  let isConnected = false;
  client.on("error", (error: Error) => {
    if (!isConnected) return;
    isConnected = false;
    onLost(error);
    // After a reply that it cannot parse the client stays connected. Later, so that it rejects pending commands first.
    queueMicrotask(() => {
      if (client.isOpen) client.destroy();
    });
  });
  const timeoutError = new Error(`no connection within ${timeoutMs} ms`);
  let isLate = false;
  const timer = setStallTolerantTimer(time, timeoutMs, () => {
    isLate = true;
    client.destroy();
  });
  try {
    await client.connect();
  } catch (error) {
    throw isLate ? timeoutError : error;
  } finally {
    timer.cancel();
  }
  if (isLate) {
    client.destroy();
    throw timeoutError;
  }
  isConnected = true;
  // An open store does not keep the program alive (law S8); a call in flight does, by its timer.
  client.unref();
  return {
    address,
    send: command => client.sendCommand(command),
    subscribe: (channel, onMessage) => client.subscribe(channel, onMessage),
    destroy: () => {
      isConnected = false;
      client.destroy();
    },
  };
}

/** Returns the result. If it fails, closes the connection and throws the error. */
export async function orDestroy<Result>(node: RedisNode, result: Promise<Result>): Promise<Result> {
  try {
    return await result;
  } catch (error) {
    node.destroy();
    throw error;
  }
}

/**
 * Subscribes to a channel over a new connection: a connection with a subscription accepts no other command. Returns a
 * function that closes it.
 */
export async function subscribeAt(
  address: RedisHost,
  options: Omit<RedisNodeOptions, "onLost">,
  channel: string,
  onMessage: () => void,
  onLost: () => void,
): Promise<() => void> {
  const node = await connectNode(address, { ...options, onLost });
  await orDestroy(node, node.subscribe(channel, onMessage));
  return () => node.destroy();
}

/** Read at each connection, so that renewed certificates are used. */
async function pemFiles(tls: RedisTls): Promise<Readonly<Record<string, string>>> {
  const files = await Promise.all(
    Object.entries(tls).map(async ([name, file]) => {
      try {
        return [name, await readFile(file, "utf8")] as const;
      } catch (cause) {
        throw new StoreError(`cannot read the file of the Redis parameter "${name}": ${messageOf(cause)}`, { cause });
      }
    }),
  );
  return Object.fromEntries(files);
}

async function loadClient() {
  try {
    return await import("@redis/client");
  } catch (cause) {
    throw new StoreError("the Redis store needs the package @redis/client: npm install @redis/client", { cause });
  }
}
