import type { OutgoingRequest, RequestHandle, ResponseSink } from "../stages/stage.ts";
import type { FallbackRules } from "./revalidation.ts";

/** The shared request, as its subscribers see it. */
export interface SubscribedRequest {
  leave(subscriber: Subscriber, reason: unknown): void;
  updateBackpressure(): void;
}

/** A caller that waits for the response of a coalesced request. */
export class Subscriber implements RequestHandle {
  readonly request: OutgoingRequest;
  readonly sink: ResponseSink;
  /** Whether the stored response may be served to this caller without confirmation; undefined without one. */
  readonly rules: FallbackRules | undefined;
  isPaused = false;
  #coalesced: SubscribedRequest | undefined;
  /** Controls its own request or reply, once it has left the coalesced request. */
  #ownHandle: RequestHandle | undefined;

  constructor(
    coalesced: SubscribedRequest,
    request: OutgoingRequest,
    sink: ResponseSink,
    rules: FallbackRules | undefined,
  ) {
    this.#coalesced = coalesced;
    this.request = request;
    this.sink = sink;
    this.rules = rules;
  }

  /** Leaves the coalesced request; `handle` controls its own request or reply from now on. */
  switchTo(handle: RequestHandle): void {
    this.#coalesced = undefined;
    this.#ownHandle = handle;
    if (this.isPaused) handle.pause();
  }

  pause(): void {
    this.isPaused = true;
    this.#ownHandle?.pause();
    this.#coalesced?.updateBackpressure();
  }

  resume(): void {
    this.isPaused = false;
    this.#ownHandle?.resume();
    this.#coalesced?.updateBackpressure();
  }

  abort(reason: unknown): void {
    this.#ownHandle?.abort(reason);
    this.#coalesced?.leave(this, reason);
    this.#coalesced = undefined;
  }
}
