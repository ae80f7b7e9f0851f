import { messageOf } from "./errors.ts";
/** Receives events. An error that it throws becomes a warning of the process and has no other effect. */
export type Listener<Event> = (event: Event) => void;

/** A list of listeners. The first error of each listener is emitted as a process warning; later ones are ignored. */
export class Listeners<Event> {
  readonly #listeners = new Set<Listener<Event>>();
  readonly #broken = new WeakSet<Listener<Event>>();

  /** Check it before building an event: most of the time there is no listener. */
  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  /** Returns a function that removes the listener. */
  add(listener: Listener<Event>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: Event): void {
    for (const listener of this.#listeners) this.emitTo(listener, event);
  }

  /** Emits an event to one listener only. */
  emitTo(listener: Listener<Event>, event: Event): void {
    try {
      // An asynchronous listener may fail later.
      const returned: unknown = listener(event);
      if (returned instanceof Promise) returned.catch(error => this.#warn(listener, error));
    } catch (error) {
      this.#warn(listener, error);
    }
  }

  #warn(listener: Listener<Event>, error: unknown): void {
    if (this.#broken.has(listener)) return;
    this.#broken.add(listener);
    const message = messageOf(error);
    const detail = error instanceof Error && error.stack !== undefined ? { detail: error.stack } : {};
    process.emitWarning(`an event listener failed: ${message}; its further errors are not reported`, {
      type: "DocstokgWarning",
      ...detail,
    });
  }
}
