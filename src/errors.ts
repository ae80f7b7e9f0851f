/**
 * Every error this package raises on purpose.
 *
 *   DocstokgError                 code DOCSTOKG_*, the cause kept
 *   ├─ RejectedError              we chose not to send; retryable is false, so that no retry layer loops on it
 *   │  ├─ RateLimitExceeded       DOCSTOKG_RATE_LIMITED   a window or a cooldown ends too late
 *   │  ├─ BreakerOpenError        DOCSTOKG_BREAKER_OPEN   the host, the role or the resolver is cut off
 *   │  └─ BusyError               DOCSTOKG_BUSY           every slot is taken, and nobody knows until when
 *   ├─ ConfigError                DOCSTOKG_CONFIG         where, what was found, what would be valid
 *   ├─ StoreError                 DOCSTOKG_STORE          the cause is the driver's error
 *   ├─ DownloadError              DOCSTOKG_DOWNLOAD       a file did not arrive whole
 *   ├─ PrivateAddressError        DOCSTOKG_PRIVATE_ADDRESS  the host is of a private network, which nobody allowed
 *   ├─ DeadlineExceededError           DOCSTOKG_DEADLINE       the call's own deadline has passed
 *   ├─ BodyUnreadError            DOCSTOKG_BODY_UNREAD    nobody read the body, and its slot was needed
 *   ├─ RedirectError              DOCSTOKG_REDIRECT       redirects that lead nowhere
 *   └─ HubClosedError             DOCSTOKG_CLOSED         the hub takes no more requests
 *
 * Deliberately not among them: a caller's abort (the signal's own reason is thrown) and a caller's mistake
 * (a built-in TypeError or RangeError that names the option and the value received).
 */

/** `Symbol.for`, so that the guard also knows errors of a second copy of this package. */
const brand = Symbol.for("docstokg.error");

export type DocstokgErrorCode =
  | "DOCSTOKG_RATE_LIMITED"
  | "DOCSTOKG_BREAKER_OPEN"
  | "DOCSTOKG_BUSY"
  | "DOCSTOKG_CONFIG"
  | "DOCSTOKG_STORE"
  | "DOCSTOKG_DOWNLOAD"
  | "DOCSTOKG_PRIVATE_ADDRESS"
  | "DOCSTOKG_DEADLINE"
  | "DOCSTOKG_BODY_UNREAD"
  | "DOCSTOKG_REDIRECT"
  | "DOCSTOKG_CLOSED";

export abstract class DocstokgError extends Error {
  abstract readonly code: DocstokgErrorCode;
  readonly [brand] = true;
}

/** True for every error of this package, whichever copy of it made the error. */
export function isDocstokgError(value: unknown): value is DocstokgError {
  return typeof value === "object" && value !== null && brand in value;
}

/** The one limit that decided. */
export interface Constraint {
  readonly kind: "window" | "spacing" | "cooldown" | "concurrency" | "breaker";
  /** Whose limit it is: the name of a host, a group or a service, or `"global"`. */
  readonly owner: string;
  /** The limit as people write it: `10/SECOND`, `max_concurrent 3`. */
  readonly limit: string;
}

export interface RejectionDetails {
  readonly host: string;
  readonly role: string;
  readonly constraint: Constraint;
}

export abstract class RejectedError extends DocstokgError {
  readonly host: string;
  readonly role: string;
  readonly constraint: Constraint;
  /** Milliseconds until the same request could go; undefined when nobody can know. */
  abstract readonly retryAfterMs: number | undefined;
  readonly retryable = false;

  constructor(message: string, details: RejectionDetails) {
    super(message);
    this.host = details.host;
    this.role = details.role;
    this.constraint = details.constraint;
  }
}

export class RateLimitExceeded extends RejectedError {
  override readonly name = "RateLimitExceeded";
  readonly code = "DOCSTOKG_RATE_LIMITED";
  readonly retryAfterMs: number;

  constructor(details: RejectionDetails & { readonly retryAfterMs: number; readonly maxWaitMs: number }) {
    const { host, role, constraint, retryAfterMs, maxWaitMs } = details;
    super(
      `${host} (${role}) is full for another ${retryAfterMs} ms: ${describeConstraint(constraint)}; ` +
        `this call may wait ${maxWaitMs} ms`,
      details,
    );
    this.retryAfterMs = retryAfterMs;
  }
}

/** Why a circuit is open. An operator's `open` carries his own words behind the colon. */
export type OpenReason = "failures" | "retry-after" | "rolling-window" | `cli-open:${string}`;

export class BreakerOpenError extends RejectedError {
  override readonly name = "BreakerOpenError";
  readonly code = "DOCSTOKG_BREAKER_OPEN";
  readonly reason: OpenReason;
  readonly cooldownRemainingMs: number;
  readonly retryAfterMs: number;

  constructor(details: RejectionDetails & { readonly reason: OpenReason; readonly cooldownRemainingMs: number }) {
    const { role, reason, cooldownRemainingMs, constraint } = details;
    super(`${constraint.owner} (${role}) is cut off for another ${cooldownRemainingMs} ms: ${reason}`, details);
    this.reason = reason;
    this.cooldownRemainingMs = cooldownRemainingMs;
    this.retryAfterMs = cooldownRemainingMs;
  }
}

export class BusyError extends RejectedError {
  override readonly name = "BusyError";
  readonly code = "DOCSTOKG_BUSY";
  readonly retryAfterMs = undefined;

  constructor(details: RejectionDetails & { readonly maxWaitMs: number }) {
    const { host, role, constraint, maxWaitMs } = details;
    super(
      `${host} (${role}) has no free slot: ${describeConstraint(constraint)}; this call may wait ${maxWaitMs} ms`,
      details,
    );
  }
}

/** `10/SECOND of api.crossref.org`, as messages and tables say it. */
export function describeConstraint(constraint: Constraint): string {
  return `${constraint.limit} of ${constraint.owner}`;
}

/** One thing wrong with a configuration. */
export interface ConfigProblem {
  /** A file with its line, the name of an environment variable, a flag, or the option of a call. */
  readonly where: string;
  /** The path of the key inside it, `hosts.api.crossref.org.metadata.rates`. */
  readonly path: string;
  readonly message: string;
}

export class ConfigError extends DocstokgError {
  override readonly name = "ConfigError";
  readonly code = "DOCSTOKG_CONFIG";
  /** All of them, so that a file is mended in one go. */
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], options?: ErrorOptions) {
    super(
      problems.map(({ where, path, message }) => `${where}: ${path ? `${path}: ` : ""}${message}`).join("\n"),
      options,
    );
    this.problems = problems;
  }
}

export class StoreError extends DocstokgError {
  override readonly name = "StoreError";
  readonly code = "DOCSTOKG_STORE";
}

export class DownloadError extends DocstokgError {
  override readonly name = "DownloadError";
  readonly code = "DOCSTOKG_DOWNLOAD";
}

/** Nothing was sent: the connection would have left the public internet. The same for ever, so nobody should retry. */
export class PrivateAddressError extends DocstokgError {
  override readonly name = "PrivateAddressError";
  readonly code = "DOCSTOKG_PRIVATE_ADDRESS";
  /** As asked for: a name, or the address itself. */
  readonly host: string;
  readonly address: string;

  constructor(details: { readonly host: string; readonly address: string }) {
    const { host, address } = details;
    super(
      `${host === address ? `${host} is` : `${host} resolves to ${address},`} a private address; ` +
        "allow it with network.allowPrivate, or map it with connectTo",
    );
    this.host = host;
    this.address = address;
  }
}

export class DeadlineExceededError extends DocstokgError {
  override readonly name = "DeadlineExceededError";
  readonly code = "DOCSTOKG_DEADLINE";
  readonly host: string;
  readonly role: string;
  readonly deadlineMs: number;

  constructor(details: {
    readonly host: string;
    readonly role: string;
    readonly deadlineMs: number;
    readonly attempts: number;
    readonly waitedMs: number;
  }) {
    const { host, role, deadlineMs, attempts, waitedMs } = details;
    super(
      `${host} (${role}) was not done within its deadline of ${deadlineMs} ms: ` +
        `${attempts} attempt${attempts === 1 ? "" : "s"}, ${Math.round(waitedMs)} ms of it in line`,
    );
    this.host = host;
    this.role = role;
    this.deadlineMs = deadlineMs;
  }
}

export class BodyUnreadError extends DocstokgError {
  override readonly name = "BodyUnreadError";
  readonly code = "DOCSTOKG_BODY_UNREAD";
  readonly host: string;
  readonly role: string;

  constructor({ host, role }: { readonly host: string; readonly role: string }) {
    super(
      `nobody went on reading the body of an answer of ${host} (${role}), which held a slot and a connection; ` +
        "read it to its end, or call body.cancel() (fetch) or body.dump() (request)",
    );
    this.host = host;
    this.role = role;
  }
}

export class RedirectError extends DocstokgError {
  override readonly name = "RedirectError";
  readonly code = "DOCSTOKG_REDIRECT";
}

export class HubClosedError extends DocstokgError {
  override readonly name = "HubClosedError";
  readonly code = "DOCSTOKG_CLOSED";

  constructor() {
    super("the hub is closed and takes no more requests");
  }
}
