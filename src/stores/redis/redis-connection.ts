import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { connectDriver, type RedisDriver } from "./redis-driver.ts";
import type { ScriptCall } from "./script-call.ts";

export interface RedisConnectionOptions {
  readonly isCluster: boolean;
  readonly timeoutMs: number;
  readonly time: Time;
  /**
   * Called when the connection is lost: calls in flight are lost, and the next connection may lead to another server.
   */
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
  readonly #url: string;
  readonly #address: string;
  readonly #options: RedisConnectionOptions;
  #driver: Promise<RedisDriver> | undefined;
  /** The driver once it is connected. */
  #ready: RedisDriver | undefined;
  #retryUs = Number.NEGATIVE_INFINITY;
  #lastError: unknown;
  #isClosed = false;

  constructor(url: string, options: RedisConnectionOptions) {
    this.#url = url;
    this.#address = addressOf(url);
    this.#options = options;
  }

  /** The script's reply. */
  async call({ keys, args }: ScriptCall, { text, sha }: LuaScript): Promise<unknown> {
    const [first = ""] = keys;
    const call = ["EVALSHA", sha, String(keys.length), ...keys, ...args];
    try {
      return await this.#send(first, call);
    } catch (error) {
      if (!isReply(error, "NOSCRIPT")) throw this.#toStoreError(error);
    }
    // The server was restarted or its scripts were flushed. The call has had no effect, so it may be repeated.
    try {
      await this.#send(first, ["SCRIPT", "LOAD", text]);
      return await this.#send(first, call);
    } catch (error) {
      throw this.#toStoreError(error);
    }
  }

  /** The reply to a command. In a cluster, `key` selects the server. */
  async send(key: string, command: readonly string[]): Promise<unknown> {
    try {
      return await this.#send(key, command);
    } catch (error) {
      throw this.#toStoreError(error);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#drop();
  }

  /** Without `await` and `Promise.race`: every exchange passes here, and they would double its cost. */
  #send(key: string, command: readonly string[]): Promise<unknown> {
    const { timeoutMs, time } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = time.setTimer(timeoutMs, () => {
      reject(new Error(`no reply within ${timeoutMs} ms`));
      // The system would need minutes to notice that a connection is dead.
      this.#drop();
    });
    const fail = (error: unknown) => {
      timer.cancel();
      reject(error);
    };
    const onReply = (reply: unknown) => {
      timer.cancel();
      resolve(reply);
    };
    const send = (driver: RedisDriver) => void driver.send(key, command).then(onReply, fail);
    if (this.#ready !== undefined) send(this.#ready);
    else this.#connected().then(send, fail);
    return promise;
  }

  #connected(): Promise<RedisDriver> {
    const { isCluster, timeoutMs, time } = this.#options;
    if (this.#isClosed) return Promise.reject(new Error("the store is closed"));
    if (this.#driver !== undefined) return this.#driver;
    if (time.monotonicUs() < this.#retryUs) return Promise.reject(this.#lastError);
    const driver = connectDriver({
      url: this.#url,
      isCluster,
      connectTimeoutMs: timeoutMs,
      onLost: error => this.#lost(driver, error),
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
    // The cluster client reconnects by itself.
    if (!this.#options.isCluster || this.#ready === undefined) {
      this.#driver = undefined;
      this.#ready = undefined;
    }
    this.#options.onLost();
  }

  #drop(): void {
    const driver = this.#driver;
    this.#driver = undefined;
    this.#ready = undefined;
    driver?.then(({ destroy }) => destroy()).catch(() => undefined);
    this.#options.onLost();
  }

  #toStoreError(error: unknown): StoreError {
    if (error instanceof StoreError) return error;
    // After a failover the old server may be a replica: connect again, to the server that the name means now.
    if (isReply(error, "READONLY")) this.#drop();
    const reason = error instanceof Error ? error.message || error.name : String(error);
    return new StoreError(`redis at ${this.#address}: ${reason}`, { cause: error });
  }
}

/** True for errors that no retry can end: a missing driver, a wrong password, an unknown database. */
export function isPermanent({ cause }: StoreError): boolean {
  const refusals = [
    "WRONGPASS",
    "NOAUTH",
    "NOPERM",
    "ERR invalid password",
    "ERR AUTH",
    "ERR Client sent AUTH",
    "ERR DB",
  ];
  return isMissingPackage(cause) || refusals.some(refusal => isReply(cause, refusal));
}

function isMissingPackage(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ERR_MODULE_NOT_FOUND";
}

/** The address without user and password, for messages. */
function addressOf(url: string): string {
  const { hostname, port, pathname, protocol } = URL.parse(url) ?? {};
  if (hostname === undefined || !/^(?:rediss?|unix):$/.test(protocol ?? ""))
    throw new StoreError("invalid Redis address, expected redis://user:password@host:6379/0");
  return protocol === "unix:" ? `unix://${pathname}` : `${hostname}:${port || "6379"}${pathname}`;
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
