/**
 * What a response or an error says about the host: the one judgement that breaker and retry share (law B4).
 * A failure is the host's own. Whatever is the caller's, ours, or unknown is neutral, because a bug in a program must
 * not open the circuit of a healthy host.
 */

/** `throttled`: the host is well and asks for less. Such failures also feed the adaptive rate. */
export type Outcome =
  | { readonly kind: "success" }
  | { readonly kind: "failure"; readonly cause: "status" | "network"; readonly throttled: boolean }
  | { readonly kind: "neutral" };

/**
 * `neutralStatuses` wins over `failureStatuses`, which wins over "2xx and 3xx are successes". A status in no list and
 * outside 2xx and 3xx is neutral anyway, so the neutral list can only mean an exception and must be the stronger one.
 */
export interface ClassifyRules {
  readonly failureStatuses: ReadonlySet<number>;
  readonly neutralStatuses: ReadonlySet<number>;
}

export interface ResponseFacts {
  readonly status: number;
  /** The wait that a valid `Retry-After` asks for. */
  readonly retryAfterMs?: number | undefined;
  /** The smallest `remaining` that the response announces. */
  readonly remaining?: number | undefined;
  /** The response carries `memento-datetime`: an archive replays what another server once said. */
  readonly isMemento?: boolean | undefined;
}

export const defaultClassifyRules: ClassifyRules = {
  failureStatuses: new Set([408, 429, 500, 502, 503, 504]),
  neutralStatuses: new Set([401, 403, 404, 410, 451]),
};

// Shared, so that judging a response allocates nothing.
const SUCCESS: Outcome = Object.freeze({ kind: "success" });
const NEUTRAL: Outcome = Object.freeze({ kind: "neutral" });
const FAILED: Outcome = Object.freeze({ kind: "failure", cause: "status", throttled: false });
const THROTTLED: Outcome = Object.freeze({ kind: "failure", cause: "status", throttled: true });
const UNREACHABLE: Outcome = Object.freeze({ kind: "failure", cause: "network", throttled: false });

/** A 403 that names a wait or an empty quota is a throttle by another number, whatever the lists say of 403. */
export function outcomeOfResponse(response: ResponseFacts, rules: ClassifyRules = defaultClassifyRules): Outcome {
  const { status, retryAfterMs, remaining, isMemento } = response;
  // What an archive replays is the capture's status; that it replays a good one is all that it says of itself.
  if (isMemento) return status >= 200 && status < 400 ? SUCCESS : NEUTRAL;
  const hasRetryAfter = retryAfterMs !== undefined && retryAfterMs > 0;
  if (status === 403 && (hasRetryAfter || remaining === 0)) return THROTTLED;
  if (rules.neutralStatuses.has(status)) return NEUTRAL;
  if (rules.failureStatuses.has(status))
    return status === 429 || (status === 503 && hasRetryAfter) ? THROTTLED : FAILED;
  return status >= 200 && status < 400 ? SUCCESS : NEUTRAL;
}

/** Connect, DNS, reset and time-out; a truncated body. Local shortages (EMFILE, EADDRNOTAVAIL) are not the host's. */
const NETWORK_CODES: ReadonlySet<string> = new Set(
  (
    "ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN ENETRESET EPROTO " +
    "ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ESERVFAIL EREFUSED ETIMEOUT " +
    "UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET " +
    "UND_ERR_RES_CONTENT_LENGTH_MISMATCH DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN HOSTNAME_MISMATCH " +
    "INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED"
  ).split(" "),
);

/** Families: TLS, certificates, an answer that is no HTTP, and HTTP/2 streams and sessions (not its caller errors). */
const NETWORK_FAMILIES =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|HPE_|ERR_HTTP2_(?:ERROR|STREAM_|SESSION_|GOAWAY_|PING_|INVALID_SESSION|INVALID_STREAM))/;

/** Real chains have two or three links; the bound is for those that somebody builds, or that never end. */
const LINKS_MAX = 64;

/**
 * Walks `cause` and `errors`, since fetch hides the reason under a TypeError and a dual-stack connect under an
 * AggregateError. One link that is the caller's or ours makes the whole neutral: an abort resets the socket, and our
 * store's own ECONNREFUSED says nothing about the host.
 */
export function outcomeOfError(error: unknown): Outcome {
  const links = new Set([error]);
  let outcome = NEUTRAL;
  for (const link of links) {
    if (isCallerOrOwnError(link)) return NEUTRAL;
    if (isNetworkFault(link)) outcome = UNREACHABLE;
    for (const next of [property(link, "cause"), ...nested(link)]) if (links.size < LINKS_MAX) links.add(next);
  }
  return outcome;
}

/** A caller's abort or deadline, or an error of this package. */
function isCallerOrOwnError(link: unknown): boolean {
  const name = property(link, "name");
  const code = property(link, "code");
  if (name === "AbortError" || code === "ABORT_ERR" || code === "UND_ERR_ABORTED") return true;
  // `AbortSignal.timeout` gives a DOMException, whose code is a number; other libraries use the name with a real code.
  if (name === "TimeoutError") return !isNetworkFault(link);
  return typeof code === "string" && code.startsWith("DOCSTOKG_");
}

function isNetworkFault(link: unknown): boolean {
  const code = property(link, "code");
  if (typeof code !== "string") return false;
  // undici reports an HTTP/2 stream that ended early this way, and with a cause a request that it could not open. A
  // server that lets a session go in peace (code 0) has not failed.
  if (code === "UND_ERR_INFO") {
    return (
      property(link, "cause") === undefined && !/"GOAWAY" frame .* code 0$/.test(String(property(link, "message")))
    );
  }
  return NETWORK_CODES.has(code) || NETWORK_FAMILIES.test(code);
}

function nested(link: unknown): readonly unknown[] {
  try {
    const errors = property(link, "errors");
    return Array.isArray(errors) ? errors.slice(0, LINKS_MAX) : [];
  } catch {
    return [];
  }
}

/** Anything can be thrown, proxies and objects with failing getters too. */
function property(value: unknown, key: string): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}
