import type { OpenReason } from "../errors.ts";
import { isOperatorReason } from "./operator-reason.ts";

/** Calls to a host are refused until `untilUs`. */
export interface Cooldown {
  readonly untilUs: number;
  readonly reason: OpenReason;
  /** Number of the last permit issued before it was set: only the success of a later permit may end it (law B5). */
  readonly afterPermit: number;
}

/**
 * The cooldowns of one host. An operator's order and a cooldown from responses are separate: a success ends only the
 * latter (law B5).
 */
export class Cooldowns {
  #ordered: Cooldown | undefined;
  #requested: Cooldown | undefined;

  /** The later end counts. False if a cooldown of the same kind already ends later. */
  set(cooldown: Cooldown): boolean {
    const isOrder = isOperatorReason(cooldown.reason);
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
    return true;
  }

  /** Ends the cooldown from responses, because a peer has ended it. False if none was running. */
  endRequested(nowUs: number): boolean {
    const wasRunning = running(this.#requested, nowUs) !== undefined;
    this.#requested = undefined;
    return wasRunning;
  }

  clear(): void {
    this.#ordered = undefined;
    this.#requested = undefined;
  }
}

function running(cooldown: Cooldown | undefined, nowUs: number): Cooldown | undefined {
  return cooldown !== undefined && cooldown.untilUs > nowUs ? cooldown : undefined;
}
