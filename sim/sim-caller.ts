import type { Dispatcher } from "undici";
import type { CallPlan } from "./plan.ts";

export interface CallerCallbacks {
  readonly started: (caller: SimCaller) => void;
  readonly done: (call: CallPlan, status: number | undefined, error: string | undefined) => void;
}

/** The caller of one request: reads the response or leaves it unread, and may abort. */
export class SimCaller implements Dispatcher.DispatchHandler {
  readonly call: CallPlan;
  readonly #callbacks: CallerCallbacks;
  #controller: Dispatcher.DispatchController | undefined;
  #status: number | undefined;
  isDone = false;

  constructor(call: CallPlan, callbacks: CallerCallbacks) {
    this.call = call;
    this.#callbacks = callbacks;
  }

  abort(): void {
    if (!this.isDone) this.#controller?.abort(new DOMException("aborted by the caller", "AbortError"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#callbacks.started(this);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    this.#status = status;
    if (!this.call.isRead) controller.pause();
  }

  onResponseEnd(): void {
    this.#end(undefined);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
    this.#end(typeof code === "string" ? code : String(name));
  }

  #end(error: string | undefined): void {
    if (this.isDone) throw new Error(`call ${this.call.id} has ended twice`);
    this.isDone = true;
    this.#callbacks.done(this.call, this.#status, error);
  }
}
