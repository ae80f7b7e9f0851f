import { formatRates, type Rate } from "../core/limits/rate.ts";
import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import { evenSpacingUs } from "../core/limits/spacing.ts";
import { makeWindow, type Window } from "../core/limits/window-log.ts";
import type { RoleBudgetPolicy } from "../policy/limits.ts";
import type { PacedPolicy } from "./pace.ts";

/** One limit that is another one now, for whoever listens; as people write it, or "none". */
export interface LearnedChange {
  readonly what: "rate" | "concurrency";
  readonly old: string;
  readonly new: string;
  /** The family of fields that said so; "lapsed" when nobody has for a while. */
  readonly source: string;
}

/** Servers have two or three windows. One that names ever new ones shall not make every grant slower. */
const WINDOWS_MAX = 4;

/**
 * An idle lane goes back to its policy when its server has not repeated itself for an hour. So a crawler can forget the
 * hosts of yesterday, and nobody can tell whether it has (law L11): a lane that may be forgotten has lapsed. While a
 * lane is in use nothing lapses.
 */
const KEPT_US = 3_600_000_000;

/**
 * What a server has announced that is tighter than the lane's policy (law L10). It belongs to the run and only ever
 * tightens: endpoints that announce different numbers would make anything else flap.
 */
export class LearnedLimits {
  /** As configured, without anything learned. */
  base: RoleBudgetPolicy;
  /** One for each length of window at the most. */
  #rates: readonly Rate[] = [];
  #maxConcurrent = Number.POSITIVE_INFINITY;
  #announcedUs = Number.NEGATIVE_INFINITY;

  constructor(base: RoleBudgetPolicy) {
    this.base = base;
  }

  /** What is new in an answer. `hasUnchangedRates`: all that the lane has sent was sent under its policy of today. */
  apply(announced: readonly AnnouncedLimit[], hasUnchangedRates: boolean, nowUs: number): readonly LearnedChange[] {
    const changes: LearnedChange[] = [];
    for (const { source, limit, windowUs, concurrency } of announced) {
      if (limit !== undefined && windowUs !== undefined) {
        const old = this.#applyRate({ limit, windowUs }, hasUnchangedRates, nowUs);
        if (old !== undefined) changes.push({ what: "rate", old, new: formatRates([{ limit, windowUs }]), source });
      }
      if (concurrency !== undefined) {
        const old = this.#applyConcurrency(concurrency, nowUs);
        if (old !== undefined) changes.push({ what: "concurrency", old, new: slots(concurrency), source });
      }
    }
    return changes;
  }

  /** A policy with everything learned on top of it: what holds from now on. */
  overlay(base: RoleBudgetPolicy): RoleBudgetPolicy & PacedPolicy {
    this.base = base;
    const own = base.rates.map(rate => this.#tighter(rate));
    const rates = [...own, ...this.#rates.filter(({ windowUs }) => tightest(base.rates, windowUs) === undefined)];
    const windows = rates.map((rate, index) =>
      rate === base.rates[index]
        ? (base.windows[index] as Window)
        : makeWindow(rate.limit, rate.windowUs + base.guardUs),
    );
    const evenUs = evenOf(base.rates, rates);
    return Object.freeze({
      ...base,
      rates,
      windows,
      labels: rates.map(rate => formatRates([rate])),
      evenUs,
      spacingUs: base.spacingUs > 0 ? evenUs : 0,
      maxConcurrent: Math.min(base.maxConcurrent, this.#maxConcurrent),
    });
  }

  isLapsed(nowUs: number): boolean {
    return nowUs - this.#announcedUs >= KEPT_US;
  }

  /** What changes when all of it is forgotten. */
  lapse(): readonly LearnedChange[] {
    const { rates, maxConcurrent } = this.overlay(this.base);
    const learned = rates.filter((rate, index) => rate !== this.base.rates[index]);
    const changes: LearnedChange[] = learned.map(rate => {
      const policy = tightest(this.base.rates, rate.windowUs);
      return { what: "rate", old: label(rate), new: label(policy), source: "lapsed" };
    });
    if (maxConcurrent < this.base.maxConcurrent) {
      changes.push({
        what: "concurrency",
        old: slots(maxConcurrent),
        new: slots(this.base.maxConcurrent),
        source: "lapsed",
      });
    }
    return changes;
  }

  /** What held before, when this is tighter. */
  #applyRate(rate: Rate, hasUnchangedRates: boolean, nowUs: number): string | undefined {
    const known = tightest(this.#rates, rate.windowUs);
    if (known !== undefined && rate.limit <= known.limit) this.#announcedUs = nowUs;
    const inForce = tightest([...this.#rates, ...this.base.rates], rate.windowUs);
    if (inForce !== undefined && inForce.limit <= rate.limit) return undefined;
    if (inForce === undefined) {
      // Only the policy's windows can stand in for it. What was sent before a limit was learned did not keep that limit,
      // so that the sum of both could still be too much.
      if (hasUnchangedRates && isImplied(rate, this.base.rates)) return undefined;
      if (this.#rates.length >= WINDOWS_MAX) return undefined;
    }
    this.#rates = [...this.#rates.filter(other => other !== known), rate];
    this.#announcedUs = nowUs;
    return label(inForce);
  }

  #applyConcurrency(concurrency: number, nowUs: number): string | undefined {
    if (concurrency <= this.#maxConcurrent && this.#maxConcurrent < Number.POSITIVE_INFINITY) this.#announcedUs = nowUs;
    const inForce = Math.min(this.#maxConcurrent, this.base.maxConcurrent);
    if (inForce <= concurrency) return undefined;
    this.#maxConcurrent = concurrency;
    this.#announcedUs = nowUs;
    return slots(inForce);
  }

  #tighter(rate: Rate): Rate {
    const learned = tightest(this.#rates, rate.windowUs);
    return learned !== undefined && learned.limit < rate.limit ? learned : rate;
  }
}

/** Whoever keeps (N, T) sends at most ceil(T' / T) x N in any T'. Guards and a slower pace only make that truer. */
function isImplied(rate: Rate, by: readonly Rate[]): boolean {
  return by.some(({ limit, windowUs }) => Math.ceil(rate.windowUs / windowUs) * limit <= rate.limit);
}

function tightest(rates: readonly Rate[], windowUs: number): Rate | undefined {
  const alike = rates.filter(rate => rate.windowUs === windowUs);
  return alike.length === 0 ? undefined : alike.reduce((least, rate) => (rate.limit < least.limit ? rate : least));
}

/**
 * The distance of smoothed sends. It goes by the shortest window, and a shorter one may be learned that asks for less:
 * then the larger distance stays.
 */
function evenOf(policy: readonly Rate[], rates: readonly Rate[]): number {
  const shortestUs = Math.min(...(policy.length > 0 ? policy : rates).map(({ windowUs }) => windowUs));
  const short = rates.filter(({ windowUs }) => windowUs <= shortestUs);
  return Math.max(0, ...short.map(rate => evenSpacingUs([rate])));
}

function label(rate: Rate | undefined): string {
  return rate === undefined ? "none" : formatRates([rate]);
}

function slots(maxConcurrent: number): string {
  return maxConcurrent === Number.POSITIVE_INFINITY ? "none" : `max_concurrent ${maxConcurrent}`;
}
