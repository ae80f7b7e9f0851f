import { StoreError } from "../../errors.ts";
import { setStallTolerantTimer } from "../../time/stall-tolerant-timer.ts";
import type { Time } from "../../time/time.ts";
import { isUnusableTls } from "../unusable-tls.ts";
import { type CommandFor, connectDriver, type RedisDriver } from "./redis-driver.ts";
import { UnknownPrimaryError } from "./redis-sentinel.ts";
import { addressText, type RedisAddress } from "./redis-url.ts";
import type { ScriptCall } from "./script-call.ts";

export interface RedisConnectionOptions {
  readonly timeoutMs: number;
  readonly time: Time;
  /** Called when the connection is lost: calls in flight are lost, and the next connection may be to another server. */
  readonly onLost: () => void;
}

export interface LuaScript {
  readonly text: string;
  readonly sha: string;
}

/** The shortest time between two attempts to connect. */
const RETRY_US = 50_000;

/**
 * Calls scripts on a server, and turns every failure into a StoreError. A lost connection is made again by the next
 * call. A call that the server may have executed is never repeated: it would grant the units twice.
 */
export class RedisConnection {
  readonly #address: RedisAddress;
  readonly #options: RedisConnectionOptions;
  #driver: Promise<RedisDriver> | undefined;
  /** The driver once it is connected. */
  #ready: RedisDriver | undefined;
  #retryUs = Number.NEGATIVE_INFINITY;
  #lastError: unknown;
  #isClosed = false;

  constructor(address: RedisAddress, options: RedisConnectionOptions) {
    this.#address = address;
    this.#options = options;
  }

  /**
   * The script's reply. In a cluster, `key` selects the server. `callFor` gets the history of the server
   * (`redis-history.ts`), once for each server that the call is sent to.
   */
  async call(key: string, callFor: (history: string) => ScriptCall, { text, sha }: LuaScript): Promise<unknown> {
    const commandFor = (history: string) => {
      const { keys, args } = callFor(history);
      return ["EVALSHA", sha, String(keys.length), ...keys, ...args];
    };
    try {
      return await this.#send(key, commandFor);
    } catch (error) {
      if (!isReply(error, "NOSCRIPT")) throw this.#toStoreError(error, key);
    }
    // The server was restarted or its scripts were flushed. The call has had no effect, so it may be repeated.
    try {
      await this.#send(key, () => ["SCRIPT", "LOAD", text]);
      return await this.#send(key, commandFor);
    } catch (error) {
      throw this.#toStoreError(error, key);
    }
  }

  /** The reply to a command. In a cluster, `key` selects the server. */
  async send(key: string, command: readonly string[]): Promise<unknown> {
    try {
      return await this.#send(key, () => command);
    } catch (error) {
      throw this.#toStoreError(error, key);
    }
  }

  /** Subscribes to a channel. `onLost` is called when no more messages will come. Returns a function to unsubscribe. */
  async subscribe(channel: string, onMessage: () => void, onLost: () => void): Promise<() => void> {
    const driver = await this.#connected();
    return driver.subscribe(channel, onMessage, onLost);
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Without `await` and `Promise.race`: every exchange passes here, and they would double its cost. */
  #send(key: string, commandFor: CommandFor): Promise<unknown> {
    const { timeoutMs, time } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    let isGivenUp = false;
    const timer = setStallTolerantTimer(time, timeoutMs, () => {
      isGivenUp = true;
      const reason = this.#timeoutError(timeoutMs);
      reject(reason);
      // The operating system would need minutes to notice that a connection is dead.
      this.#abandon(key, reason);
    });
    const fail = (error: unknown) => {
      timer.cancel();
      // The client rejects the other calls of an abandoned connection with "Disconnects client": give them the reason.
      reject(isReply(error, "Disconnects client") ? (this.#lastError ?? error) : error);
    };
    const onReply = (reply: unknown) => {
      timer.cancel();
      resolve(reply);
    };
    const send = (driver: RedisDriver) => {
      if (!isGivenUp) void driver.send(key, commandFor).then(onReply, fail);
    };
    if (this.#ready !== undefined) send(this.#ready);
    else this.#connected().then(send, fail);
    return promise;
  }

  #timeoutError(timeoutMs: number): Error {
    if (this.#ready !== undefined) return new Error(`no reply within ${timeoutMs} ms`);
    const hint = this.#address.tls === undefined ? "" : " (does the server use TLS?)";
    return new Error(`no connection within ${timeoutMs} ms${hint}`);
  }

  #connected(): Promise<RedisDriver> {
    const { timeoutMs, time } = this.#options;
    if (this.#isClosed) return Promise.reject(new Error("the store is closed"));
    if (this.#driver !== undefined) return this.#driver;
    if (time.monotonicUs() < this.#retryUs) return Promise.reject(this.#lastError);
    const driver = connectDriver(this.#address, {
      timeoutMs,
      time,
      onLost: error => this.#lost(driver, error),
      onNodeLost: () => this.#options.onLost(),
    });
    this.#driver = driver;
    driver.then(
      ready => {
        if (this.#driver === driver) this.#ready = ready;
      },
      error => this.#lost(driver, error),
    );
    return driver;
  }

  #lost(driver: Promise<RedisDriver>, error: unknown): void {
    // A driver that was dropped may still emit errors.
    if (this.#driver !== driver) return;
    this.#lastError = error;
    this.#retryUs = this.#options.time.monotonicUs() + RETRY_US;
    this.#driver = undefined;
    this.#ready = undefined;
    this.#options.onLost();
  }

  #abandon(key: string, reason: Error): void {
    // A driver that is still connecting is not abandoned: each of its steps has its own time limit. If each call began
    // these steps again, steps that together take longer than a call would never end.
    this.#ready?.abandon(key, reason);
  }

  #drop(): void {
    const driver = this.#driver;
    this.#driver = undefined;
    this.#ready = undefined;
    driver?.then(ready => ready.destroy()).catch(() => undefined);
    this.#options.onLost();
  }

  #toStoreError(error: unknown, key: string): StoreError {
    if (error instanceof StoreError && !(error instanceof UnknownPrimaryError)) return error;
    // After a failover the old server may be a replica: connect again, to the server that the name stands for now.
    if (error instanceof Error && isReply(error, "READONLY")) this.#abandon(key, error);
    const reason = error instanceof Error ? error.message || error.name : String(error);
    const [, remedy] = REMEDIES.find(([code]) => isReply(error, code)) ?? [];
    const message = `redis at ${addressText(this.#address)}: ${reason}${remedy === undefined ? "" : ` (${remedy})`}`;
    return new StoreError(message, { cause: error });
  }
}

const LOG_IN = "check the user name and password of the URL";
/** Replies and errors after which no retry can succeed, by their first words, and what the user can do. */
const REMEDIES: readonly (readonly [code: string, remedy: string])[] = [
  ["WRONGPASS", LOG_IN],
  ["NOAUTH", LOG_IN],
  ["ERR invalid password", LOG_IN],
  ["ERR AUTH", LOG_IN],
  ["ERR Client sent AUTH", "the server needs no password: remove it from the URL"],
  ["NOPERM", "docs/guides/stores.md lists the commands and keys that the user must be allowed to use"],
  ["ERR DB", "the number at the end of the URL is the database"],
  ["ERR SELECT is not allowed in cluster mode", "a cluster has only database 0"],
  ["MOVED", "the server belongs to a cluster: add ?cluster=true to the URL"],
  ["ERR This instance has cluster support disabled", "remove cluster=true from the URL"],
  ["ERR unknown command 'SENTINEL'", "a server that is not a sentinel needs a URL that begins with redis://"],
  ["ERR unknown command 'EVALSHA'", "a sentinel needs a URL that begins with redis+sentinel://"],
];

/** True if no retry can succeed: a missing driver or file, a wrong password, an unknown database. */
export function isPermanent({ cause }: StoreError): boolean {
  if (cause instanceof UnknownPrimaryError || REMEDIES.some(([code]) => isReply(cause, code))) return true;
  const isMissingDriver = cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND";
  return isMissingDriver || isUnusableTls(cause);
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
