import { StoreError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import { connectDriver, type RedisDriver } from "./redis-driver.ts";
import type { ScriptCall } from "./script-call.ts";

export interface RedisConnectionOptions {
  readonly isCluster: boolean;
  readonly timeoutMs: number;
  readonly time: Time;
  /** The connection is gone: what was under way is lost, and the next server may not be the same. */
  readonly onLost: () => void;
}

export interface LuaScript {
  readonly text: string;
  readonly sha: string;
}

/** A server that is away is not tried more often. */
const RETRY_US = 50_000;

/**
 * Calls scripts on a server, and turns whatever goes wrong into a StoreError. A connection that broke is made again
 * by the next call. No call is repeated that may have been carried out: what is asked twice is given twice.
 */
export class RedisConnection {
  readonly #url: string;
  readonly #address: string;
  readonly #options: RedisConnectionOptions;
  #driver: Promise<RedisDriver> | undefined;
  /** The same, once it is there. */
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
    // A server that was started anew, or whose scripts were flushed, did nothing yet.
    try {
      await this.#send(first, ["SCRIPT", "LOAD", text]);
      return await this.#send(first, call);
    } catch (error) {
      throw this.#toStoreError(error);
    }
  }

  /** The reply to a command; `key` finds its server. */
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

  /** Written without races and awaits, which would cost as much as the rest: every exchange comes through here. */
  #send(key: string, command: readonly string[]): Promise<unknown> {
    const { timeoutMs, time } = this.#options;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const timer = time.setTimer(timeoutMs, () => {
      reject(new Error(`no answer within ${timeoutMs} ms`));
      // Over a dead connection nothing comes for minutes before the system gives it up.
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
    // One that was dropped may still have something to say.
    if (this.#driver !== driver) return;
    this.#lastError = error;
    this.#retryUs = this.#options.time.monotonicUs() + RETRY_US;
    // A cluster mends itself.
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
    // After a failover the old server may answer as somebody's replica: whoever the name means now has to be asked.
    if (isReply(error, "READONLY")) this.#drop();
    const reason = error instanceof Error ? error.message || error.name : String(error);
    return new StoreError(`redis at ${this.#address}: ${reason}`, { cause: error });
  }
}

/** True for what no waiting mends: no driver, or a server that does not let us in. */
export function isPermanent({ message, cause }: StoreError): boolean {
  const refusals = [
    "WRONGPASS",
    "NOAUTH",
    "NOPERM",
    "ERR invalid password",
    "ERR AUTH",
    "ERR Client sent AUTH",
    "ERR DB",
  ];
  return message.includes("npm install") || refusals.some(refusal => isReply(cause, refusal));
}

/** Without name and password. */
function addressOf(url: string): string {
  const { hostname, port, pathname, protocol } = URL.parse(url) ?? {};
  if (hostname === undefined || !/^(?:rediss?|unix):$/.test(protocol ?? ""))
    throw new StoreError("the address of a redis server looks like redis://user:password@host:6379/0");
  return protocol === "unix:" ? `unix://${pathname}` : `${hostname}:${port || "6379"}${pathname}`;
}

function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && error.message.startsWith(code);
}
