/**
 * Classifies a response or an error as success, failure or neutral, for breakers and retries alike (law B4).
 * A failure is a fault of the host or the network. Errors of the caller, of this package, and unknown errors are neutral,
 * because a bug in a program must not open the circuit of a healthy host.
 */

/** A classified response or error. */
export type Outcome =
  | { readonly kind: "success" }
  | {
      readonly kind: "failure";
      /** `status`: the host has answered. `network`: no complete answer, or one that is not HTTP. */
      readonly cause: "status" | "network";
      /** The host works, and requires fewer requests. */
      readonly throttled: boolean;
      /** The call never reached the host: DNS, connect or TLS failed. @default false */
      readonly unreached?: boolean | undefined;
    }
  | { readonly kind: "neutral" };

/**
 * A status in `neutralStatuses` is neutral, one in `failureStatuses` is a failure; `neutralStatuses` wins. A status in
 * neither list is a success if it is 2xx or 3xx, and neutral otherwise.
 */
export interface ClassifyRules {
  readonly failureStatuses: ReadonlySet<number>;
  readonly neutralStatuses: ReadonlySet<number>;
}

/** The parts of a response that decide its outcome. */
export interface ResponseFacts {
  /** HTTP status. */
  readonly status: number;
  /** Delay of a valid `Retry-After`, in milliseconds. */
  readonly retryAfterMs?: number | undefined;
  /** The smallest `remaining` that the rate limit headers announce. */
  readonly remaining?: number | undefined;
  /** True when the response has `memento-datetime`: an archive replays the status of another server. */
  readonly isMemento?: boolean | undefined;
}

/** Cloudflare could not reach the host or got no valid answer (520 to 527, 530); 529: the host is overloaded. */
const PROXY_STATUSES = [520, 521, 522, 523, 524, 525, 526, 527, 529, 530];

/** With Retry-After these are throttles: the host works, and says when it takes the next request. */
const OVERLOAD_STATUSES: ReadonlySet<number> = new Set([503, 509, 529]);

export const defaultClassifyRules: ClassifyRules = {
  failureStatuses: new Set([408, 429, 500, 502, 503, 504, 507, 509, ...PROXY_STATUSES]),
  neutralStatuses: new Set([401, 403, 404, 410, 451]),
};

// Shared, so that classifying a response allocates nothing.
export const SUCCESS: Outcome = Object.freeze({ kind: "success" });
export const NEUTRAL: Outcome = Object.freeze({ kind: "neutral" });
export const FAILED: Outcome = Object.freeze({ kind: "failure", cause: "status", throttled: false });
export const THROTTLED: Outcome = Object.freeze({ kind: "failure", cause: "status", throttled: true });
export const INTERRUPTED: Outcome = Object.freeze({ kind: "failure", cause: "network", throttled: false });
export const UNREACHED: Outcome = Object.freeze({
  kind: "failure",
  cause: "network",
  throttled: false,
  unreached: true,
});

/** A 403 with Retry-After or with no remaining quota is a throttle, whatever the lists say about 403. */
export function outcomeOfResponse(response: ResponseFacts, rules: ClassifyRules = defaultClassifyRules): Outcome {
  const { status, retryAfterMs, remaining, isMemento } = response;
  // The status belongs to the captured page. A good one still shows that the archive itself works.
  if (isMemento) return status >= 200 && status < 400 ? SUCCESS : NEUTRAL;
  const hasRetryAfter = retryAfterMs !== undefined && retryAfterMs > 0;
  if (status === 403 && (hasRetryAfter || remaining === 0)) return THROTTLED;
  if (rules.neutralStatuses.has(status)) return NEUTRAL;
  if (rules.failureStatuses.has(status))
    return status === 429 || (hasRetryAfter && OVERLOAD_STATUSES.has(status)) ? THROTTLED : FAILED;
  return status >= 200 && status < 400 ? SUCCESS : NEUTRAL;
}

/**
 * Connect, DNS, reset, timeout, a truncated body, and response headers that are too large. Local shortages (EMFILE,
 * EADDRNOTAVAIL) do not count.
 */
const NETWORK_CODES: ReadonlySet<string> = new Set(
  (
    "ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ETIMEDOUT EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN ENETRESET EPROTO " +
    "ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ESERVFAIL EREFUSED ETIMEOUT " +
    "UND_ERR_CONNECT_TIMEOUT UND_ERR_HEADERS_TIMEOUT UND_ERR_BODY_TIMEOUT UND_ERR_SOCKET " +
    "UND_ERR_RES_CONTENT_LENGTH_MISMATCH UND_ERR_HEADERS_OVERFLOW DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN HOSTNAME_MISMATCH " +
    "INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED " +
    "UND_ERR_PRX_CONN UND_ERR_SOCKS5_REPLY_1 UND_ERR_SOCKS5_REPLY_3 UND_ERR_SOCKS5_REPLY_4 UND_ERR_SOCKS5_REPLY_5 UND_ERR_SOCKS5_REPLY_6"
  ).split(" "),
);

/** Errors before a connection is ready for the request: DNS, connect, TLS. */
const UNREACHED_CODES: ReadonlySet<string> = new Set(
  (
    "ECONNREFUSED EHOSTUNREACH ENETUNREACH EHOSTDOWN ENETDOWN EPROTO " +
    "ENOTFOUND EAI_AGAIN EAI_FAIL EAI_NODATA EAI_NONAME ESERVFAIL EREFUSED ETIMEOUT UND_ERR_CONNECT_TIMEOUT " +
    "DEPTH_ZERO_SELF_SIGNED_CERT SELF_SIGNED_CERT_IN_CHAIN HOSTNAME_MISMATCH " +
    "INVALID_CA INVALID_PURPOSE PATH_LENGTH_EXCEEDED " +
    "ERR_PROXY_TUNNEL UND_ERR_PRX_CONN UND_ERR_SOCKS5_REPLY_1 UND_ERR_SOCKS5_REPLY_3 UND_ERR_SOCKS5_REPLY_4 UND_ERR_SOCKS5_REPLY_5 UND_ERR_SOCKS5_REPLY_6"
  ).split(" "),
);
const UNREACHED_FAMILIES = /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_)/;

/** Prefixes of TLS, certificate, HTTP parser, and HTTP/2 stream and session errors (not HTTP/2 usage errors). */
const NETWORK_FAMILIES =
  /^(?:ERR_TLS_|ERR_SSL_|CERT_|CRL_|UNABLE_TO_|HPE_|ERR_HTTP2_(?:ERROR|STREAM_|SESSION_|GOAWAY_|PING_|INVALID_SESSION|INVALID_STREAM))/;

/** Real chains of causes have two or three links; the bound protects against endless ones. */
const LINKS_MAX = 64;

/**
 * Walks `cause` and `errors`, because fetch wraps the reason in a TypeError and a dual-stack connect in an
 * AggregateError. One link that is an abort or an error of this package makes the outcome neutral: an abort also
 * resets the socket, and ECONNREFUSED of our store is not a failure of the host.
 */
export function outcomeOfError(error: unknown): Outcome {
  const links = linksOf(error);
  if (links.some(isCallerOrOwnError)) return NEUTRAL;
  const faults = links.filter(isNetworkFault);
  if (faults.length === 0) return NEUTRAL;
  return faults.some(isUnreached) ? UNREACHED : INTERRUPTED;
}

function linksOf(error: unknown): readonly unknown[] {
  const links = new Set([error]);
  for (const link of links) {
    for (const next of [property(link, "cause"), ...nested(link)]) if (links.size < LINKS_MAX) links.add(next);
  }
  return [...links];
}

/** The type and the message of the fault that made an error a network failure, for events. */
export interface FaultText {
  /** The name of its class, or its code. */
  readonly type: string;
  /** Its message. `type` if there is none, or if it may quote a URL, which may contain a key. */
  readonly message: string;
}

const FAULT_MESSAGE_CHARS_MAX = 200;

/** Undefined for an error that is no network failure. */
export function faultText(error: unknown): FaultText | undefined {
  const fault = linksOf(error).find(isNetworkFault);
  if (fault === undefined) return undefined;
  const name = String(property(fault, "name") ?? "Error");
  const code = property(fault, "code");
  const type = name === "Error" && typeof code === "string" ? code : name;
  const message = String(property(fault, "message") ?? "");
  const mayQuoteUrl = message === "" || /:\/\/|[?=@]/.test(message);
  return { type, message: mayQuoteUrl ? type : message.slice(0, FAULT_MESSAGE_CHARS_MAX) };
}

/** An abort or deadline of the caller, or an error of this package. */
function isCallerOrOwnError(link: unknown): boolean {
  const name = property(link, "name");
  const code = property(link, "code");
  if (name === "AbortError" || code === "ABORT_ERR" || code === "UND_ERR_ABORTED") return true;
  // `AbortSignal.timeout` gives a DOMException, whose code is a number; other libraries use the
  // same name with a network code such as ETIMEDOUT.
  if (name === "TimeoutError") return !isNetworkFault(link);
  return typeof code === "string" && code.startsWith("DOCSTOKG_");
}

function isNetworkFault(link: unknown): boolean {
  const code = property(link, "code");
  // The answer is not HTTP. Parser errors of undici have no code.
  if (property(link, "name") === "HTTPParserError") return true;
  if (typeof code !== "string") return false;
  // undici uses this code for an HTTP/2 stream that ended early, and also for a request that it could not open. The
  // second error has a cause, and the cause decides. A server that closes a session normally (GOAWAY with code 0) has
  // not failed.
  if (code === "UND_ERR_INFO") {
    return (
      property(link, "cause") === undefined && !/"GOAWAY" frame .* code 0$/.test(String(property(link, "message")))
    );
  }
  if (code === "ERR_PROXY_TUNNEL") return isFailedTunnel(Number(property(link, "statusCode")));
  return NETWORK_CODES.has(code) || NETWORK_FAMILIES.test(code);
}

/**
 * Whether a tunnel that a proxy has not opened is a failure of the host. A proxy that does not permit it (403, 407) says
 * nothing about the host. Without a valid status the connection to the proxy has failed.
 * @param status the answer to CONNECT
 */
export function isFailedTunnel(status: number): boolean {
  return !(status >= 100) || defaultClassifyRules.failureStatuses.has(status);
}

/** If a connection was refused or timed out, the error names the system call `connect`. */
function isUnreached(link: unknown): boolean {
  const code = String(property(link, "code"));
  return UNREACHED_CODES.has(code) || UNREACHED_FAMILIES.test(code) || property(link, "syscall") === "connect";
}

function nested(link: unknown): readonly unknown[] {
  try {
    const errors = property(link, "errors");
    return Array.isArray(errors) ? errors.slice(0, LINKS_MAX) : [];
  } catch {
    return [];
  }
}

/** Any value can be thrown, including proxies and objects whose getters throw. */
function property(value: unknown, key: string): unknown {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") return undefined;
  try {
    return Reflect.get(value, key);
  } catch {
    return undefined;
  }
}
