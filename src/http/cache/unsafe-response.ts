import type { Duplex } from "node:stream";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { ResponseHead, ResponseSink } from "../stages/stage.ts";
import { copiedHeaders } from "./cache-reply.ts";
import { CollectedBody } from "./collected-body.ts";

/** What the cache does with the response of an unsafe request. */
export interface UnsafeResponseDeps {
  /** A longer body is not stored. */
  readonly maxBytes: number;
  readonly invalidate: (head: ResponseHead) => void;
  readonly isStorable: (head: ResponseHead) => boolean;
  readonly store: (head: ResponseHead, chunks: readonly Buffer[]) => void;
}

/**
 * Passes on the response of an unsafe request, removes the stored responses that it makes invalid, and stores it if it may
 * answer later GETs (RFC 9110, section 9.3.3).
 */
export class UnsafeResponse implements ResponseSink {
  readonly #deps: UnsafeResponseDeps;
  readonly #sink: ResponseSink;
  /** A copy, because the caller may change its head while the body arrives; undefined when it is not stored. */
  #head: ResponseHead | undefined;
  /** The body so far; undefined when it is not stored. */
  #body: CollectedBody | undefined;
  #bytes = 0;

  constructor(deps: UnsafeResponseDeps, sink: ResponseSink) {
    this.#deps = deps;
    this.#sink = sink;
  }

  interim(head: ResponseHead): void {
    this.#sink.interim(head);
  }

  started(head: ResponseHead): void {
    this.#deps.invalidate(head);
    if (this.#deps.isStorable(head)) {
      this.#head = { ...head, headers: copiedHeaders(head.headers) };
      this.#body = new CollectedBody();
    }
    this.#sink.started(head);
  }

  data(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes > this.#deps.maxBytes) this.#body = undefined;
    // A copy, because the caller may change or transfer the bytes.
    this.#body?.add(Buffer.from(chunk));
    this.#sink.data(chunk);
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#body !== undefined && this.#head !== undefined) this.#deps.store(this.#head, this.#body.chunks);
    this.#sink.ended(trailers, rawTrailers);
  }

  failed(error: unknown): void {
    this.#sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    this.#sink.upgraded(head, socket);
  }
}
