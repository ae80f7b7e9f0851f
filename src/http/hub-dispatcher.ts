import { Dispatcher, Dispatcher1Wrapper, errors } from "undici";
import type { InnerCallOptions } from "./call-options.ts";

type Dispatch = (options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler) => void;
type DispatchCall = (...args: [...Parameters<Dispatch>, InnerCallOptions]) => void;

/** Whether a request belongs to a call that the hub has sent requests of. */
type ContinuesCall = (options: Dispatcher.DispatchOptions) => boolean;

/** The dispatcher for a request. Node's own fetch is an older undici, whose handlers have other callbacks. */
type SuccessorFor = (hasOlderHandler: boolean) => Dispatcher;

/**
 * The hub as an undici Dispatcher. One object per set of call options, because fetch passes only the request to a
 * dispatcher and no options of the call.
 */
export class HubDispatcher extends Dispatcher {
  readonly #dispatch: Dispatch;
  readonly #continuesCall: ContinuesCall;
  #successorFor: SuccessorFor | undefined;

  constructor(dispatch: Dispatch, continuesCall: ContinuesCall) {
    super();
    this.#dispatch = dispatch;
    this.#continuesCall = continuesCall;
  }

  /** Always true: the hub queues every request, so callers never wait for `drain`. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (typeof handler !== "object" || handler === null) {
      throw new errors.InvalidArgumentError("handler must be an object");
    }
    if (this.#successorFor !== undefined && !this.#continuesCall(options))
      return this.#successorFor(isOlderHandler(handler)).dispatch(options, handler);
    this.#dispatch(withoutDispatcher(options), toCurrentHandler(handler));
    return true;
  }

  /**
   * From now on, requests go to another dispatcher, which gets the handlers of callers unchanged. The hub still sends the
   * redirects of its calls, because it alone knows which credentials they must not have.
   */
  passRequestsTo(successorFor: SuccessorFor): void {
    this.#successorFor = successorFor;
  }

  /** Does not close the hub: other callers share it. */
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

/**
 * The dispatcher of one call of `hub.fetch`. Node's fetch calls only `dispatch`, and a Dispatcher is an EventEmitter,
 * which takes time and memory for each call.
 */
export class FetchDispatcher {
  readonly #dispatch: DispatchCall;
  readonly #call: InnerCallOptions;

  constructor(dispatch: DispatchCall, call: InnerCallOptions) {
    this.#dispatch = dispatch;
    this.#call = call;
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    this.#dispatch(options, toCurrentHandler(handler), this.#call);
    return true;
  }
}

/** The functions of undici 5 to 7 pass their option `dispatcher` on to the dispatcher, where undici 8 refuses it. */
function withoutDispatcher(options: Dispatcher.DispatchOptions): Dispatcher.DispatchOptions {
  if (!("dispatcher" in options)) return options;
  const { dispatcher: _, ...rest } = options as Dispatcher.DispatchOptions & { readonly dispatcher: unknown };
  return rest;
}

function ended(callback: (() => void) | undefined): Promise<void> | void {
  if (callback === undefined) return Promise.resolve();
  queueMicrotask(callback);
}

function isOlderHandler(handler: Dispatcher.DispatchHandler): boolean {
  return typeof handler.onRequestStart !== "function" && "onConnect" in handler;
}

/** undici's wrapper translates the callbacks of older handlers. */
function toCurrentHandler(handler: Dispatcher.DispatchHandler): Dispatcher.DispatchHandler {
  if (!isOlderHandler(handler)) return handler;
  const { wrapHandler } = Dispatcher1Wrapper as unknown as {
    readonly wrapHandler: (handler: object) => Dispatcher.DispatchHandler;
  };
  return wrapHandler(handler);
}
