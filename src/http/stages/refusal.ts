import type { Duplex } from "node:stream";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { RateLimitExceeded, RejectedError } from "../../errors.ts";
import type { Time } from "../../time/time.ts";
import type { OutgoingRequest, ResponseHead, ResponseSink, SendRequest } from "./stage.ts";

/** Retry-After of a refusal whose duration is not known, in ms. */
const UNKNOWN_WAIT_MS = 1000;

/** `detail` of `Cache-Status`, and `type` in the body. */
const DETAILS: Readonly<Record<string, string>> = {
  DOCSTOKG_RATE_LIMITED: "rate-limited",
  DOCSTOKG_BREAKER_OPEN: "breaker-open",
  DOCSTOKG_BUSY: "busy",
};

/**
 * Answers refused requests with a 429 or 503 when the call has `refusals: "respond"`. SDKs treat a rejected fetch as a
 * broken connection and retry at once, but they obey the Retry-After of a response.
 */
export function refusalStage(time: Time, next: SendRequest): SendRequest {
  return (request, sink) =>
    next(request, request.call.refusals === "respond" ? new RespondingSink(time, request, sink) : sink);
}

class RespondingSink implements ResponseSink {
  readonly #time: Time;
  readonly #request: OutgoingRequest;
  readonly #sink: ResponseSink;
  #isStarted = false;

  constructor(time: Time, request: OutgoingRequest, sink: ResponseSink) {
    this.#time = time;
    this.#request = request;
    this.#sink = sink;
  }

  interim(head: ResponseHead): void {
    this.#sink.interim(head);
  }

  started(head: ResponseHead): void {
    this.#isStarted = true;
    this.#sink.started(head);
  }

  data(chunk: Buffer): void {
    this.#sink.data(chunk);
  }

  ended(trailers: HeaderFields, rawTrailers: unknown): void {
    this.#sink.ended(trailers, rawTrailers);
  }

  failed(error: unknown): void {
    if (this.#isStarted || !(error instanceof RejectedError)) {
      this.#sink.failed(error);
      return;
    }
    const { record, method } = this.#request;
    record.refusal = error;
    const { head, body } = refusalResponse(error, this.#time.wallMs());
    this.#sink.started(head);
    if (method !== "HEAD") this.#sink.data(body);
    this.#sink.ended({}, []);
  }

  upgraded(head: ResponseHead, socket: Duplex): void {
    this.#sink.upgraded(head, socket);
  }
}

/**
 * The response for a refusal. `retry-after-ms` is read by the SDKs of OpenAI and Anthropic; `x-ratelimit-remaining` and
 * `x-ratelimit-reset` by Octokit. The body has the message where these SDKs look for it.
 */
function refusalResponse(error: RejectedError, nowMs: number): { readonly head: ResponseHead; readonly body: Buffer } {
  const { code, message, host, role, constraint, decidedBy, retryAfterMs } = error;
  const isRateLimit = error instanceof RateLimitExceeded;
  const waitMs = Math.ceil(retryAfterMs ?? UNKNOWN_WAIT_MS);
  const detail = DETAILS[code] ?? "refused";
  const fields = {
    type: detail,
    code,
    message,
    host,
    role,
    constraint,
    decided_by: decidedBy,
    retry_after_ms: retryAfterMs ?? null,
  };
  const body = Buffer.from(`${JSON.stringify({ message, error: fields })}\n`);
  const headers = {
    "content-type": "application/json",
    "content-length": String(body.length),
    "cache-control": "no-store",
    "cache-status": `docstokg; detail=${detail}`,
    "retry-after": String(Math.max(1, Math.ceil(waitMs / 1000))),
    "retry-after-ms": String(Math.max(1, waitMs)),
    ...(isRateLimit && {
      "x-ratelimit-remaining": "0",
      "x-ratelimit-reset": String(Math.ceil((nowMs + waitMs) / 1000)),
    }),
  };
  const [status, statusText] = isRateLimit ? [429, "Too Many Requests"] : [503, "Service Unavailable"];
  return { head: { status, statusText, headers, rawHeaders: headers }, body };
}
