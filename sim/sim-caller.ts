import type { Dispatcher } from "undici";
import { RateLimitExceeded } from "../src/errors.ts";
import type { CallPlan } from "./plan.ts";

/** Called once at the end of a call. `retryAfterMs` is what the error of a rate limit says. */
export type OnCallEnd = (
  status: number | undefined,
  error: string | undefined,
  retryAfterMs: number | undefined,
) => void;

/** The caller of one request: reads the response or leaves it unread, and may abort. */
export class SimCaller implements Dispatcher.DispatchHandler {
  readonly call: CallPlan;
  readonly #onEnd: OnCallEnd;
  #controller: Dispatcher.DispatchController | undefined;
  #status: number | undefined;
  isDone = false;

  constructor(call: CallPlan, onEnd: OnCallEnd) {
    this.call = call;
    this.#onEnd = onEnd;
  }

  abort(reason: Error = new DOMException("aborted by the caller", "AbortError")): void {
    if (!this.isDone) this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
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
    const retryAfterMs = error instanceof RateLimitExceeded ? error.retryAfterMs : undefined;
    this.#end(typeof code === "string" ? code : String(name), retryAfterMs);
  }

  #end(error: string | undefined, retryAfterMs?: number): void {
    if (this.isDone) throw new Error(`call ${this.call.id} has ended twice`);
    this.isDone = true;
    this.#onEnd(this.#status, error, retryAfterMs);
  }
}
