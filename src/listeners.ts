export type Listener<Event> = (event: Event) => void;

/** Those who want to hear of something. One that throws breaks nothing; its first error is a warning of the process. */
export class Listeners<Event> {
  readonly #listeners = new Set<Listener<Event>>();
  readonly #broken = new WeakSet<Listener<Event>>();

  /** Nobody listens most of the time; who would have to build an event first asks. */
  get isEmpty(): boolean {
    return this.#listeners.size === 0;
  }

  /** Answers with the way to stop listening. */
  add(listener: Listener<Event>): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  emit(event: Event): void {
    for (const listener of this.#listeners) this.emitTo(listener, event);
  }

  /** Tells what concerns one of them alone. */
  emitTo(listener: Listener<Event>, event: Event): void {
    try {
      // One that is asynchronous may fail later.
      const answer: unknown = listener(event);
      if (answer instanceof Promise) answer.catch(error => this.#warn(listener, error));
    } catch (error) {
      this.#warn(listener, error);
    }
  }

  #warn(listener: Listener<Event>, error: unknown): void {
    if (this.#broken.has(listener)) return;
    this.#broken.add(listener);
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
