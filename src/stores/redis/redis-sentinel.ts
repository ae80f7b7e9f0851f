import { backoffMs } from "../../core/breaker/backoff.ts";
import { hostAndPort } from "../../core/text/host.ts";
import { messageOf, StoreError } from "../../errors.ts";
import type { Timer } from "../../time/time.ts";
import { replyWithin } from "../reply-within.ts";
import type { RedisDriver, RedisDriverOptions } from "./redis-driver.ts";
import { connectData } from "./redis-history.ts";
import { connectNode, orDestroy, type RedisNode, subscribeAt } from "./redis-node.ts";
import type { RedisAddress, RedisHost } from "./redis-url.ts";

const SWITCHED = "+switch-master";
/** Between two attempts to reach a sentinel again. */
const BACKOFF = { baseMs: 100, capMs: 5000 };

/** The sentinels do not monitor a server of this name: no retry can succeed. */
export class UnknownPrimaryError extends StoreError {}

/**
 * Asks the sentinels for the primary and connects to it. When they promote another server, the connection is closed,
 * even if the old server still answers: the other processes use the new one.
 */
export async function connectPrimary(address: RedisAddress, options: RedisDriverOptions): Promise<RedisDriver> {
  const watch = await PrimaryWatch.start(address, options);
  const { credentials, database, tls } = address;
  const { timeoutMs, time } = options;
  const giveUp = (error: Error) => {
    watch.stop();
    options.onLost(error);
  };
  try {
    const { primary } = watch;
    const node = await connectData(primary, { credentials, database, tls, timeoutMs, time, onLost: giveUp });
    const abandon = (reason: Error) => {
      node.destroy();
      giveUp(reason);
    };
    await orDestroy(node, requirePrimary(node, watch, options));
    watch.onSwitch = abandon;
    return {
      send: (_, commandFor) => node.send(commandFor(node.history)),
      subscribe: (...subscription) =>
        subscribeAt(watch.primary, { credentials, database, tls, timeoutMs, time }, ...subscription),
      abandon: (_, reason) => abandon(reason),
      destroy: () => {
        watch.stop();
        node.destroy();
      },
    };
  } catch (error) {
    watch.stop();
    throw error;
  }
}

/** During a failover the sentinels may still name a server that has become a replica. */
async function requirePrimary(node: RedisNode, watch: PrimaryWatch, options: RedisDriverOptions): Promise<void> {
  const address = hostAndPort(node.address.host, node.address.port);
  const reply = await replyWithin(options, node.send(["ROLE"]), () => noAnswerError(node.address));
  const role = Array.isArray(reply) ? reply[0] : undefined;
  if (role !== "master") throw new Error(`${address}, named by the sentinels, is not the primary now`);
  // The sentinels may have promoted another server meanwhile. The old one still answers for a moment.
  if (watch.primary !== node.address) throw new Error(`${address} is not the primary any more`);
}

/** Knows the primary, and keeps a connection to one sentinel that announces the next one. */
class PrimaryWatch {
  readonly #address: RedisAddress;
  readonly #options: RedisDriverOptions;
  #primary: RedisHost | undefined;
  #sentinel: RedisNode | undefined;
  #timer: Timer | undefined;
  #isStopped = false;
  onSwitch: (reason: Error) => void = () => undefined;

  static async start(address: RedisAddress, options: RedisDriverOptions): Promise<PrimaryWatch> {
    const watch = new PrimaryWatch(address, options);
    await watch.#connect();
    return watch;
  }

  private constructor(address: RedisAddress, options: RedisDriverOptions) {
    this.#address = address;
    this.#options = options;
  }

  get primary(): RedisHost {
    if (this.#primary === undefined) throw new StoreError("the primary is not known yet");
    return this.#primary;
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
    this.#sentinel?.destroy();
  }

  /** Asks one sentinel after the other, until one knows the primary. */
  async #connect(): Promise<void> {
    const { hosts, primaryName } = this.#address;
    const errors: Error[] = [];
    for (const host of hosts) {
      try {
        await this.#ask(host);
        return;
      } catch (error) {
        errors.push(error instanceof Error ? error : new Error(messageOf(error)));
      }
    }
    if (errors.every(error => error instanceof UnknownPrimaryError))
      throw new UnknownPrimaryError(`the sentinels monitor no server with the name ${JSON.stringify(primaryName)}`);
    // An unknown host name is a permanent error, so it is thrown only if no sentinel failed for another reason.
    const failures = errors.filter(error => !(error instanceof UnknownPrimaryError));
    throw failures.find(error => !("code" in error && error.code === "ENOTFOUND")) ?? failures[0];
  }

  async #ask(host: RedisHost): Promise<void> {
    const { sentinelCredentials: credentials, tls, primaryName } = this.#address;
    const { timeoutMs, time } = this.#options;
    let isLost = false;
    const onLost = () => {
      isLost = true;
      if (this.#sentinel === sentinel) this.#onSentinelLost();
    };
    const sentinel = await connectNode(host, { credentials, database: 0, tls, timeoutMs, time, onLost });
    try {
      // Subscribe first: a failover between the two commands is then announced.
      const subscribed = sentinel.subscribe(SWITCHED, message => this.#onMessage(message));
      await replyWithin(this.#options, subscribed, () => noAnswerError(host));
      const primary = primaryOf(await this.#query(host));
      if (primary === undefined) throw new UnknownPrimaryError(`unknown name ${JSON.stringify(primaryName)}`);
      if (this.#isStopped) throw new Error("the store is closed");
      if (isLost) throw new Error(`${host.host}:${host.port} has closed the connection`);
      this.#sentinel = sentinel;
      this.#setPrimary(primary);
    } catch (error) {
      sentinel.destroy();
      throw error;
    }
  }

  /** On a second connection: a connection with a subscription accepts no other command. */
  async #query(host: RedisHost): Promise<unknown> {
    const { sentinelCredentials: credentials, tls, primaryName } = this.#address;
    const { timeoutMs, time } = this.#options;
    const onLost = () => undefined;
    const node = await connectNode(host, { credentials, database: 0, tls, timeoutMs, time, onLost });
    try {
      const reply = node.send(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", primaryName]);
      return await replyWithin(this.#options, reply, () => noAnswerError(host));
    } finally {
      node.destroy();
    }
  }

  /** `name old-host old-port new-host new-port` */
  #onMessage(message: string): void {
    const [name, , , host = "", port] = message.split(" ");
    if (name === this.#address.primaryName) this.#setPrimary({ host, port: Number(port) });
  }

  #setPrimary(primary: RedisHost): void {
    const before = this.#primary;
    if (before?.host === primary.host && before.port === primary.port) return;
    this.#primary = primary;
    if (before !== undefined) this.onSwitch(new Error(`the sentinels have promoted ${primary.host}:${primary.port}`));
  }

  #onSentinelLost(): void {
    this.#sentinel = undefined;
    void this.#connectAgain(1);
  }

  /**
   * Another sentinel may announce the next primary. While none answers, the connection to the primary stays in use,
   * because without sentinels there is no failover. They are asked again until one answers.
   */
  async #connectAgain(attempt: number): Promise<void> {
    if (this.#isStopped) return;
    try {
      await this.#connect();
    } catch {
      if (this.#isStopped) return;
      const delayMs = backoffMs(BACKOFF, attempt, Math.random(), undefined);
      this.#timer = this.#options.time.setTimer(delayMs, () => void this.#connectAgain(attempt + 1));
      this.#timer.unref?.();
    }
  }
}

function noAnswerError({ host, port }: RedisHost): Error {
  return new Error(`${hostAndPort(host, port)} did not answer in time`);
}

function primaryOf(reply: unknown): RedisHost | undefined {
  const [host, port] = Array.isArray(reply) ? (reply as readonly unknown[]) : [];
  return typeof host === "string" ? { host, port: Number(port) } : undefined;
}
