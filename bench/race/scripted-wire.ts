import { Dispatcher } from "undici";

export interface ScriptedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

const BODY = Buffer.from('{"status":"ok"}\n');

/** A dispatcher without a network: a function responds in the next microtask. */
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
        // As in undici: a request whose handler throws has failed. The retry interceptor relies on that.
        handler.onResponseError?.(controller, error as Error);
      }
    });
    return true;
  }

  override async close(): Promise<void> {
    // There is nothing to close.
  }
}

/** The whole response is delivered at once, so there is nothing to pause or abort. */
class NoopController implements Dispatcher.DispatchController {
  readonly aborted = false;
  readonly paused = false;
  readonly reason = null;
  readonly rawHeaders: Buffer[] = [];
  readonly rawTrailers: Buffer[] = [];

  pause(): void {
    // A body has only a few bytes.
  }

  resume(): void {
    // See pause.
  }

  abort(): void {
    // Not called in the race.
  }
}
