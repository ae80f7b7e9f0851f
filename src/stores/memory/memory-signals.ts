import type { SignalSubscription, SignalTopic, StoreSignals } from "../store.ts";

/** Notifies the members of a memory store. */
export class MemorySignals implements StoreSignals {
  readonly #listeners: Readonly<Record<SignalTopic, Set<() => void>>> = { orders: new Set(), acks: new Set() };

  async send(topic: SignalTopic): Promise<void> {
    for (const listener of this.#listeners[topic]) queueMicrotask(listener);
  }

  listen(topic: SignalTopic, listener: () => void): SignalSubscription {
    // A new function for each call, so that the same listener can be added twice.
    const own = () => listener();
    this.#listeners[topic].add(own);
    return { isActive: true, stop: () => this.#listeners[topic].delete(own) };
  }
}
