/**
 * Every error this package raises on purpose.
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
 *   └─ HubClosedError             DOCSTOKG_CLOSED           the hub was closed
 *
 * Deliberately not among them: an abort by the caller (the signal's own reason is thrown) and an invalid argument
 * (a TypeError or RangeError that names the option and its value).
 */

import { formatWait } from "./core/text/duration.ts";
import { withoutCredentials, withoutQuotedCredentials } from "./core/text/passwords.ts";

/** `Symbol.for`, so that `isDocstokgError` also recognises errors of another copy of this package. */
const brand = Symbol.for("docstokg.error");

/** The `code` of every error class, stable across versions. */
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

/** Base class of every error this package raises on purpose. */
export abstract class DocstokgError extends Error {
  /** Identifies the class; use it where `instanceof` cannot work, for example across worker threads. */
  abstract readonly code: DocstokgErrorCode;
  /** Marks the errors of this package for `isDocstokgError`. */
  readonly [brand] = true;
}

/** True for every error of this package, also when another installed copy of it created the error. */
export function isDocstokgError(value: unknown): value is DocstokgError {
  return typeof value === "object" && value !== null && brand in value;
}

/** The limit that decided: of all limits that delay the request, the one that ends last. */
export interface Constraint {
  /**
   * The kind of limit: a rate limit (`window`), even spacing of sends (`spacing`), a cooldown that the server requested
   * (`cooldown`), the number of requests in flight (`concurrency`), a circuit breaker (`breaker`), or the shared store,
   * which does not answer (`store`).
   */
  readonly kind: "window" | "spacing" | "cooldown" | "concurrency" | "breaker" | "store";
  /** The owner of the limit: a host, `service <name>`, `resolver <name>`, or `global` for all requests of the process. */
  readonly owner: string;
  /** The limit as the policy writes it, for example `10/SECOND` or `max_concurrent 3`. */
  readonly limit: string;
}

/** The `limit` of a half-open circuit whose trial calls are all in flight. */
export const PROBE_IN_FLIGHT = "probe in flight";

/** The `limit` of a host that resumes after a cooldown begins with this. */
export const RAMP_UP = "ramp-up after a cooldown";

/** The `limit` of a key that an operator holds begins with this, and its reason follows: `hold (maintenance)`. */
export const HOLD = "hold";

/** A limit that a server has announced. */
export interface LearnedFrom {
  /** The family of header fields that announced it, such as `X-RateLimit`. */
  readonly source: string;
  /** When, in epoch milliseconds. */
  readonly wallMs: number;
}

/** The order of an operator that has changed the rates of a key (`docstokg limits set`). */
export interface OrderedRate {
  /** The rates of the order: `2/SECOND+100/HOUR`. */
  readonly rates: string;
  /** Why, as the operator has written it. */
  readonly reason: string;
  /** Who gave the order: a user and machine, the address of a browser, or a program. */
  readonly by: string;
}

/** What has changed the limits of a key since the policy was loaded. */
export interface LimitChanges {
  /** What announced the last limit that the key has learned; undefined if it has learned none. */
  readonly learnedFrom?: LearnedFrom | undefined;
  /** The order of an operator in force; undefined if there is none. */
  readonly order?: OrderedRate | undefined;
}

/** The setting behind a limit or circuit that made a request wait or refused it. */
export interface DecidedBy {
  /** The limit, such as `10/SECOND` or `max_concurrent 3`; absent when a circuit decided. */
  readonly limit?: string;
  /** The owner of the circuit or cooldown: a host, `service <name>` or `resolver <name>`; absent when a limit decided. */
  readonly circuit?: string;
  /** The value of the setting as its source writes it. */
  readonly value: unknown;
  /**
   * Where it was set: `ratelimits.yaml:34`, an environment variable, a flag, `built-in default`, `learned from … at …`,
   * `Retry-After of the server` or `an operator's order`, for a changed limit with the operator and the reason.
   */
  readonly where: string;
  /** `shadow` if it only reports. */
  readonly mode: "enforce" | "shadow";
}

/** The facts that every refusal has about its request. */
export interface RejectionDetails {
  /** Host of the request, or the name of its service. */
  readonly host: string;
  /** Role of the request: `metadata`, `landing` or `artifact`. */
  readonly role: string;
  /** The limit that decided. */
  readonly constraint: Constraint;
}

/** The longest wait that a call accepted, and which option set it. */
export interface WaitBound {
  /** Milliseconds. */
  readonly maxWaitMs: number;
  /** `max_delay_ms` and `when_store_away` are the policy's; the others are options of the call. @default "maxWaitMs" */
  readonly maxWaitOption?: "max_delay_ms" | "maxWaitMs" | "deadlineMs" | "when_store_away" | undefined;
  /** Milliseconds that the call had waited when it was refused. @default none: it was refused on arrival */
  readonly waitedMs?: number | undefined;
}

/** The request was not sent, because a limit or a circuit refused it. Nothing was charged. */
export abstract class RejectedError extends DocstokgError {
  /** Host of the request, or the name of its service. */
  readonly host: string;
  /** Role of the request: `metadata`, `landing` or `artifact`. */
  readonly role: string;
  /** The limit that decided. */
  readonly constraint: Constraint;
  /** The setting behind that limit, and where it was set. Undefined without a hub, which has the policy. */
  readonly decidedBy: DecidedBy | undefined = undefined;
  /** Milliseconds until the same request could be sent; undefined when that cannot be known. */
  abstract readonly retryAfterMs: number | undefined;
  /** Always false, so that a generic retry layer does not repeat the call at once. */
  readonly retryable = false;

  constructor(message: string, details: RejectionDetails) {
    super(message);
    this.host = details.host;
    this.role = details.role;
    this.constraint = details.constraint;
  }
}

/** One line for events: `10/SECOND (ratelimits.yaml:34)`. */
export function decidedByText({ limit, value, where }: DecidedBy): string {
  return `${limit ?? value} (${where})`;
}

/** Adds the setting behind a refusal. The gate that refuses knows the limit, and the hub knows the policy. */
export function explainRejection(error: RejectedError, decidedBy: DecidedBy): void {
  (error as { decidedBy: DecidedBy | undefined }).decidedBy = decidedBy;
}

/** A rate limit, even spacing or a cooldown would delay the request for longer than the call may wait. */
export class RateLimitExceeded extends RejectedError {
  override readonly name = "RateLimitExceeded";
  readonly code = "DOCSTOKG_RATE_LIMITED";
  /** Milliseconds until the same request could be sent. */
  readonly retryAfterMs: number;

  constructor(details: RejectionDetails & WaitBound & { readonly retryAfterMs: number }) {
    super(`${describeLimit(details, details.retryAfterMs)}, but ${describeBound(details)}`, details);
    this.retryAfterMs = details.retryAfterMs;
  }
}

/** Why a circuit is open. For a circuit that an operator opened, the operator's reason follows the colon. */
export type OpenReason = "failures" | "retry-after" | "rolling-window" | "slow-calls" | `cli-open:${string}`;

/** The state of the circuit that refused a request. */
export interface OpenCircuit {
  /** Why the circuit is open, or why the host is in cooldown. */
  readonly reason: OpenReason;
  /** Milliseconds until the next trial call, or until the cooldown ends. An estimate while a trial call is running. */
  readonly cooldownRemainingMs: number;
  /** Consecutive failures that opened the circuit (`fail_max`). */
  readonly failMax?: number | undefined;
  /** True when all trial calls of a half-open circuit, or of a host after a cooldown, are running. @default false */
  readonly isTrialRunning?: boolean | undefined;
}

/** A circuit is open for the host, the role or the resolver, or the host is in cooldown. */
export class BreakerOpenError extends RejectedError {
  override readonly name = "BreakerOpenError";
  readonly code = "DOCSTOKG_BREAKER_OPEN";
  /** Why the circuit is open, or why the host is in cooldown. */
  readonly reason: OpenReason;
  /** Milliseconds until the next trial call, or until the cooldown ends. An estimate while a trial call is running. */
  readonly cooldownRemainingMs: number;
  /** True when the call was refused because trial calls were running; one more may be sent when the first has ended. */
  readonly isTrialRunning: boolean;
  /** The same as `cooldownRemainingMs`. */
  readonly retryAfterMs: number;

  constructor(details: RejectionDetails & OpenCircuit) {
    super(describeOpenCircuit(details), details);
    this.reason = details.reason;
    this.cooldownRemainingMs = details.cooldownRemainingMs;
    this.isTrialRunning = details.isTrialRunning ?? false;
    this.retryAfterMs = details.cooldownRemainingMs;
  }
}

/** Every concurrency slot stayed in use for as long as the call may wait. */
export class BusyError extends RejectedError {
  override readonly name = "BusyError";
  readonly code = "DOCSTOKG_BUSY";
  /** Undefined: the time at which a slot becomes free is unknown. */
  readonly retryAfterMs = undefined;

  constructor(details: RejectionDetails & WaitBound) {
    const { host, role, constraint } = details;
    super(
      `no free slot for ${host} (${role}): ${describeConstraint(constraint)} reached, but ${describeBound(details)}`,
      details,
    );
  }
}

/** `10/SECOND of api.crossref.org`, for messages and tables. */
export function describeConstraint({ limit, owner }: Constraint): string {
  return owner === "global" ? `${limit} of the process` : `${limit} of ${owner}`;
}

/** The owner of the limit that decided, and the refused call. */
function subjectOf({ host, role, constraint: { owner } }: RejectionDetails): string {
  return owner === host ? `${host} (${role})` : `${owner} (call to ${host}, ${role})`;
}

function describeLimit(details: RejectionDetails, retryAfterMs: number): string {
  const { kind, limit } = details.constraint;
  const wait = formatWait(retryAfterMs);
  if (kind === "cooldown" && limit.startsWith(HOLD))
    return `an operator holds ${subjectOf(details)} for another ${wait}: ${limit}`;
  if (kind === "cooldown") return `${subjectOf(details)} is in cooldown for another ${wait}`;
  if (kind === "store")
    return `the shared store does not answer, so the rate limits of ${subjectOf(details)} are not known`;
  if (kind === "spacing") return `${limit} for ${subjectOf(details)}: next slot in ${wait}`;
  return `rate limit ${limit} of ${subjectOf(details)} reached: next slot in ${wait}`;
}

const WAIT_OPTIONS = {
  max_delay_ms: "max_delay_ms; pass maxWaitMs to wait longer",
  maxWaitMs: "maxWaitMs",
  deadlineMs: "the time left of deadlineMs",
  when_store_away: "when_store_away: refuse",
} as const;

function describeBound({ maxWaitMs, maxWaitOption = "maxWaitMs", waitedMs = 0 }: WaitBound): string {
  const bound = `${formatWait(maxWaitMs, Math.floor)} (${WAIT_OPTIONS[maxWaitOption]})`;
  if (waitedMs < 1) return `this call waits at most ${bound}`;
  return `this call has waited ${formatWait(waitedMs, Math.floor)} of at most ${bound}`;
}

function describeOpenCircuit(details: RejectionDetails & OpenCircuit): string {
  const { reason, cooldownRemainingMs, failMax, isTrialRunning } = details;
  const { owner } = details.constraint;
  const subject = subjectOf(details);
  const left = formatWait(cooldownRemainingMs);
  if (isTrialRunning)
    return reason === "failures"
      ? `circuit half-open for ${subject}: all trial calls are in flight, next one in about ${left}`
      : `${subject} resumes after a cooldown: all trial calls are in flight, next call in about ${left}`;
  if (reason === "failures") {
    const failures = failMax === 1 ? "1 failure" : `${failMax ?? "too many"} consecutive failures`;
    return `circuit open for ${subject}: ${failures}, next trial in ${left}`;
  }
  if (reason === "retry-after") return `${subject} is in cooldown: the server sent Retry-After, next call in ${left}`;
  if (reason === "slow-calls")
    return `${subject} is in cooldown: too many slow calls within the rolling window, next call in ${left}`;
  if (reason === "rolling-window")
    return `${subject} is in cooldown: too many failures within the rolling window, next call in ${left}`;
  const operatorReason = reason.slice(reason.indexOf(":") + 1);
  const target = owner.replace(/^(service|resolver) /, "$1:");
  return `circuit forced open for ${owner} by an operator (${operatorReason}): next call in ${left}, or after "docstokg breaker close ${target}"`;
}

/** One invalid value in a configuration. */
export interface ConfigProblem {
  /** The source: a file with its line, an environment variable, a command-line flag, or an option of a call. */
  readonly where: string;
  /** Path of the key, for example `hosts.api.crossref.org.metadata.rates`; empty for the whole source. */
  readonly path: string;
  /** Names the invalid value and the valid ones. */
  readonly message: string;
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

/** A password may be in a place where no reader expects one: as a key, as the name of a file, in a malformed entry. */
function withoutPasswords({ where, path, message }: ConfigProblem): ConfigProblem {
  return {
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

/** The hub was closed with `hub.close()` or `hub.destroy()`. */
export class HubClosedError extends DocstokgError {
  override readonly name = "HubClosedError";
  readonly code = "DOCSTOKG_CLOSED";

  constructor() {
    super("the hub is closed: it accepts no more requests");
  }
}

/** The message of anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
