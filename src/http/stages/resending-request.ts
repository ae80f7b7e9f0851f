import type { Duplex } from "node:stream";
import type { Outcome } from "../../core/breaker/classify.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { CallRecord } from "../call-record.ts";
import {
  DISCARDED_BYTES_MAX,
  DISCARDED_MS_MAX,
  type OutgoingRequest,
  type RequestHandle,
  type ResponseHead,
  type ResponseSink,
  type SendRequest,
} from "./stage.ts";

/** A withheld response while it arrives, and what the record of the call said about it. */
interface ArrivingResponse {
  readonly head: ResponseHead;
  readonly chunks: Buffer[];
  readonly outcome: Outcome | undefined;
  readonly retryAfterMs: number | undefined;
}

interface WithheldResponse extends ArrivingResponse {
  readonly trailers: HeaderFields;
  readonly rawTrailers: unknown;
}

/**
 * Base of the stages that may withhold a response from the caller and send another request instead (retry, redirect).
 * A withheld body is read to its end and not left paused: a paused body would keep a connection and a slot.
 */
export abstract class ResendingRequest implements RequestHandle, ResponseSink {
  protected readonly sink: ResponseSink;
  /** True when the call was aborted or has failed: no response is delivered any more. */
  protected isOver = false;
  readonly #time: Time;
  readonly #next: SendRequest;
  #handle: RequestHandle | undefined;
  /** The record of the request that was dispatched last. */
  #record: CallRecord | undefined;
  #isPaused = false;
  /** True when the caller has got the head of this response, so that it can no longer be replaced. */
  #isDelivered = false;
  /** Bytes received of the withheld response; undefined while no response is withheld. */
  #withheldBytes: number | undefined;
  /** The complete withheld response, for `deliverWithheld`; undefined until it has arrived. */
  #completeWithheld: WithheldResponse | undefined;
  /** The withheld response while it arrives; undefined once it is too long to keep. */
  #arrivingWithheld: ArrivingResponse | undefined;
  /** Ends the withheld response when its body takes too long. */
  #withheldTimer: Timer | undefined;

  constructor(time: Time, next: SendRequest, sink: ResponseSink) {
    this.#time = time;
    this.#next = next;
    this.sink = sink;
  }

  /** True when the response is withheld, because another request follows. */
  protected abstract withholds(head: ResponseHead): boolean;
  /** True when the failure is withheld, because another request follows. */
  protected abstract withholdsFailure(error: unknown): boolean;
  /** The withheld response has ended or failed, or its body is too long or takes too long. */
  protected abstract onWithheldEnd(): void;

  /** Sends a request in place of the previous one. */
  protected dispatch(request: OutgoingRequest): void {
    if (this.#withheldBytes !== undefined) this.#handle?.abort(undefined);
    this.#withheldTimer?.cancel();
    this.#withheldBytes = undefined;
    this.#record = request.record;
    // A later request is sent from the context of a timer or of an earlier response.
    const isFirst = this.#handle === undefined;
    this.#handle = this.#next(
      isFirst || request.needsCallerContext ? request : { ...request, needsCallerContext: true },
      this,
    );
    if (this.#isPaused) this.#handle.pause();
  }

  /** Delivers the withheld response. False when it is not complete. */
  protected deliverWithheld(): boolean {
    const withheld = this.#completeWithheld;
    if (withheld === undefined) return false;
    this.#completeWithheld = undefined;
    this.#isDelivered = true;
    // A later attempt has cleared the record, and the cache must not store a response that was judged a failure.
    this.#record?.settled(withheld.outcome, withheld.retryAfterMs);
    this.sink.started(withheld.head);
    for (const chunk of withheld.chunks) this.sink.data(chunk);
    this.sink.ended(withheld.trailers, withheld.rawTrailers);
    return true;
  }

  /** Aborts the current request and fails the call. */
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
    this.#withheldTimer?.cancel();
    this.#handle?.abort(reason);
  }

  interim(head: ResponseHead): void {
    this.sink.interim(head);
  }

  started(head: ResponseHead): void {
    const { outcome, retryAfterMs } = this.#record ?? {};
    if (!this.withholds(head)) {
      this.#isDelivered = true;
      if (!this.isOver) this.sink.started(head);
      return;
    }
    this.#withheldBytes = 0;
    this.#completeWithheld = undefined;
    this.#arrivingWithheld = { head, chunks: [], outcome, retryAfterMs };
    if (!this.isOver) this.#withheldTimer = this.#time.setTimer(DISCARDED_MS_MAX, () => this.#cutWithheld());
    if (this.#isPaused) this.#handle?.resume();
  }

  data(chunk: Buffer): void {
    if (this.#withheldBytes === undefined) {
      this.sink.data(chunk);
      return;
    }
    this.#withheldBytes += chunk.length;
    this.#arrivingWithheld?.chunks.push(chunk);
    if (this.#withheldBytes > DISCARDED_BYTES_MAX) this.#cutWithheld();
  }

  #cutWithheld(): void {
    this.#arrivingWithheld = undefined;
    this.#handle?.abort(undefined);
    this.#endWithheld();
  }

  #endWithheld(): void {
    this.#withheldTimer?.cancel();
    this.onWithheldEnd();
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#withheldBytes === undefined) {
      this.sink.ended(trailers, rawTrailers);
      return;
    }
    this.#completeWithheld = this.#arrivingWithheld && { ...this.#arrivingWithheld, trailers, rawTrailers };
    this.#endWithheld();
  }

  failed(error: unknown): void {
    if (this.#withheldBytes !== undefined) this.#endWithheld();
    else if (this.#isDelivered || !this.withholdsFailure(error)) this.sink.failed(error);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    this.sink.upgraded(head, socket);
  }
}

const SAFE_TO_REPEAT: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"]);

/** True when the request may be sent twice and its body can be read twice; a stream cannot. */
export function isReplayable({ method, body, call }: OutgoingRequest): boolean {
  const isIdempotent = call.idempotent ?? SAFE_TO_REPEAT.has(method);
  return isIdempotent && isReplayableBody(body);
}

export function isReplayableBody(body: OutgoingRequest["body"]): boolean {
  return body === undefined || body === null || typeof body === "string" || ArrayBuffer.isView(body);
}
