import { formatRates, parseRates, type Rate } from "../../core/limits/rate.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { WindowCounter } from "./window-counter.ts";

/** What a service documents, and what it says to those who ask for more. */
export interface EnforcedLimit {
  readonly name: string;
  /** Hosts, or hosts with the beginning of a path; all of them count together. */
  readonly at: readonly string[];
  /** Which of the requests there it is about. @default all */
  readonly applies?: (visit: SimulatedRequest) => boolean;
  /** At most so many in any window. */
  readonly rates: string;
  /** At most so many under way. */
  readonly maxConcurrent?: number;
  /** Credits for a day that ends at midnight UTC, and what a request costs. */
  readonly dailyCredits?: { readonly credits: number; readonly cost: (visit: SimulatedRequest) => number };
  /** Whoever goes on after refusals for so long is cut off, each time for twice as long. */
  readonly firewall?: { readonly afterMs: number; readonly forMs: number };
  /** Fields of every answer. */
  readonly announce?: (state: LimitState) => Readonly<Record<string, string>>;
  readonly refuse: (state: LimitState) => SimulatedReply;
}

/** Where a caller stands, in numbers that services put into headers. */
export interface LimitState {
  /** Of the first rate, after the script had its say. */
  readonly limit: number;
  readonly windowMs: number;
  readonly remaining: number;
  /** Until the first rate has room again, or more room. */
  readonly resetMs: number;
  readonly maxConcurrent: number;
  readonly credits: number;
  readonly creditsLeft: number;
  readonly creditsUsed: number;
  readonly isOutOfCredits: boolean;
  readonly midnightMs: number;
  readonly wallMs: number;
}

/** How one limit was used. */
export interface LimitLedger {
  readonly name: string;
  readonly at: readonly string[];
  readonly requests: number;
  readonly served: number;
  readonly rejected: number;
  /** For each window: what it allows, and the most that ever came in one, wherever that begins, rejected or not. */
  readonly windows: readonly {
    readonly rate: string;
    readonly limit: number;
    readonly windowMs: number;
    readonly most: number;
  }[];
  readonly maxConcurrent: number | undefined;
  /** The most that were ever under way at once, those that were rejected included. */
  readonly mostConcurrent: number;
}

const DAY_MS = 86_400_000;

interface CountedWindow {
  readonly rate: Rate;
  /** Those that were let in; a rejected request takes no place. */
  readonly served: WindowCounter;
  readonly arrived: WindowCounter;
}

export class LimitCounter {
  readonly limit: EnforcedLimit;
  readonly #windows: readonly CountedWindow[];
  #inFlight = 0;
  #mostConcurrent = 0;
  #requests = 0;
  #served = 0;
  #rejected = 0;
  #day = 0;
  #creditsUsed = 0;
  #refusedSinceUs: number | undefined;
  #blockedUntilUs = 0;
  #blocks = 0;

  constructor(limit: EnforcedLimit) {
    this.limit = limit;
    this.#windows = parseRates(limit.rates).map(rate => ({
      rate,
      served: new WindowCounter(rate.windowUs),
      arrived: new WindowCounter(rate.windowUs),
    }));
  }

  arrived(nowUs: number): void {
    this.#requests += 1;
    this.#mostConcurrent = Math.max(this.#mostConcurrent, this.#inFlight + 1);
    for (const { arrived } of this.#windows) arrived.add(nowUs);
  }

  isBlocking(nowUs: number): boolean {
    return nowUs < this.#blockedUntilUs;
  }

  isFull(visit: SimulatedRequest, nowUs: number, factor: number): boolean {
    const { maxConcurrent, dailyCredits } = this.limit;
    if (maxConcurrent !== undefined && this.#inFlight >= scaled(maxConcurrent, factor)) return true;
    if (dailyCredits !== undefined && this.#creditsLeft(visit.wallMs) < dailyCredits.cost(visit)) return true;
    return this.#windows.some(({ rate, served }) => served.count(nowUs) >= scaled(rate.limit, factor));
  }

  reject(visit: SimulatedRequest, nowUs: number, factor: number): SimulatedReply {
    this.#rejected += 1;
    this.#refusedSinceUs ??= nowUs;
    const { firewall } = this.limit;
    if (firewall !== undefined && nowUs - this.#refusedSinceUs >= firewall.afterMs * 1000) {
      this.#blockedUntilUs = nowUs + firewall.forMs * 1000 * 2 ** this.#blocks;
      this.#blocks += 1;
    }
    const state = this.#state(visit, nowUs, factor);
    return withHeaders(this.limit.refuse(state), this.limit.announce?.(state));
  }

  admit(visit: SimulatedRequest, nowUs: number): void {
    this.#served += 1;
    this.#inFlight += 1;
    this.#refusedSinceUs = undefined;
    this.#creditsUsed += this.limit.dailyCredits?.cost(visit) ?? 0;
    for (const { served } of this.#windows) served.add(nowUs);
  }

  release(): void {
    this.#inFlight -= 1;
  }

  announce(visit: SimulatedRequest, nowUs: number, factor: number): Readonly<Record<string, string>> {
    return this.limit.announce?.(this.#state(visit, nowUs, factor)) ?? {};
  }

  report(): LimitLedger {
    const { name, at, maxConcurrent } = this.limit;
    return {
      name,
      at,
      requests: this.#requests,
      served: this.#served,
      rejected: this.#rejected,
      windows: this.#windows.map(({ rate, arrived }) => ({
        rate: formatRates([rate]),
        limit: rate.limit,
        windowMs: rate.windowUs / 1000,
        most: arrived.most,
      })),
      maxConcurrent,
      mostConcurrent: this.#mostConcurrent,
    };
  }

  #creditsLeft(wallMs: number): number {
    const day = Math.floor(wallMs / DAY_MS);
    if (day !== this.#day) {
      this.#day = day;
      this.#creditsUsed = 0;
    }
    return (this.limit.dailyCredits?.credits ?? 0) - this.#creditsUsed;
  }

  #state(visit: SimulatedRequest, nowUs: number, factor: number): LimitState {
    const { maxConcurrent = 0, dailyCredits } = this.limit;
    const [first] = this.#windows;
    const limit = scaled(first?.rate.limit ?? 0, factor);
    const windowMs = (first?.rate.windowUs ?? 0) / 1000;
    const creditsLeft = this.#creditsLeft(visit.wallMs);
    const cost = dailyCredits?.cost(visit) ?? 0;
    return {
      limit,
      windowMs,
      remaining: Math.max(0, limit - (first?.served.count(nowUs) ?? 0)),
      resetMs: (first?.served.freeInUs(nowUs) ?? 0) / 1000,
      maxConcurrent: scaled(maxConcurrent, factor),
      credits: dailyCredits?.credits ?? 0,
      creditsLeft,
      creditsUsed: cost,
      isOutOfCredits: dailyCredits !== undefined && creditsLeft < cost,
      midnightMs: DAY_MS - (visit.wallMs % DAY_MS),
      wallMs: visit.wallMs,
    };
  }
}

/** A limit never falls below one. */
function scaled(limit: number, factor: number): number {
  return factor === 1 ? limit : Math.max(1, Math.floor(limit * factor));
}

function withHeaders(reply: SimulatedReply, headers: Readonly<Record<string, string>> = {}): SimulatedReply {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}
