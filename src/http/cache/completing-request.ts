import { errors } from "undici";
import { type ContentRange, parseContentRange, strongTag } from "../../core/cache/byte-range.ts";
import { freshened, type HeaderFields } from "../../core/cache/stored-fields.ts";
import type { Time } from "../../time/time.ts";
import { joinedHeader, withHeaders } from "../headers.ts";
import { ResendingRequest } from "../stages/resending-request.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "../stages/stage.ts";
import type { FoundResponse } from "./cache-store.ts";
import { completeHead } from "./partial-response.ts";

/** The beginning of a representation, and the tag that the rest must have. */
interface Beginning {
  readonly found: FoundResponse;
  readonly range: ContentRange;
  readonly tag: string;
  readonly body: Buffer;
}

export interface CompletingDeps {
  readonly time: Time;
  readonly next: SendRequest;
  /** Called when the server has sent a rest of another length than it announced: later requests must ask for all bytes. */
  readonly onWrongLength: (request: OutgoingRequest) => void;
}

/**
 * Wraps `next` for a representation whose beginning is stored: requests ask only for the missing bytes, and the response
 * that is passed on is complete. If the stored response is not such a beginning, or a request asks for a range itself, the
 * request is passed on unchanged.
 */
export function completing(found: FoundResponse, deps: CompletingDeps): SendRequest {
  const { next } = deps;
  const beginning = beginningOf(found);
  if (beginning === undefined) return next;
  return (request, sink) =>
    joinedHeader(request.headers, "range") === undefined
      ? new CompletingRequest(deps, request, sink, beginning)
      : next(request, sink);
}

/** Without a strong tag, parts must not be joined (RFC 9111, section 3.4). */
function beginningOf(found: FoundResponse): Beginning | undefined {
  const range = found.status === 206 ? parseContentRange(found.headers["content-range"]) : undefined;
  const tag = strongTag(found.headers);
  if (range === undefined || range.start !== 0 || tag === undefined) return undefined;
  const body = found.body();
  return body?.length === range.end ? { found, range, tag, body } : undefined;
}

class CompletingRequest extends ResendingRequest {
  readonly #onWrongLength: CompletingDeps["onWrongLength"];
  readonly #request: OutgoingRequest;
  readonly #beginning: Beginning;
  /** True when the request was sent again, for all bytes. */
  #isForAllBytes = false;
  /** Bytes of the rest that have not arrived; undefined when the response is not the rest. */
  #missingBytes: number | undefined;
  /** True when the rest has another length than the server has announced: the response is about to fail. */
  #hasWrongLength = false;

  constructor(
    { time, next, onWrongLength }: CompletingDeps,
    request: OutgoingRequest,
    sink: ResponseSink,
    beginning: Beginning,
  ) {
    super(time, next, sink);
    this.#onWrongLength = onWrongLength;
    this.#request = request;
    this.#beginning = beginning;
    const fields = { range: `bytes=${beginning.range.end}-`, "if-range": beginning.tag };
    this.dispatch({ ...request, headers: withHeaders(request.headers, fields) });
  }

  override started(head: ResponseHead): void {
    const complete = this.#isForAllBytes ? undefined : this.#completed(head);
    if (complete !== undefined) this.#missingBytes = this.#beginning.range.length - this.#beginning.range.end;
    super.started(complete ?? head);
    // A copy, because the caller may change or transfer the bytes, and the cache has the same buffer.
    if (complete !== undefined && !this.isOver) this.sink.data(Buffer.from(this.#beginning.body));
  }

  override data(chunk: Buffer): void {
    if (this.#hasWrongLength) return;
    if (this.#missingBytes !== undefined) this.#missingBytes -= chunk.length;
    if ((this.#missingBytes ?? 0) < 0) this.#failLater();
    else super.data(chunk);
  }

  override ended(trailers: HeaderFields, rawTrailers: unknown): void {
    if (this.#hasWrongLength) return;
    if ((this.#missingBytes ?? 0) > 0) this.#failLater();
    else super.ended(trailers, rawTrailers);
  }

  override failed(error: unknown): void {
    if (!this.#hasWrongLength) super.failed(error);
  }

  /**
   * The caller has got the head and the stored bytes, so the response fails as one whose connection breaks. It fails one
   * turn of the event loop later: fetch misses an error that comes in the turn of the head, and its body would never end.
   */
  #failLater(): void {
    this.#hasWrongLength = true;
    this.#onWrongLength(this.#request);
    const error = new errors.ResponseContentLengthMismatchError(
      `${this.#request.host} sent a part whose length is not that of its Content-Range`,
    );
    setImmediate(() => {
      if (!this.isOver) this.failWith(error);
    });
  }

  /** A part that does not follow the stored one is of no use, and a 416 says that the representation is shorter now. */
  protected withholds({ status }: ResponseHead): boolean {
    return !this.#isForAllBytes && (status === 206 || status === 416);
  }

  protected withholdsFailure(): boolean {
    return false;
  }

  protected onWithheldEnd(): void {
    if (this.isOver || this.#isForAllBytes) return;
    this.#isForAllBytes = true;
    this.dispatch(this.#request);
  }

  /** The head of the complete response; undefined when the response is not the rest of the stored one. */
  #completed({ status, headers }: ResponseHead): ResponseHead | undefined {
    const { found, range, tag } = this.#beginning;
    const rest = status === 206 ? parseContentRange(headers["content-range"]) : undefined;
    if (rest?.start !== range.end || rest.end !== rest.length || rest.length !== range.length) return undefined;
    if (strongTag(headers) !== tag) return undefined;
    const complete = completeHead({ headers: freshened(found.headers, headers) }, range.length);
    return { ...complete, rawHeaders: complete.headers };
  }
}
