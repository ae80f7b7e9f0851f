import type { Duplex } from "node:stream";
import { type Dispatcher, errors } from "undici";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import type { Time, Timer } from "../time/time.ts";
import type { ActiveRequest, ActiveRequests } from "./active-requests.ts";
import { type BodyStream, isBodyStream } from "./body-stream.ts";
import { deadlineError } from "./call-record.ts";
import { fieldLine } from "./headers.ts";
import type { RequestTelemetry } from "./request-telemetry.ts";
import { isRedirect } from "./stages/redirect-hop.ts";
import {
  DISCARDED_BYTES_MAX,
  DISCARDED_MS_MAX,
  type OutgoingRequest,
  type RequestHandle,
  type ResponseHead,
  type ResponseSink,
  type SendRequest,
} from "./stages/stage.ts";

export interface CallDeps {
  readonly send: SendRequest;
  readonly time: Time;
  readonly activeRequests: ActiveRequests;
  readonly telemetry: RequestTelemetry;
}

/**
 * Bytes of a redirect's body that are read even while the caller pauses. Node's fetch does not read this body before it
 * sends the next hop, so pausing would keep the slot that the next hop may be waiting for.
 */
const REDIRECT_BODY_BYTES_MAX = 1_048_576;

/**
 * The outermost stage: connects the caller's undici handler to the other stages.
 *
 * The handler is started once and immediately, with this object as its controller, however often the request is sent.
 * So the caller can abort the request at any time: in the queue, between two attempts and while it is being sent.
 */
export class Call implements ResponseSink, ActiveRequest, Dispatcher.DispatchController {
  readonly isCall = true;
  aborted = false;
  reason: Error | null = null;
  paused = false;
  rawHeaders: Buffer[] | string[] | null = null;
  rawTrailers: Buffer[] | string[] | null = null;
  previousActive: ActiveRequest | undefined = undefined;
  nextActive: ActiveRequest | undefined = undefined;
  readonly #deps: CallDeps;
  /** Undefined when the call is over, and so are the two below: the caller may keep this object with its response. */
  #request: OutgoingRequest | undefined;
  #handler: Dispatcher.DispatchHandler | undefined;
  #handle: RequestHandle | undefined;
  #deadline: Timer | undefined;
  #onBodyError: ((error: Error) => void) | undefined;
  #status: number | undefined;
  /** True when the caller has ended the call, or the hub is being destroyed. */
  #isEndedFromOutside = false;
  /** Bytes that are still delivered while the caller pauses. */
  #unpausableBytes = 0;
  /** Ends a redirect whose body is not read, when that body takes too long; undefined for another response. */
  #redirectTimer: Timer | undefined;

  constructor(deps: CallDeps, request: OutgoingRequest, handler: Dispatcher.DispatchHandler) {
    this.#deps = deps;
    this.#request = request;
    this.#handler = handler;
  }

  begin(): void {
    const { activeRequests, send } = this.#deps;
    const request = this.#request;
    if (request === undefined) return;
    const { body, call } = request;
    activeRequests.add(this);
    // A stream may fail while the request is queued, when undici does not yet listen for its errors.
    if (isBodyStream(body)) this.#watchBody(body);
    try {
      this.#handler?.onRequestStart?.(this, null);
    } catch (error) {
      this.abort(error);
    }
    if (this.#isOver) return;
    if (call.deadlineMs !== undefined) this.#armDeadline(request);
    this.#handle = send(request, this);
    // The handler may have paused in onRequestStart.
    if (this.paused) this.pause();
  }

  get #isOver(): boolean {
    return this.#request === undefined;
  }

  #watchBody(body: BodyStream): void {
    this.#onBodyError = error => this.abort(error);
    body.once("error", this.#onBodyError);
  }

  pause(): void {
    this.paused = true;
    if (this.#unpausableBytes <= 0) this.#handle?.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.#handle?.resume();
  }

  abort(reason?: unknown): void {
    if (this.#isOver) return;
    this.#isEndedFromOutside = true;
    this.#abort(reason);
  }

  #abort(reason: unknown): void {
    if (this.#isOver) return;
    this.aborted = true;
    const error = reason instanceof Error ? reason : new errors.RequestAbortedError();
    this.reason = error;
    this.#stopDiscarding();
    this.#handle?.abort(reason ?? error);
    // Passed on unchanged: the reason of an AbortSignal may be any value.
    this.failed(reason ?? error);
  }

  interim({ status, statusText, headers, rawHeaders }: ResponseHead): void {
    this.rawHeaders = rawHeaders as Buffer[];
    if (this.#isOver) return;
    try {
      this.#handler?.onResponseStart?.(this, status, headers as Record<string, string>, statusText);
    } catch (error) {
      // An error thrown by the handler aborts only its own request.
      this.abort(error);
    }
  }

  started(head: ResponseHead): void {
    if (this.#request === undefined) return;
    this.#status = head.status;
    this.#request.call.fetchCall?.answered(head, this.#request);
    if (isRedirect({ status: head.status, location: fieldLine(head.headers["location"]) })) {
      const isDiscarded = this.#request.call.fetchCall?.discardsRedirects === true;
      this.#unpausableBytes = isDiscarded ? DISCARDED_BYTES_MAX : REDIRECT_BODY_BYTES_MAX;
      if (isDiscarded) this.#redirectTimer = this.#deps.time.setTimer(DISCARDED_MS_MAX, () => this.#cutRedirect());
      if (this.paused) this.#handle?.resume();
    }
    this.interim(head);
  }

  /**
   * fetch sends the next hop without reading this body, and an error of it would fail the whole call. So the redirect ends
   * here as if its body were complete, which frees its slot for the next hop.
   */
  #cutRedirect(): void {
    this.#handle?.abort(undefined);
    this.ended({}, []);
  }

  #stopDiscarding(): void {
    this.#redirectTimer?.cancel();
    this.#redirectTimer = undefined;
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#unpausableBytes -= chunk.length;
    try {
      this.#handler?.onResponseData?.(this, chunk);
      if (this.#redirectTimer !== undefined && this.#unpausableBytes <= 0) this.#cutRedirect();
      // While `#unpausableBytes` was above 0, a pause of the handler was not passed on.
      else if (this.paused && this.#unpausableBytes + chunk.length > 0) this.pause();
    } catch (error) {
      this.abort(error);
    }
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    const request = this.#request;
    const handler = this.#end(undefined);
    if (handler === undefined) return;
    // A response of the hub itself, such as that to a refusal: nothing was sent.
    if (request?.record.attempts === 0) closeStream(request.body);
    this.rawTrailers = rawTrailers as Buffer[];
    try {
      handler.onResponseEnd?.(this, trailers as Record<string, string>);
    } catch (error) {
      handler.onResponseError?.(this, error as Error);
    }
  }

  failed(error: unknown): void {
    if (this.#redirectTimer !== undefined) {
      this.ended({}, []);
      return;
    }
    const body = this.#request?.body;
    const handler = this.#end(error);
    closeStream(body);
    handler?.onResponseError?.(this, error as Error);
  }

  upgraded({ status, headers, rawHeaders }: ResponseHead, socket: Duplex): void {
    if (this.#isOver) {
      socket.destroy();
      return;
    }
    this.#status = status;
    this.rawHeaders = rawHeaders as Buffer[];
    this.#end(undefined)?.onRequestUpgrade?.(this, status, headers as Record<string, string>, socket);
  }

  #armDeadline(request: OutgoingRequest): void {
    const leftMs = (request.deadlineUs - this.#deps.time.monotonicUs()) / 1000;
    this.#deadline = this.#deps.time.setTimer(Math.max(0, leftMs), () => {
      const error = deadlineError(request, this.#deps.time.monotonicUs());
      // A timer may fire up to 1 ms early.
      if (error === undefined) this.#armDeadline(request);
      else this.#abort(error);
    });
  }

  /** Ends the call, once. Returns the handler, which must still be called. */
  #end(error: unknown): Dispatcher.DispatchHandler | undefined {
    const request = this.#request;
    const handler = this.#handler;
    if (request === undefined) return undefined;
    this.#request = undefined;
    this.#handler = undefined;
    this.#handle = undefined;
    this.#deadline?.cancel();
    this.#deadline = undefined;
    this.#stopDiscarding();
    const { body, record } = request;
    if (this.#onBodyError !== undefined) (body as unknown as BodyStream).removeListener("error", this.#onBodyError);
    this.#deps.activeRequests.delete(this);
    // No server sent the response to a refusal, so the event has no status.
    const { refusal } = record;
    const status = refusal === undefined ? this.#status : undefined;
    this.#deps.telemetry.emitRequest(request, {
      status,
      error: refusal ?? error,
      isAborted: this.#isEndedFromOutside,
    });
    return handler;
  }
}

/** The rest of a request body will not be read: a source that is left open would leak. */
function closeStream(body: OutgoingRequest["body"]): void {
  if (!isBodyStream(body) || body.destroyed) return;
  body.on("error", ignored);
  body.destroy?.();
}

function ignored(): void {
  // The stream was destroyed on purpose; its error needs no handling.
}
