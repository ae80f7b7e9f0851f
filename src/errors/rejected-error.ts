import { formatWait } from "../core/text/duration.ts";
import { type Constraint, type DecidedBy, describeConstraint, HOLD } from "./constraint.ts";
import { DocstokgError } from "./docstokg-error.ts";

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
  /** The setting behind that limit, and where it was set. Undefined without a hub: only a hub has a policy. */
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
  /** Result of the call that opened the circuit: `HTTP 503`, or the code of its error; absent if it is not known. */
  readonly lastFailure?: string | undefined;
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
  /** True if the call was refused because all trial calls were running; one more may be sent when the first ends. */
  readonly isTrialRunning: boolean;
  /** The same as `cooldownRemainingMs`. */
  readonly retryAfterMs: number;
  /**
   * Result of the last failed call before the circuit opened: `HTTP 503`, or the code of the error, such as
   * `ECONNREFUSED`. Undefined if another process made that call, or if failures are not the reason.
   */
  readonly lastFailure: string | undefined;

  constructor(details: RejectionDetails & OpenCircuit) {
    super(describeOpenCircuit(details), details);
    this.reason = details.reason;
    this.cooldownRemainingMs = details.cooldownRemainingMs;
    this.isTrialRunning = details.isTrialRunning ?? false;
    this.retryAfterMs = details.cooldownRemainingMs;
    this.lastFailure = details.lastFailure;
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
  const { reason, cooldownRemainingMs, failMax, isTrialRunning, lastFailure } = details;
  const { owner } = details.constraint;
  const subject = subjectOf(details);
  const left = formatWait(cooldownRemainingMs);
  const last = lastFailure === undefined ? "" : ` (the last: ${lastFailure})`;
  if (isTrialRunning)
    return reason === "failures"
      ? `circuit half-open for ${subject}: all trial calls are in flight, next one in about ${left}`
      : `${subject} resumes after a cooldown: all trial calls are in flight, next call in about ${left}`;
  if (reason === "failures") {
    const failures = failMax === 1 ? "1 failure" : `${failMax ?? "too many"} consecutive failures`;
    return `circuit open for ${subject}: ${failures}${last}, next trial in ${left}`;
  }
  if (reason === "retry-after") return `${subject} is in cooldown: the server sent Retry-After, next call in ${left}`;
  if (reason === "slow-calls")
    return `${subject} is in cooldown: too many slow calls within the rolling window, next call in ${left}`;
  if (reason === "rolling-window")
    return `${subject} is in cooldown: too many failures within the rolling window${last}, next call in ${left}`;
  const operatorReason = reason.slice(reason.indexOf(":") + 1);
  const target = owner.replace(/^(service|resolver) /, "$1:");
  return `circuit forced open for ${owner} by an operator (${operatorReason}): next call in ${left}, or after "docstokg breaker close ${target}"`;
}
