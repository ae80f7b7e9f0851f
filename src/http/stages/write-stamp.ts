import { errors } from "undici";
import { outcomeOfError } from "../../core/breaker/classify.ts";
import type { Grant } from "../../limiter/grant.ts";
import type { Time, Timer } from "../../time/time.ts";
import type { DeferredStamps } from "./deferred-stamps.ts";

export interface WriteStampDeps {
  readonly time: Time;
  readonly deferredStamps: DeferredStamps;
}

/**
 * How long a request over a new connection counts as being written, unless its response begins earlier. On a busy machine
 * a server may notice the request much later than it was sent; 100 ms were too short.
 */
const NEW_CONNECTION_WRITE_MS = 5000;

/**
 * Decides when the headers of one attempt count as written, and stamps the grant at that instant (law L1).
 *
 * Over a connection that was open before, they are written when undici has passed them to the system. Over a new
 * connection the server may notice the request later, mostly in the first burst of a program. There the request
 * counts as being written until the first byte of the response, or for NEW_CONNECTION_WRITE_MS.
 */
export class WriteStamp {
  readonly #deps: WriteStampDeps;
  readonly #grant: Grant;
  #isStarted = false;
  #isNewConnection = false;
  /** When writing over a new connection began, in monotonic microseconds. */
  #startedUs = 0;
  #timer: Timer | undefined;

  constructor(deps: WriteStampDeps, grant: Grant) {
    this.#deps = deps;
    this.#grant = grant;
  }

  /** Writing has begun. The headers of a request with a body leave with its first chunk, however late it is. */
  start(isNewConnection: boolean): void {
    this.#isStarted = true;
    this.#isNewConnection = isNewConnection;
    if (isNewConnection) this.#startedUs = this.#deps.time.monotonicUs();
  }

  /** The headers have been passed to the system: with the first chunk of a body, or with the whole request. */
  sent(): void {
    if (!this.#isNewConnection) this.#grant.written();
    else this.#timer ??= this.#deps.time.setTimer(NEW_CONNECTION_WRITE_MS, () => this.stamp());
  }

  /** The response has begun, or NEW_CONNECTION_WRITE_MS have passed. */
  stamp(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#grant.written();
  }

  /**
   * Releases the grant. Its units are given back only when nothing can have been written (law L5). A request without a
   * response may still be on the way to the server, unless the other side has ended the connection (`isCut`): then it is
   * stamped now.
   */
  release(isCut: boolean): void {
    if (!this.#isStarted) this.#grant.giveBack();
    else if (this.#timer === undefined || isCut) this.#grant.release();
    else this.#deps.deferredStamps.release(this.#grant, this.#unstampedMs());
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  /** How long the request still counts as being written. */
  #unstampedMs(): number {
    const sinceMs = (this.#deps.time.monotonicUs() - this.#startedUs) / 1000;
    return Math.max(0, NEW_CONNECTION_WRITE_MS - sinceMs);
  }
}

/**
 * Whether the other side has ended the connection: the server has the request by now, or never gets it. False for an
 * error by which this process gave up waiting.
 */
export function isConnectionCut(error: unknown): boolean {
  return outcomeOfError(error).kind === "failure" && !(error instanceof errors.HeadersTimeoutError);
}
