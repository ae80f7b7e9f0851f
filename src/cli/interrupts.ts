import type { Time } from "../time/time.ts";

/** A wrapper such as npx passes the signal on that the process has already received: two this close together are one. */
const SAME_INTERRUPT_MS = 500;

export interface InterruptHandlers {
  /** The first interrupt: requests in flight may finish. */
  readonly onFirst: () => void;
  /** Every later one: stop at once. */
  readonly onAgain: () => void;
}

/** Tells the first Ctrl-C from the second. */
export class Interrupts {
  readonly #time: Time;
  readonly #handlers: InterruptHandlers;
  readonly #controller = new AbortController();
  readonly #first = Promise.withResolvers<void>();
  #firstUs: number | undefined;

  constructor(time: Time, handlers: InterruptHandlers) {
    this.#time = time;
    this.#handlers = handlers;
  }

  /** Aborted by the first interrupt. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Resolves at the first interrupt. */
  get first(): Promise<void> {
    return this.#first.promise;
  }

  readonly receive = (): void => {
    const nowUs = this.#time.monotonicUs();
    if (this.#firstUs === undefined) {
      this.#firstUs = nowUs;
      this.#handlers.onFirst();
      this.#controller.abort();
      this.#first.resolve();
    } else if (nowUs - this.#firstUs > SAME_INTERRUPT_MS * 1000) this.#handlers.onAgain();
  };
}
