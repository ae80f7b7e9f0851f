import { formatRates, parseRates, type Rate } from "../../core/limits/rate.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import { WindowCounter } from "./window-counter.ts";

/** A documented limit of a service, and its response to requests above it. */
export interface EnforcedLimit {
  readonly name: string;
  /** Hosts, or hosts with the beginning of a path. They share the limit. */
  readonly at: readonly string[];
  /** Which requests to these hosts count. @default all */
  readonly applies?: (request: SimulatedRequest) => boolean;
  /** The maximum in any window, such as `10/SECOND+500/MINUTE`. */
  readonly rates: string;
  /** The maximum number of concurrent requests. @default unlimited */
  readonly maxConcurrent?: number;
  /** Credits for a day that ends at midnight UTC, and the cost of a request. */
  readonly dailyCredits?: { readonly credits: number; readonly cost: (request: SimulatedRequest) => number };
  /** A client that ignores refusals for `afterMs` is blocked for `forMs`. Each further block is twice as long. */
  readonly firewall?: { readonly afterMs: number; readonly forMs: number };
  /** Header fields of every response. */
  readonly announce?: (state: LimitState) => Readonly<Record<string, string>>;
  readonly refuse: (state: LimitState) => SimulatedReply;
}

/** The use of a limit, in the numbers that services put into header fields. */
export interface LimitState {
  /** The number of the first rate, after the script's `limits` factor. */
  readonly limit: number;
  readonly windowMs: number;
  readonly remaining: number;
  /** Milliseconds until the oldest request leaves the window of the first rate. */
  readonly resetMs: number;
  readonly maxConcurrent: number;
  readonly credits: number;
  readonly creditsLeft: number;
  /** The credits that this request costs. */
  readonly requestCredits: number;
  readonly isOutOfCredits: boolean;
  readonly untilMidnightMs: number;
  readonly wallMs: number;
}

/** How one limit was used. */
export interface LimitLedger {
  /** The service, and the pool of callers if it has several: `crossref polite-single`. */
  readonly name: string;
  /** The hosts, or hosts with the beginning of a path, that share the limit. */
  readonly at: readonly string[];
  /** All requests that the limit applied to. */
  readonly requests: number;
  /** Requests that it admitted. */
  readonly served: number;
  /** Requests that it refused. */
  readonly rejected: number;
  /** One entry for each window of the limit. */
  readonly windows: readonly {
    /** As configured: `10/SECOND`. */
    readonly rate: string;
    /** The maximum number of requests in a window. */
    readonly limit: number;
    /** The length of the window. */
    readonly windowMs: number;
    /** The largest number of arrivals in any window of this length, rejected ones included. */
    readonly most: number;
  }[];
  /** The maximum number of concurrent requests; undefined if the limit has none. */
  readonly maxConcurrent: number | undefined;
  /** The largest number of concurrent requests, rejected ones included. */
  readonly mostConcurrent: number;
}

const DAY_MS = 86_400_000;

interface CountedWindow {
  readonly rate: Rate;
  /** Admitted requests only: a rejected request uses no part of the limit. */
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

  isFull(request: SimulatedRequest, nowUs: number, factor: number): boolean {
    const { maxConcurrent, dailyCredits } = this.limit;
    if (maxConcurrent !== undefined && this.#inFlight >= scaled(maxConcurrent, factor)) return true;
    if (dailyCredits !== undefined && this.#creditsLeft(request.wallMs) < dailyCredits.cost(request)) return true;
    return this.#windows.some(({ rate, served }) => served.count(nowUs) >= scaled(rate.limit, factor));
  }

  reject(request: SimulatedRequest, nowUs: number, factor: number): SimulatedReply {
    this.#rejected += 1;
    this.#refusedSinceUs ??= nowUs;
    const { firewall } = this.limit;
    if (firewall !== undefined && nowUs - this.#refusedSinceUs >= firewall.afterMs * 1000) {
      this.#blockedUntilUs = nowUs + firewall.forMs * 1000 * 2 ** this.#blocks;
      this.#blocks += 1;
    }
    const state = this.#state(request, nowUs, factor);
    return withHeaders(this.limit.refuse(state), this.limit.announce?.(state));
  }

  admit(request: SimulatedRequest, nowUs: number): void {
    this.#served += 1;
    this.#inFlight += 1;
    this.#refusedSinceUs = undefined;
    this.#creditsUsed += this.limit.dailyCredits?.cost(request) ?? 0;
    for (const { served } of this.#windows) served.add(nowUs);
  }

  release(): void {
    this.#inFlight -= 1;
  }

  announce(request: SimulatedRequest, nowUs: number, factor: number): Readonly<Record<string, string>> {
    return this.limit.announce?.(this.#state(request, nowUs, factor)) ?? {};
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

  #state(request: SimulatedRequest, nowUs: number, factor: number): LimitState {
    const { maxConcurrent = 0, dailyCredits } = this.limit;
    const [first] = this.#windows;
    const limit = scaled(first?.rate.limit ?? 0, factor);
    const windowMs = (first?.rate.windowUs ?? 0) / 1000;
    const creditsLeft = this.#creditsLeft(request.wallMs);
    const cost = dailyCredits?.cost(request) ?? 0;
    return {
      limit,
      windowMs,
      remaining: Math.max(0, limit - (first?.served.count(nowUs) ?? 0)),
      resetMs: (first?.served.freeInUs(nowUs) ?? 0) / 1000,
      maxConcurrent: scaled(maxConcurrent, factor),
      credits: dailyCredits?.credits ?? 0,
      creditsLeft,
      requestCredits: cost,
      isOutOfCredits: dailyCredits !== undefined && creditsLeft < cost,
      untilMidnightMs: DAY_MS - (request.wallMs % DAY_MS),
      wallMs: request.wallMs,
    };
  }
}

/** At least 1. */
function scaled(limit: number, factor: number): number {
  return factor === 1 ? limit : Math.max(1, Math.floor(limit * factor));
}

function withHeaders(reply: SimulatedReply, headers: Readonly<Record<string, string>> = {}): SimulatedReply {
  return { ...reply, headers: { ...headers, ...reply.headers } };
}
