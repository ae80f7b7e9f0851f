import type { Duplex } from "node:stream";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { OutgoingRequest, RequestHandle, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

interface WithheldResponse {
  readonly head: ResponseHead;
  readonly chunks: readonly Buffer[];
  readonly trailers: HeaderFields;
  readonly rawTrailers: unknown;
}

/** Bytes of an answer nobody wants that are read and dropped to keep its connection; a longer one costs the connection. */
export const DISCARDED_BYTES_MAX = 65_536;

/**
 * A stage that may keep an answer to itself and send another request in its place.
 * What it keeps is read and dropped, not left paused: that would hold a connection and a slot for nobody.
 */
export abstract class ResendingRequest implements RequestHandle, ResponseSink {
  protected readonly sink: ResponseSink;
  protected isOver = false;
  readonly #next: SendRequest;
  #handle: RequestHandle | undefined;
  #isPaused = false;
  /** The caller has seen the head of this answer, and nothing can come in its place. */
  #isDelivered = false;
  /** How much of an answer that is kept from the caller has come. */
  #withheldBytes: number | undefined;
  /** That answer, should nothing come in its place. Undefined unless it has come whole. */
  #withheld: WithheldResponse | undefined;
  #withholding: { readonly head: ResponseHead; readonly chunks: Buffer[] } | undefined;

  constructor(next: SendRequest, sink: ResponseSink) {
    this.#next = next;
    this.sink = sink;
  }

  /** True when the caller is not to see this answer, because another request follows. */
  protected abstract withholds(head: ResponseHead): boolean;
  protected abstract withholdsFailure(error: unknown): boolean;
  /** The rest of an answer that was kept has come, or never will. */
  protected abstract onWithheldEnd(): void;

  /** In place of whatever went before. */
  protected dispatch(request: OutgoingRequest): void {
    if (this.#withheldBytes !== undefined) this.#handle?.abort(undefined);
    this.#withheldBytes = undefined;
    // Whatever brought the first answer has its own asynchronous context.
    const isFirst = this.#handle === undefined;
    this.#handle = this.#next(
      isFirst || request.needsCallerContext ? request : { ...request, needsCallerContext: true },
      this,
    );
    if (this.#isPaused) this.#handle.pause();
  }

  /** The caller gets the answer that was kept from him after all. False when it did not come whole. */
  protected deliverWithheld(): boolean {
    const withheld = this.#withheld;
    if (withheld === undefined) return false;
    this.#withheld = undefined;
    this.#isDelivered = true;
    this.sink.started(withheld.head);
    for (const chunk of withheld.chunks) this.sink.data(chunk);
    this.sink.ended(withheld.trailers, withheld.rawTrailers);
    return true;
  }

  /** Ends what is under way with an error for the caller. */
  protected failWith(error: unknown): void {
    this.#handle?.abort(error);
    this.sink.failed(error);
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#withheldBytes === undefined) this.#handle?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    if (this.#withheldBytes === undefined) this.#handle?.resume();
  }

  abort(reason: unknown): void {
    this.isOver = true;
    this.#handle?.abort(reason);
  }

  interim(head: ResponseHead): void {
    this.sink.interim(head);
  }

  started(head: ResponseHead): void {
    if (!this.withholds(head)) {
      this.#isDelivered = true;
      if (!this.isOver) this.sink.started(head);
      return;
    }
    this.#withheldBytes = 0;
    this.#withheld = undefined;
    this.#withholding = { head, chunks: [] };
    if (this.#isPaused) this.#handle?.resume();
  }

  data(chunk: Buffer): void {
    if (this.#withheldBytes === undefined) {
      this.sink.data(chunk);
      return;
    }
    this.#withheldBytes += chunk.length;
    this.#withholding?.chunks.push(chunk);
    if (this.#withheldBytes <= DISCARDED_BYTES_MAX) return;
    this.#withholding = undefined;
    this.#handle?.abort(undefined);
    this.onWithheldEnd();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#withheldBytes === undefined) {
      this.sink.ended(trailers, rawTrailers);
      return;
    }
    this.#withheld = this.#withholding && { ...this.#withholding, trailers, rawTrailers };
    this.onWithheldEnd();
  }

  failed(error: unknown): void {
    if (this.#withheldBytes !== undefined) this.onWithheldEnd();
    else if (this.#isDelivered || !this.withholdsFailure(error)) this.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    this.sink.upgraded(head, socket);
  }
}
