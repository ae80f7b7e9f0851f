import { backoffMs } from "../../core/breaker/backoff.ts";
import type { Timer } from "../../time/time.ts";
import type { SignalSubscription, SignalTopic, StoreSignals } from "../store.ts";
import type { PostgresClient } from "./postgres-client.ts";
import { PostgresSession, type PostgresSessionOptions } from "./postgres-session.ts";

const BACKOFF = { baseMs: 100, capMs: 5000 };
/** The longest name of a channel. */
const CHANNEL_CHARS = 63;

/** Notifies the processes of a database by LISTEN and NOTIFY. */
export class PostgresSignals implements StoreSignals {
  readonly #client: PostgresClient;
  readonly #options: PostgresSessionOptions;
  readonly #schema: string;
  readonly #subscriptions = new Set<SignalSubscription>();

  /** @param options of the connections that listen */
  constructor(client: PostgresClient, options: PostgresSessionOptions, schema: string) {
    this.#client = client;
    this.#options = options;
    this.#schema = schema;
  }

  async send(topic: SignalTopic): Promise<void> {
    await this.#client.query("SELECT pg_notify($1, '')", [this.#channelOf(topic)]);
  }

  listen(topic: SignalTopic, listener: () => void): SignalSubscription {
    const subscription = new Subscription(this.#options, this.#channelOf(topic), listener);
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
  readonly #options: PostgresSessionOptions;
  readonly #channel: string;
  readonly #listener: () => void;
  #opening: Promise<PostgresSession> | undefined;
  #timer: Timer | undefined;
  #failures = 0;

  constructor(options: PostgresSessionOptions, channel: string, listener: () => void) {
    this.#options = options;
    this.#channel = channel;
    this.#listener = listener;
    this.#connect();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#drop();
  }

  #connect(): void {
    const opening: Promise<PostgresSession> = PostgresSession.open(this.#options, {
      onLost: () => this.#connectLater(opening),
      onNotification: () => this.#listener(),
    });
    this.#opening = opening;
    this.#listen(opening).catch(() => this.#connectLater(opening));
  }

  async #listen(opening: Promise<PostgresSession>): Promise<void> {
    const session = await opening;
    if (this.#opening !== opening) return;
    await session.query(`LISTEN ${this.#channel}`);
    if (this.#opening !== opening) return;
    this.#failures = 0;
    this.isActive = true;
    // Signals that were sent while there was no connection are lost.
    this.#listener();
  }

  #connectLater(opening: Promise<PostgresSession>): void {
    if (this.#opening !== opening) return;
    this.#drop();
    this.#failures += 1;
    const pauseMs = backoffMs(BACKOFF, this.#failures, Math.random(), undefined);
    this.#timer = this.#options.time.setTimer(pauseMs, () => this.#connect());
    this.#timer.unref?.();
  }

  #drop(): void {
    this.isActive = false;
    this.#opening?.then(
      session => session.drop(),
      () => undefined,
    );
    this.#opening = undefined;
  }
}
