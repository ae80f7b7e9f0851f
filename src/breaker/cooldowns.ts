import type { FailureKind } from "../core/breaker/circuit.ts";
import { redactedText } from "../core/text/redaction.ts";
import type { OpenReason } from "../errors.ts";
import type { Time } from "../time/time.ts";
import type { BreakerChange, ChangeOrigin } from "./breaker-change.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { CooldownEvents } from "./cooldown-events.ts";
import type { HostBreaker } from "./host-breaker.ts";
import type { IssuedCall } from "./permit.ts";
import type { RampUps } from "./ramp-up.ts";

/** Stored in shared records and printed in events, so this text must never change. */
export const OPERATOR_PREFIX = "cli-open:";

/**
 * The reason of a cooldown that an operator has ordered: `cli-open:maintenance`. Every process that shares the store
 * prints it, so it is stored without secrets.
 */
export function operatorReason(text: string): OpenReason {
  return `${OPERATOR_PREFIX}${redactedText(text)}`;
}

/** The text of an operator's reason, without its prefix. Any other reason is returned unchanged. */
export function reasonText(reason: string): string {
  return isOperatorReason(reason) ? reason.slice(OPERATOR_PREFIX.length) : reason;
}

/** Ordered by an operator, so no result of a call may end it (law B5). */
export function isOperatorReason(reason: string): boolean {
  return reason.startsWith(OPERATOR_PREFIX);
}

/** Calls to a host are refused until `untilUs`. */
export interface Cooldown {
  readonly untilUs: number;
  readonly reason: OpenReason;
  /** Number of the last permit issued before it was set: only the success of a later permit may end it (law B5). */
  readonly afterPermit: number;
  /** What has set it. One of origin `local-only` is not shared with the peers. @default "local" */
  readonly origin?: ChangeOrigin;
  /**
   * When this process has received the Retry-After that set it. An older order does not end it. Absent for every other
   * cooldown.
   */
  readonly receivedUs?: number;
  /** How the call whose failure set it ended, for messages. Absent if it was a call of another process. */
  readonly lastFailure?: string | undefined;
}

/**
 * The cooldowns of one host. An operator's order and a cooldown from responses are separate: a success ends only the
 * latter (law B5).
 */
export class Cooldowns {
  /** Ordered by an operator. */
  #ordered: Cooldown | undefined;
  /** Caused by responses: Retry-After, failures, slow calls. */
  #requested: Cooldown | undefined;
  /** The Retry-After that this process has received, even while one of a peer lasts longer. */
  #received: Cooldown | undefined;

  /** The later end counts. False if a cooldown of the same kind already ends later. */
  set(cooldown: Cooldown): boolean {
    const isOrder = isOperatorReason(cooldown.reason);
    const receivedUntilUs = this.#received?.untilUs ?? Number.NEGATIVE_INFINITY;
    if (cooldown.receivedUs !== undefined && receivedUntilUs <= cooldown.untilUs) this.#received = cooldown;
    const known = isOrder ? this.#ordered : this.#requested;
    if (known !== undefined && known.untilUs >= cooldown.untilUs) return false;
    if (isOrder) this.#ordered = cooldown;
    else this.#requested = cooldown;
    return true;
  }

  /** The running cooldown that ends last, if any. */
  current(nowUs: number): Cooldown | undefined {
    const ordered = running(this.#ordered, nowUs);
    const requested = running(this.#requested, nowUs);
    if (ordered === undefined || requested === undefined) return ordered ?? requested;
    return ordered.untilUs >= requested.untilUs ? ordered : requested;
  }

  /** The running cooldown that an operator has ordered, if any. */
  ordered(nowUs: number): Cooldown | undefined {
    return running(this.#ordered, nowUs);
  }

  /** The running cooldown that responses have caused, if any. */
  requested(nowUs: number): Cooldown | undefined {
    return running(this.#requested, nowUs);
  }

  /** The Retry-After that this process has received itself, while it lasts. */
  received(nowUs: number): Cooldown | undefined {
    return running(this.#received, nowUs);
  }

  /** Replaces the operator's order, even by one that ends earlier. */
  setOrder(order: Cooldown | undefined): void {
    this.#ordered = order;
  }

  /** Whether a permit is older than a Retry-After cooldown that is still running. */
  isBeforeRetryAfter(permit: number, nowUs: number): boolean {
    const requested = running(this.#requested, nowUs);
    return requested !== undefined && requested.reason === "retry-after" && permit <= requested.afterPermit;
  }

  /** A success ends the cooldown from responses if its permit was issued later; never an order. */
  endBySuccess(permit: number, nowUs: number): boolean {
    const requested = running(this.#requested, nowUs);
    if (requested === undefined || permit <= requested.afterPermit) return false;
    this.#requested = undefined;
    this.#received = undefined;
    return true;
  }

  /**
   * A peer has ended the cooldown from responses at `endedUs`. A Retry-After that was received later stays, because it is
   * not in the record yet. True if none is running any more.
   */
  endRequested(nowUs: number, endedUs: number): boolean {
    const wasRunning = running(this.#requested, nowUs) !== undefined;
    this.#keepReceivedAfter(endedUs);
    return wasRunning && this.#received === undefined;
  }

  /** An operator has ended all cooldowns at `orderedUs`. A Retry-After that was received later stays. */
  clear(orderedUs: number): void {
    this.#ordered = undefined;
    this.#keepReceivedAfter(orderedUs);
  }

  /** Ends the cooldown from responses, except a Retry-After that this process has received after that instant. */
  #keepReceivedAfter(instantUs: number): void {
    const receivedUs = this.#received?.receivedUs ?? Number.NEGATIVE_INFINITY;
    if (receivedUs <= instantUs) this.#received = undefined;
    this.#requested = this.#received;
  }
}

/**
 * Starts the cooldowns of a host: for a Retry-After, for too many failures in the rolling window, for an operator.
 * `lastPermit` is the number of the last permit issued: only the success of a later one may end the cooldown (law B5).
 */
export class CooldownStarter {
  readonly #table: BreakerTable;
  readonly #time: Time;
  readonly #emitter: BreakerEmitter;
  readonly #cooldownEvents: CooldownEvents;
  readonly #rampUps: RampUps;
  readonly #record: (change: BreakerChange) => void;

  constructor(
    table: BreakerTable,
    time: Time,
    emitter: BreakerEmitter,
    cooldownEvents: CooldownEvents,
    rampUps: RampUps,
    record: (change: BreakerChange) => void,
  ) {
    this.#rampUps = rampUps;
    this.#table = table;
    this.#time = time;
    this.#emitter = emitter;
    this.#cooldownEvents = cooldownEvents;
    this.#record = record;
  }

  /** The cooldown for a Retry-After: as long as the host asked, at most `retry_after_cap_s`; undefined without one. */
  retryAfterCooldownMs({ host }: IssuedCall, retryAfterMs: number | undefined): number | undefined {
    if (retryAfterMs === undefined || !(retryAfterMs > 0)) return undefined;
    return Math.min(retryAfterMs, this.#table.policies.retryAfterCapMs(host.name));
  }

  /**
   * Repeated long values of Retry-After raise the reset timeout. The answers of one burst of throttles count as one
   * value: `isRepeated` is true for all but the first of them.
   */
  startForRetryAfter(call: IssuedCall, ms: number, lastPermit: number, isRepeated: boolean): void {
    const { isAdaptive } = this.#table.policies;
    const { cooldownHost: host } = call;
    const { policy } = call.circuit.holder;
    this.start(host, ms, "retry-after", lastPermit);
    const oldUs = Math.max(policy.resetUs, host.learnedResetUs);
    if (isAdaptive && !isRepeated && host.learnReset(ms * 1000, policy.resetUs)) {
      this.#emitter.resetRaised(host.name, oldUs, host.learnedResetUs);
    }
  }

  /** Counts a failure in the rolling window, and starts a cooldown at the threshold (law B6). */
  countFailure(host: HostBreaker, nowUs: number, lastPermit: number, { isUnreached, text }: FailureKind): void {
    const { enabled, threshold, windowUs, cooldownMs } = this.#table.policies.rollingWindow;
    if (!enabled) return;
    const reached = host.failures.add(nowUs, threshold, windowUs, isUnreached);
    if (reached !== false)
      this.start(
        host,
        cooldownMs,
        "rolling-window",
        lastPermit,
        reached === "local-only" ? "local-only" : "local",
        text,
      );
    if (reached !== true) this.#record({ kind: "recent-failure", origin: "local", blocker: host, isUnreached });
  }

  /** Counts the time of an answered call, and starts a cooldown when too many calls of the rolling window were slow. */
  countLatency(host: HostBreaker, tookUs: number, nowUs: number, lastPermit: number): void {
    const { slowCalls, cooldownMs } = this.#table.policies.rollingWindow;
    if (slowCalls !== undefined && host.slowCalls.add(nowUs, tookUs, slowCalls))
      this.start(host, cooldownMs, "slow-calls", lastPermit);
  }

  start(
    host: HostBreaker,
    ms: number,
    reason: OpenReason,
    lastPermit: number,
    origin: ChangeOrigin = "local",
    lastFailure?: string,
  ): void {
    const nowUs = this.#time.monotonicUs();
    const untilUs = nowUs + Math.ceil(ms * 1000);
    const isReceived = reason === "retry-after" && origin === "local";
    const cooldown = { untilUs, reason, afterPermit: lastPermit, origin, lastFailure };
    const isLonger = host.cooldowns.set(isReceived ? { ...cooldown, receivedUs: nowUs } : cooldown);
    // The peers do not know the longer cooldown that is for this process alone.
    const isNew = isLonger || (isReceived && host.cooldowns.requested(nowUs)?.origin === "local-only");
    if (isNew) this.#record({ kind: "cooldown", origin, blocker: host, untilUs, reason });
    if (!isLonger) return;
    this.#rampUps.start(host, reason);
    this.#cooldownEvents.began(host, cooldown);
  }
}

function running(cooldown: Cooldown | undefined, nowUs: number): Cooldown | undefined {
  return cooldown !== undefined && cooldown.untilUs > nowUs ? cooldown : undefined;
}
