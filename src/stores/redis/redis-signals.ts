import type { SignalSubscription, SignalTopic, StoreSignals } from "../store.ts";
import type { RedisConnection } from "./redis-connection.ts";

/** Notifies the processes of a Redis server by its channels (publish and subscribe). */
export class RedisSignals implements StoreSignals {
  readonly #connection: RedisConnection;
  readonly #prefix: string;

  constructor(connection: RedisConnection, prefix: string) {
    this.#connection = connection;
    this.#prefix = `${prefix}:signal:`;
  }

  async send(topic: SignalTopic): Promise<void> {
    const channel = this.#prefix + topic;
    await this.#connection.send(channel, ["PUBLISH", channel, ""]);
  }

  listen(topic: SignalTopic, listener: () => void): SignalSubscription {
    let end: (() => void) | undefined;
    let isStopped = false;
    const stop = () => {
      isStopped = true;
      end?.();
      end = undefined;
    };
    const subscribed = this.#connection.subscribe(this.#prefix + topic, listener, stop);
    subscribed.then(
      endSubscription => {
        end = endSubscription;
        if (isStopped) stop();
        // A message may have been sent before the subscription.
        else listener();
      },
      // Not allowed to subscribe, or no connection: the caller reads from time to time, and listens again.
      () => undefined,
    );
    return {
      get isActive() {
        return end !== undefined;
      },
      stop,
    };
  }
}
