import { Dispatcher, Dispatcher1Wrapper, errors } from "undici";

type Dispatch = (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => void;

/**
 * The hub as undici's programs and Node's own fetch see it. There is one for each set of options that callers cannot
 * say themselves: fetch hands a dispatcher nothing but the request.
 */
export class HubDispatcher extends Dispatcher {
  readonly #dispatch: Dispatch;

  constructor(dispatch: Dispatch) {
    super();
    this.#dispatch = dispatch;
  }

  /** Always true: there is room in the line, and nobody needs to wait for `drain`. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (typeof handler !== "object" || handler === null) {
      throw new errors.InvalidArgumentError("handler must be an object");
    }
    this.#dispatch(options, toCurrentHandler(handler));
    return true;
  }

  /** Ends nothing: the hub is everybody's, and whoever tidies up after himself must not end it for the others. */
  override close(): Promise<void>;
  override close(callback: () => void): void;
  override close(callback?: () => void): Promise<void> | void {
    return ended(callback);
  }

  /** See close. */
  override destroy(error?: Error | null): Promise<void>;
  override destroy(callback: () => void): void;
  override destroy(error: Error | null, callback: () => void): void;
  override destroy(first?: Error | null | (() => void), second?: () => void): Promise<void> | void {
    return ended(typeof first === "function" ? first : second);
  }
}

function ended(callback: (() => void) | undefined): Promise<void> | void {
  if (callback === undefined) return Promise.resolve();
  queueMicrotask(callback);
}

/** Node's own fetch is an older undici, whose handlers have other callbacks. */
function toCurrentHandler(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  if (typeof handler.onRequestStart === "function" || !("onConnect" in handler)) return handler;
  const { wrapHandler } = Dispatcher1Wrapper as unknown as {
    readonly wrapHandler: (handler: object) => Dispatcher.DispatchHandler;
  };
  return wrapHandler(handler);
}
