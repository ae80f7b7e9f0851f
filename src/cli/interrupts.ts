import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { ExitCode } from "./exit-code.ts";
import type { Io } from "./program.ts";

/** A wrapper such as npx forwards a signal that the process has received already: two within this time count as one. */
const SAME_INTERRUPT_MS = 500;

export interface InterruptHandlers {
  /** Called at the first interrupt: requests in flight may finish. */
  readonly onFirst: () => void;
  /** Called at every later interrupt: stop now. */
  readonly onAgain: () => void;
}

/** Distinguishes the first Ctrl-C from later ones. */
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

/**
 * Runs work that the first Ctrl-C aborts through its signal; the result is then exit code 130. A second Ctrl-C ends the
 * process without waiting for the work.
 */
export async function interruptible(io: Io, work: (signal: AbortSignal) => Promise<ExitCode>): Promise<ExitCode> {
  const interrupts = new Interrupts(io.time ?? systemTime, {
    onFirst: () => undefined,
    onAgain: () => io.exit?.(ExitCode.interrupted),
  });
  const stopListening = io.onInterrupt?.(interrupts.receive);
  try {
    return await work(interrupts.signal);
  } catch (error) {
    if (interrupts.signal.aborted) return ExitCode.interrupted;
    throw error;
  } finally {
    stopListening?.();
  }
}

/** The last message of an interrupted demo, printed when this has happened. */
export function interruptedDemoText(isKept: boolean): string {
  const folder = isKept ? "" : " and its output folder is deleted (--keep keeps it)";
  return `Interrupted before the end of the demo. Its servers are closed${folder}.`;
}
