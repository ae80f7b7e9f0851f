import { backoffMs } from "../../core/breaker/backoff.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { SignalSubscription, SignalTopic, StoreSignals } from "../store.ts";
import type { PostgresClient } from "./postgres-client.ts";
import type { PgDriver, PgSingleClient } from "./postgres-driver.ts";

const BACKOFF = { baseMs: 100, capMs: 5000 };
/** The longest name of a channel. */
const CHANNEL_CHARS = 63;

/** Notifies the processes of a database by LISTEN and NOTIFY. */
export class PostgresSignals implements StoreSignals {
  readonly #client: PostgresClient;
  readonly #driver: PgDriver;
  readonly #schema: string;
  readonly #time: Time;
  readonly #subscriptions = new Set<SignalSubscription>();

  constructor(client: PostgresClient, driver: PgDriver, schema: string, time: Time) {
    this.#client = client;
    this.#driver = driver;
    this.#schema = schema;
    this.#time = time;
  }

  async send(topic: SignalTopic): Promise<void> {
    await this.#client.query("SELECT pg_notify($1, '')", [this.#channelOf(topic)]);
  }

  listen(topic: SignalTopic, listener: () => void): SignalSubscription {
    const subscription = new Subscription(this.#driver, this.#channelOf(topic), this.#time, listener);
    this.#subscriptions.add(subscription);
    return {
      get isActive() {
        return subscription.isActive;
      },
      stop: () => {
        this.#subscriptions.delete(subscription);
        subscription.stop();
      },
    };
  }

  close(): void {
    for (const subscription of this.#subscriptions) subscription.stop();
    this.#subscriptions.clear();
  }

  #channelOf(topic: SignalTopic): string {
    return `${topic}_${this.#schema}`.slice(0, CHANNEL_CHARS);
  }
}

/** A connection that listens on one channel, and is opened again when it breaks. */
class Subscription implements SignalSubscription {
  isActive = false;
  readonly #driver: PgDriver;
  readonly #channel: string;
  readonly #time: Time;
  readonly #listener: () => void;
  #client: PgSingleClient | undefined;
  #timer: Timer | undefined;
  #failures = 0;
  #isStopped = false;

  constructor(driver: PgDriver, channel: string, time: Time, listener: () => void) {
    this.#driver = driver;
    this.#channel = channel;
    this.#time = time;
    this.#listener = listener;
    this.#connect();
  }

  stop(): void {
    this.#isStopped = true;
    this.isActive = false;
    this.#timer?.cancel();
    this.#client?.end().catch(() => undefined);
  }

  #connect(): void {
    const client = this.#driver.client();
    this.#client = client;
    client.on("error", () => this.#connectLater(client));
    client.on("end", () => this.#connectLater(client));
    client.on("notification", () => this.#listener());
    this.#listen(client).catch(() => this.#connectLater(client));
  }

  async #listen(client: PgSingleClient): Promise<void> {
    await client.connect();
    client.unref();
    await client.query(`LISTEN ${this.#channel}`);
    if (this.#isStopped || this.#client !== client) return;
    this.#failures = 0;
    this.isActive = true;
    // Signals that were sent while there was no connection are lost.
    this.#listener();
  }

  #connectLater(client: PgSingleClient): void {
    if (this.#isStopped || this.#client !== client) return;
    this.isActive = false;
    this.#client = undefined;
    client.end().catch(() => undefined);
    this.#failures += 1;
    const pauseMs = backoffMs(BACKOFF, this.#failures, Math.random(), undefined);
    this.#timer = this.#time.setTimer(pauseMs, () => this.#connect());
    this.#timer.unref?.();
  }
}
