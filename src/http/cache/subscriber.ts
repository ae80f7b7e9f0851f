import type { RequestControl } from "../../core/cache/cache-control.ts";
import type { OutgoingRequest, RequestHandle, ResponseSink } from "../stages/stage.ts";
import type { FallbackRules } from "./revalidation.ts";

/** The shared request, as its subscribers see it. */
export interface SubscribedRequest {
  leave(subscriber: Subscriber, reason: unknown): void;
  updateBackpressure(): void;
}

/** What one caller of a coalesced request has sent. */
export interface SubscribedCall {
  /** As the caller sent it, without the conditions of a revalidation. */
  readonly request: OutgoingRequest;
  /** Its Cache-Control and cache mode; identical requests may differ in the mode. */
  readonly control: RequestControl;
  readonly sink: ResponseSink;
  /** Whether the stored response may be served to this caller without confirmation; undefined without one. */
  readonly rules: FallbackRules | undefined;
}

/** A caller that waits for the response of a coalesced request. */
export class Subscriber implements RequestHandle, SubscribedCall {
  readonly request: OutgoingRequest;
  readonly control: RequestControl;
  readonly sink: ResponseSink;
  readonly rules: FallbackRules | undefined;
  isPaused = false;
  #coalesced: SubscribedRequest | undefined;
  /** Controls its own request or reply, once it has left the coalesced request. */
  #ownHandle: RequestHandle | undefined;

  constructor(coalesced: SubscribedRequest, { request, control, sink, rules }: SubscribedCall) {
    this.#coalesced = coalesced;
    this.request = request;
    this.control = control;
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
