import { Dispatcher } from "undici";

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

const BODY = Buffer.from('{"status":"ok"}\n');

/** A wire without a network: whoever is behind it answers in the next microtask. */
export class ScriptedWire extends Dispatcher {
  readonly #answer: (path: string) => ScriptedAnswer;

  constructor(answer: (path: string) => ScriptedAnswer) {
    super();
    this.#answer = answer;
  }

  override dispatch({ path }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    queueMicrotask(() => {
      const controller = new NoopController();
      try {
        handler.onRequestStart?.(controller, {});
        const { status, headers } = this.#answer(path);
        handler.onResponseStart?.(controller, status, { ...headers }, "");
        handler.onResponseData?.(controller, BODY);
        handler.onResponseEnd?.(controller, {});
      } catch (error) {
        // As undici's own does: a handler that throws has failed its request, which is how the retry interceptor works.
        handler.onResponseError?.(controller, error as Error);
      }
    });
    return true;
  }

  override async close(): Promise<void> {
    // There is nothing to close.
  }
}

/** Everything comes at once: there is nothing to steer. */
class NoopController implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  readonly rawHeaders: Buffer[] = [];
  readonly rawTrailers: Buffer[] = [];

  pause(): void {
    // Never more than one body of a few bytes.
  }

  resume(): void {
    // See pause.
  }

  abort(): void {
    // Nobody does.
  }
}
