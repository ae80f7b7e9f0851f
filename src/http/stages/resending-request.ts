import type { Duplex } from "node:stream";
import type { Flow, HeaderFields, Outgoing, ResponseHead, Send, Sink } from "./stage.ts";

interface KeptAnswer {
  readonly head: ResponseHead;
  readonly chunks: readonly Buffer[];
  readonly trailers: HeaderFields;
  readonly rawTrailers: unknown;
}

/** Bytes of an answer nobody wants that are read and dropped to keep its connection; a longer one costs the connection. */
export const DROPPED_BYTES_MAX = 65_536;

/**
 * A stage that may keep an answer to itself and send another request in its place.
 * What it keeps is read and dropped, not left paused: that would hold a connection and a slot for nobody.
 */
export abstract class Relay implements Flow, Sink {
  protected readonly sink: Sink;
  protected isOver = false;
  readonly #next: Send;
  #flow: Flow | undefined;
  #isPaused = false;
  /** The caller has seen the head of this answer, and nothing can come in its place. */
  #isTold = false;
  /** How much of an answer that is kept from the caller has come. */
  #dropped: number | undefined;
  /** That answer, should nothing come in its place. Undefined unless it has come whole. */
  #kept: KeptAnswer | undefined;
  #keeping: { readonly head: ResponseHead; readonly chunks: Buffer[] } | undefined;

  constructor(next: Send, sink: Sink) {
    this.#next = next;
    this.sink = sink;
  }

  /** True when the caller is not to see this answer, because another request follows. */
  protected abstract keeps(head: ResponseHead): boolean;
  protected abstract keepsFailure(error: unknown): boolean;
  /** The rest of an answer that was kept has come, or never will. */
  protected abstract dropped(): void;

  /** In place of whatever went before. */
  protected dispatch(request: Outgoing): void {
    if (this.#dropped !== undefined) this.#flow?.abort(undefined);
    this.#dropped = undefined;
    // Whatever brought the first answer has its own asynchronous context.
    const isFirst = this.#flow === undefined;
    this.#flow = this.#next(isFirst || request.isAstray ? request : { ...request, isAstray: true }, this);
    if (this.#isPaused) this.#flow.pause();
  }

  /** The caller gets the answer that was kept from him after all. False when it did not come whole. */
  protected replayKept(): boolean {
    const kept = this.#kept;
    if (kept === undefined) return false;
    this.#kept = undefined;
    this.#isTold = true;
    this.sink.started(kept.head);
    for (const chunk of kept.chunks) this.sink.data(chunk);
    this.sink.ended(kept.trailers, kept.rawTrailers);
    return true;
  }

  /** Ends what is under way with an error for the caller. */
  protected giveUp(error: unknown): void {
    this.#flow?.abort(error);
    this.sink.failed(error);
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#dropped === undefined) this.#flow?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#dropped === undefined) this.#flow?.resume();
  }

  abort(reason: unknown): void {
    this.isOver = true;
    this.#flow?.abort(reason);
  }

  informed(head: ResponseHead): void {
    this.sink.informed(head);
  }

  started(head: ResponseHead): void {
    if (!this.keeps(head)) {
      this.#isTold = true;
      if (!this.isOver) this.sink.started(head);
      return;
    }
    this.#dropped = 0;
    this.#kept = undefined;
    this.#keeping = { head, chunks: [] };
    if (this.#isPaused) this.#flow?.resume();
  }

  data(chunk: Buffer): void {
    if (this.#dropped === undefined) {
      this.sink.data(chunk);
      return;
    }
    this.#dropped += chunk.length;
    this.#keeping?.chunks.push(chunk);
    if (this.#dropped <= DROPPED_BYTES_MAX) return;
    this.#keeping = undefined;
    this.#flow?.abort(undefined);
    this.dropped();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#dropped === undefined) {
      this.sink.ended(trailers, rawTrailers);
      return;
    }
    this.#kept = this.#keeping && { ...this.#keeping, trailers, rawTrailers };
    this.dropped();
  }

  failed(error: unknown): void {
    if (this.#dropped !== undefined) this.dropped();
    else if (this.#isTold || !this.keepsFailure(error)) this.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    this.sink.upgraded(head, socket);
  }
}
