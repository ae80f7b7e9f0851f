import type { OpenReason } from "../errors.ts";

/** A host is left alone until an instant. */
export interface Cooldown {
  readonly untilUs: number;
  readonly reason: OpenReason;
  /** The number of the last permit issued before it was set: only a later one's success may end it. */
  readonly afterPermit: number;
}

/** The cooldowns of one host: what an operator ordered, and what its answers asked for, apart (law B5). */
export class Cooldowns {
  #ordered: Cooldown | undefined;
  #requested: Cooldown | undefined;

  /** The later deadline counts. False when there was a later one already. */
  set(cooldown: Cooldown): boolean {
    const isOperatorOrder = cooldown.reason.startsWith("cli-open:");
    const known = isOperatorOrder ? this.#ordered : this.#requested;
    if (known !== undefined && known.untilUs >= cooldown.untilUs) return false;
    if (isOperatorOrder) this.#ordered = cooldown;
    else this.#requested = cooldown;
    return true;
  }

  /** The one that ends last, if any is still running. */
  current(nowUs: number): Cooldown | undefined {
    const ordered = isRunning(this.#ordered, nowUs);
    const requested = isRunning(this.#requested, nowUs);
    if (ordered === undefined || requested === undefined) return ordered ?? requested;
    return ordered.untilUs >= requested.untilUs ? ordered : requested;
  }

  /** Whether a call was permitted before a pause that its host asked for, and that still runs. */
  isBeforeRetryAfter(permit: number, nowUs: number): boolean {
    const requested = isRunning(this.#requested, nowUs);
    return requested !== undefined && requested.reason === "retry-after" && permit <= requested.afterPermit;
  }

  /** A success ends what answers asked for, if its permit is younger. Never an order. */
  endBySuccess(permit: number, nowUs: number): boolean {
    const requested = isRunning(this.#requested, nowUs);
    if (requested === undefined || permit <= requested.afterPermit) return false;
    this.#requested = undefined;
    return true;
  }

  /** Others have ended what answers asked for. False when there was nothing to end. */
  endRequested(nowUs: number): boolean {
    const wasRunning = isRunning(this.#requested, nowUs) !== undefined;
    this.#requested = undefined;
    return wasRunning;
  }

  clear(): void {
    this.#ordered = undefined;
    this.#requested = undefined;
  }
}

function isRunning(cooldown: Cooldown | undefined, nowUs: number): Cooldown | undefined {
  return cooldown !== undefined && cooldown.untilUs > nowUs ? cooldown : undefined;
}
