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
  #asked: Cooldown | undefined;

  /** The later deadline counts. False when there was a later one already. */
  set(cooldown: Cooldown): boolean {
    const isOrder = cooldown.reason.startsWith("cli-open:");
    const known = isOrder ? this.#ordered : this.#asked;
    if (known !== undefined && known.untilUs >= cooldown.untilUs) return false;
    if (isOrder) this.#ordered = cooldown;
    else this.#asked = cooldown;
    return true;
  }

  /** The one that ends last, if any is still running. */
  current(nowUs: number): Cooldown | undefined {
    const ordered = isRunning(this.#ordered, nowUs);
    const asked = isRunning(this.#asked, nowUs);
    if (ordered === undefined || asked === undefined) return ordered ?? asked;
    return ordered.untilUs >= asked.untilUs ? ordered : asked;
  }

  /** Whether a call was permitted before a pause that its host asked for, and that still runs. */
  isBefore(permit: number, nowUs: number): boolean {
    const asked = isRunning(this.#asked, nowUs);
    return asked !== undefined && asked.reason === "retry-after" && permit <= asked.afterPermit;
  }

  /** A success ends what answers asked for, if its permit is younger. Never an order. */
  endBySuccess(permit: number, nowUs: number): boolean {
    const asked = isRunning(this.#asked, nowUs);
    if (asked === undefined || permit <= asked.afterPermit) return false;
    this.#asked = undefined;
    return true;
  }

  /** Others have ended what answers asked for. False when there was nothing to end. */
  endAsked(nowUs: number): boolean {
    const wasRunning = isRunning(this.#asked, nowUs) !== undefined;
    this.#asked = undefined;
    return wasRunning;
  }

  clear(): void {
    this.#ordered = undefined;
    this.#asked = undefined;
  }
}

function isRunning(cooldown: Cooldown | undefined, nowUs: number): Cooldown | undefined {
  return cooldown !== undefined && cooldown.untilUs > nowUs ? cooldown : undefined;
}
