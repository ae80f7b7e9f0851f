import { redactedText } from "./core/text/redaction.ts";
import { messageOf } from "./errors.ts";

/** Where an event comes from: a hub. */
export interface EventOrigin {
  /** The hash of the policy in force. */
  readonly configHash: string;
}

/** Receives events. An error that it throws becomes a warning of the process and has no other effect. */
export interface Listener<Event> {
  /**
   * @param event frozen: other listeners get the same object
   * @param source the hub that the event comes from; undefined for a limiter or breaker without a hub
   */
  (event: Event, source?: EventOrigin): void;
  /**
   * Whether the listener wants events of this type now. An event that no listener wants is not built. Called for each
   * event. @default all types
   */
  listensTo?(type: string): boolean;
}

/** A list of listeners. The first error of each listener is emitted as a process warning; later ones are ignored. */
export class Listeners<Event extends { readonly event_type: string }> {
  /** Each change makes a new array, because a listener may add or remove listeners while `emit` reads the old one. */
  #listeners: readonly Listener<Event>[] = [];
  /** Listeners whose first error was reported. */
  readonly #reported = new WeakSet<Listener<Event>>();

  /** Call it before building an event: most of the time there is no listener. */
  hasListener(type: Event["event_type"]): boolean {
    const listeners = this.#listeners;
    for (let at = 0; at < listeners.length; at += 1)
      if (this.#isWanted(type, listeners[at] as Listener<Event>)) return true;
    return false;
  }

  has(listener: Listener<Event>): boolean {
    return this.#listeners.includes(listener);
  }

  /** Returns a function that removes the listener. A listener that was added already is not added again. */
  add(listener: Listener<Event>): () => void {
    if (!this.has(listener)) this.#listeners = [...this.#listeners, listener];
    return () => {
      this.#listeners = this.#listeners.filter(other => other !== listener);
    };
  }

  /** The event is frozen, because all listeners get the same object. */
  emit(event: Event): void {
    const listeners = this.#listeners;
    if (listeners.length > 0) Object.freeze(event);
    for (let at = 0; at < listeners.length; at += 1) {
      const listener = listeners[at] as Listener<Event>;
      if (this.#isWanted(event.event_type, listener)) this.emitTo(listener, event);
    }
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

  #isWanted(type: string, listener: Listener<Event>): boolean {
    if (listener.listensTo === undefined) return true;
    try {
      return listener.listensTo(type);
    } catch (error) {
      this.#warn(listener, error);
      return false;
    }
  }

  #warn(listener: Listener<Event>, error: unknown): void {
    if (this.#reported.has(listener)) return;
    this.#reported.add(listener);
    // The message may quote a URL, and warnings are printed.
    const message = redactedText(messageOf(error));
    const detail = error instanceof Error && error.stack !== undefined ? { detail: redactedText(error.stack) } : {};
    process.emitWarning(`an event listener failed: ${message}; its further errors are not reported`, {
      type: "DocstokgWarning",
      ...detail,
    });
  }
}
