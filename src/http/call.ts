import { type Duplex, Readable } from "node:stream";
import { type Dispatcher, errors } from "undici";
import { DeadlineExceeded } from "../errors.ts";
import type { Time, Timer } from "../time/time.ts";
import type { Ongoing, UnderWay } from "./active-requests.ts";
import type { Flow, HeaderFields, Outgoing, ResponseHead, Send, Sink } from "./stages/stage.ts";

/** What every call of a hub works with. */
export interface CallRoom {
  readonly send: Send;
  readonly time: Time;
  readonly underWay: UnderWay;
  /** Told when a call is over. */
  readonly finished: (request: Outgoing, status: number | undefined, error: unknown) => void;
}

/**
 * Node's own fetch goes on to the next hop and leaves the page of a redirect unread: held back, it would keep the slot
 * that the hop itself may be waiting for.
 */
const REDIRECT_PAGE_BYTES = 1_048_576;

/**
 * One request as its caller sees it: undici's handler on the outside, a sink on the inside.
 *
 * The handler is started at once, with this as its controller, and once only, however often the request is sent: so an
 * abort reaches a request wherever it is, in a line, between two attempts or on the wire, and whether the caller gave a
 * signal (request) or has none to give (fetch).
 */
export class Call implements Sink, Ongoing, Dispatcher.DispatchController {
  aborted = false;
  reason: Error | null = null;
  paused = false;
  rawHeaders: Buffer[] | string[] | null = null;
  rawTrailers: Buffer[] | string[] | null = null;
  before: Ongoing | undefined = undefined;
  behind: Ongoing | undefined = undefined;
  readonly #room: CallRoom;
  readonly #request: Outgoing;
  readonly #handler: Dispatcher.DispatchHandler;
  #flow: Flow | undefined;
  #deadline: Timer | undefined;
  #onBodyError: ((error: Error) => void) | undefined;
  #status: number | undefined;
  #isOver = false;
  /** So much comes whether the caller is ready for it or not. */
  #freeBytes = 0;

  constructor(room: CallRoom, request: Outgoing, handler: Dispatcher.DispatchHandler) {
    this.#room = room;
    this.#request = request;
    this.#handler = handler;
  }

  begin(): void {
    const { underWay, send } = this.#room;
    const { body, call } = this.#request;
    underWay.add(this);
    // A stream may break while its request is in line, where nobody listens to it yet.
    if (body instanceof Readable) {
      this.#onBodyError = error => this.abort(error);
      body.once("error", this.#onBodyError);
    }
    this.#try(() => this.#handler.onRequestStart?.(this, null));
    if (this.#isOver) return;
    if (call.deadlineMs !== undefined) this.#armDeadline(call.deadlineMs);
    this.#flow = send(this.#request, this);
    // A handler may pause as soon as it is started.
    if (this.paused) this.pause();
  }

  pause(): void {
    this.paused = true;
    if (this.#freeBytes <= 0) this.#flow?.pause();
  }

  resume(): void {
    if (!this.paused) return;
    this.paused = false;
    this.#flow?.resume();
  }

  abort(reason?: unknown): void {
    if (this.#isOver) return;
    this.aborted = true;
    const error = reason instanceof Error ? reason : new errors.RequestAbortedError();
    this.reason = error;
    this.#flow?.abort(reason ?? error);
    // The caller's own words, whatever they are: a signal's reason need not be an error.
    this.failed(reason ?? error);
  }

  informed({ status, statusText, headers, rawHeaders }: ResponseHead): void {
    this.rawHeaders = rawHeaders as Buffer[];
    this.#try(() => this.#handler.onResponseStart?.(this, status, headers as Record<string, string>, statusText));
  }

  started(head: ResponseHead): void {
    this.#status = head.status;
    if (isRedirect(head)) {
      this.#freeBytes = REDIRECT_PAGE_BYTES;
      if (this.paused) this.#flow?.resume();
    }
    this.informed(head);
  }

  data(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#freeBytes -= chunk.length;
    try {
      this.#handler.onResponseData?.(this, chunk);
      if (this.paused && this.#freeBytes > -chunk.length) this.pause();
    } catch (error) {
      this.abort(error);
    }
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#isOver) return;
    this.#end(undefined);
    this.rawTrailers = rawTrailers as Buffer[];
    try {
      this.#handler.onResponseEnd?.(this, trailers as Record<string, string>);
    } catch (error) {
      this.#handler.onResponseError?.(this, error as Error);
    }
  }

  failed(error: unknown): void {
    if (this.#isOver) return;
    this.#end(error);
    const { body } = this.#request;
    // What was not sent is of no use to anybody; a source that is left open would be.
    if (body instanceof Readable && !body.destroyed) body.on("error", ignored).destroy();
    this.#handler.onResponseError?.(this, error as Error);
  }

  upgraded({ status, headers, rawHeaders }: ResponseHead, socket: Duplex): void {
    if (this.#isOver) {
      socket.destroy();
      return;
    }
    this.#status = status;
    this.rawHeaders = rawHeaders as Buffer[];
    this.#end(undefined);
    this.#handler.onRequestUpgrade?.(this, status, headers as Record<string, string>, socket);
  }

  /** A handler that throws has failed its own request, and nobody else's. */
  #try(tell: () => void): void {
    if (this.#isOver) return;
    try {
      tell();
    } catch (error) {
      this.abort(error);
    }
  }

  #armDeadline(deadlineMs: number): void {
    const leftMs = (this.#request.deadlineUs - this.#room.time.monotonicUs()) / 1000;
    this.#deadline = this.#room.time.setTimer(Math.max(0, leftMs), () => {
      // A timer may be early.
      if (this.#room.time.monotonicUs() < this.#request.deadlineUs) {
        this.#armDeadline(deadlineMs);
        return;
      }
      const { host, role, record } = this.#request;
      const { attempts, inLineSinceUs } = record;
      const nowUs = this.#room.time.monotonicUs();
      const waitedMs = record.waitedMs + (nowUs - (inLineSinceUs ?? nowUs)) / 1000;
      this.abort(new DeadlineExceeded({ host, role, deadlineMs, attempts, waitedMs }));
    });
  }

  #end(error: unknown): void {
    this.#isOver = true;
    this.#deadline?.cancel();
    const { body } = this.#request;
    if (this.#onBodyError !== undefined) (body as Readable).off("error", this.#onBodyError);
    this.#room.underWay.delete(this);
    this.#room.finished(this.#request, this.#status, error);
  }
}

function isRedirect({ status, headers }: ResponseHead): boolean {
  return status >= 300 && status < 400 && headers["location"] !== undefined;
}

function ignored(): void {
  // The stream was ours to end, and its last word is about that.
}
