import { type ContentRange, parseContentRange, strongTag } from "../../core/cache/byte-range.ts";
import { freshened } from "../../core/cache/stored-fields.ts";
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

/**
 * Wraps `next` for a representation whose beginning is stored: requests ask only for the missing bytes, and the response
 * that is passed on is complete. If the stored response is not such a beginning, or a request asks for a range itself, the
 * request is passed on unchanged.
 */
export function completing(found: FoundResponse, time: Time, next: SendRequest): SendRequest {
  const beginning = beginningOf(found);
  if (beginning === undefined) return next;
  return (request, sink) =>
    joinedHeader(request.headers, "range") === undefined
      ? new CompletingRequest(time, next, request, sink, beginning)
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
  readonly #request: OutgoingRequest;
  readonly #beginning: Beginning;
  /** True when the request was sent again, for all bytes. */
  #isForAllBytes = false;

  constructor(time: Time, next: SendRequest, request: OutgoingRequest, sink: ResponseSink, beginning: Beginning) {
    super(time, next, sink);
    this.#request = request;
    this.#beginning = beginning;
    const fields = { range: `bytes=${beginning.range.end}-`, "if-range": beginning.tag };
    this.dispatch({ ...request, headers: withHeaders(request.headers, fields) });
  }

  override started(head: ResponseHead): void {
    const complete = this.#isForAllBytes ? undefined : this.#completed(head);
    super.started(complete ?? head);
    // A copy, because the caller may change or transfer the bytes, and the cache has the same buffer.
    if (complete !== undefined && !this.isOver) this.sink.data(Buffer.from(this.#beginning.body));
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
