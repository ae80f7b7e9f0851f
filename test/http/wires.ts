import type { AsyncLocalStorage } from "node:async_hooks";
import type { TestContext } from "node:test";
import { Agent, Dispatcher } from "undici";

/** A wire without a network: starts each request at once, with a controller, and calls `answer`. */
export class FakeWire extends Dispatcher {
  readonly origins: string[] = [];
  readonly #answer: (handler: Dispatcher.DispatchHandler, controller: Dispatcher.DispatchController) => void;

  constructor(answer: (handler: Dispatcher.DispatchHandler, controller: Dispatcher.DispatchController) => void) {
    super();
    this.#answer = answer;
  }

  override dispatch({ origin }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.origins.push(String(origin));
    const controller: Dispatcher.DispatchController = {
      aborted: false,
      paused: false,
      reason: null,
      abort: reason => handler.onResponseError?.(controller, reason),
      pause: () => undefined,
      resume: () => undefined,
    };
    handler.onRequestStart?.(controller, null);
    this.#answer(handler, controller);
    return true;
  }
}

/** A wire without a network that passes the handler to the test, without starting the request. */
export class BareWire extends Dispatcher {
  readonly #dispatch: (handler: Dispatcher.DispatchHandler) => void;

  constructor(dispatch: (handler: Dispatcher.DispatchHandler) => void) {
    super();
    this.#dispatch = dispatch;
  }

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#dispatch(handler);
    return true;
  }
}

/** A response of `ImmediateWire`. Without a body the response never ends. */
interface ImmediateResponse {
  readonly status: number;
  readonly location?: string;
  readonly body?: string;
}

/** A wire that answers before `dispatch` returns, as caches and mocks do. */
export class ImmediateWire extends Dispatcher {
  readonly paths: string[] = [];
  aborted = 0;
  readonly #answer: (path: string, number: number) => ImmediateResponse;

  constructor(answer: (path: string, number: number) => ImmediateResponse) {
    super();
    this.#answer = answer;
  }

  override dispatch({ path }: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.paths.push(path);
    const { status, location, body } = this.#answer(path, this.paths.length);
    const controller = new ImmediateController(reason => {
      this.aborted += 1;
      handler.onResponseError?.(controller, reason);
    });
    handler.onRequestStart?.(controller, null);
    if (!controller.aborted) handler.onResponseStart?.(controller, status, location === undefined ? {} : { location });
    if (controller.aborted || body === undefined) return true;
    handler.onResponseData?.(controller, Buffer.from(body));
    if (!controller.aborted) handler.onResponseEnd?.(controller, {});
    return true;
  }
}

class ImmediateController implements Dispatcher.DispatchController {
  aborted = false;
  paused = false;
  reason: Error | null = null;
  readonly #onAbort: (reason: Error) => void;

  constructor(onAbort: (reason: Error) => void) {
    this.#onAbort = onAbort;
  }

  abort(reason: Error): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    this.#onAbort(reason);
  }

  pause(): void {
    this.paused = true;
  }

  resume(): void {
    this.paused = false;
  }
}

/** A wire with one connection that records the asynchronous context of each dispatch. */
export function contextRecordingWire(t: TestContext, context: AsyncLocalStorage<string>) {
  const seen: (string | undefined)[] = [];
  const agent = new Agent({ connections: 1 });
  t.after(() => agent.destroy());
  const wire = agent.compose(dispatch => (options, handler) => {
    seen.push(context.getStore());
    return dispatch(options, handler);
  });
  return { wire, seen };
}
