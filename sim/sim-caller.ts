import type { Dispatcher } from "undici";
import type { CallPlan } from "./plan.ts";

export interface CallerEars {
  readonly started: (caller: Caller) => void;
  readonly done: (call: CallPlan, status: number | undefined, error: string | undefined) => void;
}

/** Somebody who makes a call, reads the answer or does not, and may lose patience. */
export class Caller implements Dispatcher.DispatchHandler {
  readonly call: CallPlan;
  readonly #ears: CallerEars;
  #controller: Dispatcher.DispatchController | undefined;
  #status: number | undefined;
  isDone = false;

  constructor(call: CallPlan, ears: CallerEars) {
    this.call = call;
    this.#ears = ears;
  }

  abort(): void {
    if (!this.isDone) this.#controller?.abort(new DOMException("the caller has left", "AbortError"));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#ears.started(this);
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
    this.#ears.done(this.call, this.#status, error);
  }
}
