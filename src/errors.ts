/**
 * Every public error class of this package.
 *
 *   DocstokgError                 code DOCSTOKG_*
 *   ├─ RejectedError              the request was not sent, because a limit or a circuit refused it
 *   │  ├─ RateLimitExceeded       DOCSTOKG_RATE_LIMITED     the next free slot comes later than the call may wait
 *   │  ├─ BreakerOpenError        DOCSTOKG_BREAKER_OPEN     a circuit is open, or the host is in cooldown
 *   │  └─ BusyError               DOCSTOKG_BUSY             every concurrency slot is in use
 *   ├─ ConfigError                DOCSTOKG_CONFIG           the configuration is invalid
 *   ├─ StoreError                 DOCSTOKG_STORE            a store failed; `cause` is the driver's error
 *   ├─ DownloadError              DOCSTOKG_DOWNLOAD         a file is incomplete or damaged
 *   ├─ PrivateAddressError        DOCSTOKG_PRIVATE_ADDRESS  the host is in a private network that is not allowed
 *   ├─ DeadlineExceededError      DOCSTOKG_DEADLINE         the call's `deadlineMs` has passed
 *   ├─ BodyUnreadError            DOCSTOKG_BODY_UNREAD      the caller did not read the response body in time
 *   ├─ RedirectError              DOCSTOKG_REDIRECT         a redirect loop, too many redirects, or a bad target
 *   └─ HubClosedError             DOCSTOKG_CLOSED           the hub or the limiter was closed
 *
 * Deliberately not among them: an abort by the caller (the signal's own reason is thrown) and an invalid argument
 * (a TypeError or RangeError that names the option and its value).
 */

import { formatWait } from "./core/text/duration.ts";
import { withoutCredentials, withoutQuotedCredentials } from "./core/text/passwords.ts";
import { DocstokgError } from "./errors/docstokg-error.ts";

export {
  type Constraint,
  type DecidedBy,
  decidedByText,
  describeConstraint,
  HOLD,
  type LearnedFrom,
  type LimitChanges,
  type OrderedRate,
  openCircuitLimit,
  PROBE_IN_FLIGHT,
  RAMP_UP,
} from "./errors/constraint.ts";
export { DocstokgError, type DocstokgErrorCode, isDocstokgError, messageOf } from "./errors/docstokg-error.ts";
export {
  BreakerOpenError,
  BusyError,
  explainRejection,
  type OpenCircuit,
  type OpenReason,
  RateLimitExceeded,
  RejectedError,
  type RejectionDetails,
  type WaitBound,
} from "./errors/rejected-error.ts";

/** One invalid value in a configuration. */
export interface ConfigProblem {
  /** The source: a file with its line, an environment variable, a command-line flag, or an option of a call. */
  readonly where: string;
  /** Path of the key, for example `hosts.api.crossref.org.metadata.rates`; empty for the whole source. */
  readonly path: string;
  /** Names the invalid value and the valid ones. */
  readonly message: string;
  /** How many problems this entry stands for: the last entry of a long list counts the others. @default 1 */
  readonly count?: number | undefined;
}

/** The configuration is invalid. The message has one line for each problem. */
export class ConfigError extends DocstokgError {
  override readonly name = "ConfigError";
  readonly code = "DOCSTOKG_CONFIG";
  /** All problems, so that a file can be corrected in one pass. */
  readonly problems: readonly ConfigProblem[];

  constructor(problems: readonly ConfigProblem[], options?: ErrorOptions) {
    const shown = problems.map(withoutPasswords);
    super(
      shown.map(({ where, path, message }) => `${where}: ${path ? `${path}: ` : ""}${message}`).join("\n"),
      options,
    );
    this.problems = shown;
  }
}

/** Every text is redacted: a password may also stand in a key, in the name of a file or in a malformed entry. */
function withoutPasswords({ where, path, message, ...count }: ConfigProblem): ConfigProblem {
  return {
    ...count,
    where: withoutCredentials(where),
    path: withoutCredentials(path),
    message: withoutQuotedCredentials(message),
  };
}

/** A store failed, or cannot be used. `cause` is the error of the driver. */
export class StoreError extends DocstokgError {
  override readonly name = "StoreError";
  readonly code = "DOCSTOKG_STORE";
  /**
   * True if no retry can succeed until the configuration changes: a wrong password, an unknown database, a file of
   * another program. `createHub` rejects with such an error.
   */
  readonly isPermanent: boolean;

  constructor(message: string, options: ErrorOptions & { readonly isPermanent?: boolean } = {}) {
    super(message, options);
    this.isPermanent = options.isPermanent ?? false;
  }
}

/** A downloaded file is incomplete or damaged, or it cannot be stored. */
export class DownloadError extends DocstokgError {
  override readonly name = "DownloadError";
  readonly code = "DOCSTOKG_DOWNLOAD";
}

/** The host resolves to a private address. Nothing was sent, and a retry would fail in the same way. */
export class PrivateAddressError extends DocstokgError {
  override readonly name = "PrivateAddressError";
  readonly code = "DOCSTOKG_PRIVATE_ADDRESS";
  /** Host of the request: a name, or the address itself. */
  readonly host: string;
  /** The private address. */
  readonly address: string;

  constructor(details: { readonly host: string; readonly address: string }) {
    const { host, address } = details;
    super(
      `${host === address ? `${host} is` : `${host} resolves to ${address},`} a private address; ` +
        "allow it with network.allowPrivate (--allow-private), or map the host with network.connectTo (--connect-to)",
    );
    this.host = host;
    this.address = address;
  }
}

/** The call did not finish within its `deadlineMs`, which covers waits, attempts and the response body. */
export class DeadlineExceededError extends DocstokgError {
  override readonly name = "DeadlineExceededError";
  readonly code = "DOCSTOKG_DEADLINE";
  /** Host of the request. */
  readonly host: string;
  /** Role of the request: `metadata`, `landing` or `artifact`. */
  readonly role: string;
  /** The deadline that the call was given, in milliseconds. */
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
      `deadline of ${deadlineMs} ms (deadlineMs) exceeded for ${host} (${role}): ` +
        `${attempts} attempt${attempts === 1 ? "" : "s"}, ${Math.round(waitedMs)} ms spent in the queue`,
    );
    this.host = host;
    this.role = role;
    this.deadlineMs = deadlineMs;
  }
}

/** The caller did not read a response body for the hub's `unreadBodyMs`: the request was aborted and its slot released. */
export class BodyUnreadError extends DocstokgError {
  override readonly name = "BodyUnreadError";
  readonly code = "DOCSTOKG_BODY_UNREAD";
  /** Host of the request. */
  readonly host: string;
  /** Role of the request: `metadata`, `landing` or `artifact`. */
  readonly role: string;

  constructor({ host, role, unreadMs }: { readonly host: string; readonly role: string; readonly unreadMs: number }) {
    super(
      `response body of ${host} (${role}) not read for ${formatWait(unreadMs)} (unreadBodyMs): request aborted, slot ` +
        "released; read every body to the end, or call body.cancel() (fetch) or body.dump() (request)",
    );
    this.host = host;
    this.role = role;
  }
}

/** Redirects form a loop, are too many, or lead to an invalid target. */
export class RedirectError extends DocstokgError {
  override readonly name = "RedirectError";
  readonly code = "DOCSTOKG_REDIRECT";
}

/** The hub was closed with `close()` or `destroy()`, or a `RateLimiter` with a shared store with `close()`. */
export class HubClosedError extends DocstokgError {
  override readonly name = "HubClosedError";
  readonly code = "DOCSTOKG_CLOSED";

  constructor(message = "the hub is closed: it accepts no more requests") {
    super(message);
  }
}
