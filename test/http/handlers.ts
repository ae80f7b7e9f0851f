import assert from "node:assert/strict";
import type { Dispatcher } from "undici";
import type { CallOptions } from "../../src/http/call-options.ts";
import type { Hub } from "../../src/http/hub.ts";
import { until } from "./kit.ts";

/** Records the callbacks of a request. With `isHeld` it pauses as soon as it is started. */
export class RecordingHandler implements Dispatcher.DispatchHandler {
  readonly lines: string[] = [];
  bytes = 0;
  readonly #isHeld: boolean;
  #controller: Dispatcher.DispatchController | undefined;

  constructor(isHeld = false) {
    this.#isHeld = isHeld;
  }

  get controller(): Dispatcher.DispatchController {
    assert.ok(this.#controller);
    return this.#controller;
  }

  /** Waits for a recorded line. */
  async waitFor(line: string): Promise<void> {
    await until(() => this.lines.includes(line));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isHeld) controller.pause();
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.lines.push(`head ${status}`);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.bytes += chunk.length;
  }

  onResponseEnd(): void {
    this.lines.push("end");
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.lines.push(`error ${error?.message}`);
  }
}

/** Dispatches a GET through the hub with this handler, and returns the handler. */
export function dispatchTo(hub: Hub, url: string, handler: RecordingHandler, call: CallOptions = {}): RecordingHandler {
  const { origin, pathname } = new URL(url);
  hub.dispatcher(call).dispatch({ origin, path: pathname, method: "GET" }, handler);
  return handler;
}

/** Records callbacks in private state, with methods on the prototype, as undici's own handlers: a copy would not work. */
export class StatefulHandler implements Dispatcher.DispatchHandler {
  readonly #lines: string[] = [];
  readonly #end = Promise.withResolvers<void>();

  /** The recorded callbacks, after the last one. */
  async lines(): Promise<readonly string[]> {
    await this.#end.promise;
    // A callback too many would come soon.
    for (let turn = 0; turn < 20; turn += 1) await new Promise(done => setImmediate(done));
    return this.#lines;
  }

  onRequestStart(): void {
    this.#lines.push("start");
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number): void {
    this.#lines.push(`head ${status}`);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#lines.push(`data ${chunk}`);
  }

  onResponseEnd(): void {
    this.#lines.push("end");
    this.#end.resolve();
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#lines.push(`error ${error.message}`);
    this.#end.resolve();
  }
}

/** Dispatches a GET and returns the recorded callbacks. */
export function dispatchRecorded(dispatcher: Dispatcher, origin: string, path = "/"): Promise<readonly string[]> {
  const handler = new StatefulHandler();
  assert.equal(dispatcher.dispatch({ origin, path, method: "GET" }, handler), true);
  return handler.lines();
}

/** The recorded callbacks of a handler. */
interface DispatchLog {
  readonly lines: string[];
  readonly controller: () => Dispatcher.DispatchController | undefined;
}

type HandlerCallback = "start" | "head" | "data" | "end" | "error";

/** Dispatches a GET with a handler that calls `act` in one of its callbacks. */
export function dispatchActing(
  hub: Hub,
  url: string,
  callback?: HandlerCallback,
  act?: (controller: Dispatcher.DispatchController) => void,
  maxRedirections = 0,
): DispatchLog {
  const lines: string[] = [];
  let own: Dispatcher.DispatchController | undefined;
  const record = (now: HandlerCallback, controller: Dispatcher.DispatchController, more = "") => {
    lines.push(`${now}${more}`);
    own = controller;
    if (now === callback) act?.(controller);
  };
  const { origin, pathname } = new URL(url);
  hub.dispatcher({ maxRedirections }).dispatch(
    { origin, path: pathname, method: "GET" },
    {
      onRequestStart: controller => record("start", controller),
      onResponseStart: (controller, status) => record("head", controller, ` ${status}`),
      onResponseData: controller => record("data", controller),
      onResponseEnd: controller => record("end", controller),
      onResponseError: (controller, { message }) => record("error", controller, ` ${message}`),
    },
  );
  return { lines, controller: () => own };
}
