import { formatRates, type Rate } from "../core/limits/rate.ts";
import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import { dividedPolicy } from "../policy/limits-share.ts";
import type { PacedPolicy } from "./pace.ts";
import { tightenedPolicy, tightest } from "./tightened-policy.ts";

/** One changed limit, for events; `old` and `new` as the policy writes them, or "none". */
export interface LearnedChange {
  readonly what: "rate" | "concurrency";
  readonly old: string;
  readonly new: string;
  /** The family of header fields that announced it; "lapsed" if it was not announced for an hour. */
  readonly source: string;
}

/**
 * Servers announce two or three windows. The cap bounds the cost of a grant when a server keeps announcing new ones.
 */
const WINDOWS_MAX = 4;

/**
 * Learned limits of an idle key lapse when the server has not repeated them for an hour, so that idle keys can be
 * evicted without a visible difference (law L11). While a key is in use nothing lapses.
 */
const KEPT_US = 3_600_000_000;

/**
 * Limits announced by a server that are tighter than the policy (law L10). They are kept in memory only and never
 * loosen: endpoints of one server announce different numbers, and following each would make the limit alternate.
 */
export class LearnedLimits {
  /** The configured limits. */
  base: RoleBudgetPolicy;
  /** At most one per window length. */
  #rates: readonly Rate[] = [];
  #maxConcurrent = Number.POSITIVE_INFINITY;
  #announcedUs = Number.NEGATIVE_INFINITY;
  /** When a limit was last tightened. Requests sent before that instant did not keep the new limit. */
  tightenedUs = Number.NEGATIVE_INFINITY;

  constructor(base: RoleBudgetPolicy) {
    this.base = base;
  }

  /** Learns from one response. `hasUnchangedRates`: every request of the key was sent under the present policy. */
  apply(announced: readonly AnnouncedLimit[], hasUnchangedRates: boolean, nowUs: number): readonly LearnedChange[] {
    const changes: LearnedChange[] = [];
    for (const { source, limit, windowUs, concurrency } of announced) {
      if (limit !== undefined && windowUs !== undefined) {
        const old = this.#applyRate({ limit, windowUs }, hasUnchangedRates, nowUs);
        if (old !== undefined) changes.push({ what: "rate", old, new: formatRates([{ limit, windowUs }]), source });
      }
      if (concurrency !== undefined) {
        const old = this.#applyConcurrency(concurrency, nowUs);
        if (old !== undefined) changes.push({ what: "concurrency", old, new: slotsText(concurrency), source });
      }
    }
    if (changes.length > 0) this.tightenedUs = nowUs;
    return changes;
  }

  /**
   * The policy tightened by the learned limits: the limits in force. The server counts the requests of all processes, so
   * a share of the policy has the same share of the learned limits.
   */
  overlay(base: RoleBudgetPolicy): RoleBudgetPolicy & PacedPolicy {
    this.base = base;
    const tightened = this.#tightened();
    return base.undivided === undefined ? tightened : dividedPolicy(tightened, base.processes ?? 1);
  }

  /** The configured limits of all processes together. */
  get #full(): RoleBudgetPolicy {
    return (this.base.undivided as RoleBudgetPolicy | undefined) ?? this.base;
  }

  #tightened(): RoleBudgetPolicy & PacedPolicy {
    const tightened = tightenedPolicy(this.#full, this.#rates);
    return Object.freeze({ ...tightened, maxConcurrent: Math.min(this.#full.maxConcurrent, this.#maxConcurrent) });
  }

  isLapsed(nowUs: number): boolean {
    return nowUs - this.#announcedUs >= KEPT_US;
  }

  /** The changes that are made when the caller drops all learned limits. */
  lapseChanges(): readonly LearnedChange[] {
    const { rates, maxConcurrent } = this.#full;
    const changes = this.#rates.flatMap((rate): LearnedChange[] => {
      const policy = tightest(rates, rate.windowUs);
      if (policy !== undefined && policy.limit <= rate.limit) return [];
      return [{ what: "rate", old: rateText(rate), new: rateText(policy), source: "lapsed" }];
    });
    if (this.#maxConcurrent < maxConcurrent) {
      changes.push({
        what: "concurrency",
        old: slotsText(this.#maxConcurrent),
        new: slotsText(maxConcurrent),
        source: "lapsed",
      });
    }
    return changes;
  }

  /** The limit that was in force before, if the announced one is tighter; else undefined. */
  #applyRate(rate: Rate, hasUnchangedRates: boolean, nowUs: number): string | undefined {
    const known = tightest(this.#rates, rate.windowUs);
    if (known !== undefined && rate.limit <= known.limit) this.#announcedUs = nowUs;
    const inForce = tightest([...this.#rates, ...this.#full.rates], rate.windowUs);
    if (inForce !== undefined && inForce.limit <= rate.limit) return undefined;
    if (inForce === undefined) {
      // Only windows of the policy may imply the announced limit. Requests sent before another limit was learned did
      // not keep that limit, so their sum could exceed this one.
      if (hasUnchangedRates && isImplied(rate, this.#full.rates)) return undefined;
      if (this.#rates.length >= WINDOWS_MAX) return undefined;
    }
    this.#rates = [...this.#rates.filter(other => other !== known), rate];
    this.#announcedUs = nowUs;
    return rateText(inForce);
  }

  #applyConcurrency(concurrency: number, nowUs: number): string | undefined {
    if (concurrency <= this.#maxConcurrent && this.#maxConcurrent < Number.POSITIVE_INFINITY) this.#announcedUs = nowUs;
    const inForce = Math.min(this.#maxConcurrent, this.#full.maxConcurrent);
    if (inForce <= concurrency) return undefined;
    this.#maxConcurrent = concurrency;
    this.#announcedUs = nowUs;
    return slotsText(inForce);
  }
}

/**
 * Under (N, T) at most ceil(T' / T) x N requests are sent in any T'. Guards and a slower pace only lower that number.
 */
function isImplied(rate: Rate, by: readonly Rate[]): boolean {
  return by.some(({ limit, windowUs }) => Math.ceil(rate.windowUs / windowUs) * limit <= rate.limit);
}

function rateText(rate: Rate | undefined): string {
  return rate === undefined ? "none" : formatRates([rate]);
}

function slotsText(maxConcurrent: number): string {
  return maxConcurrent === Number.POSITIVE_INFINITY ? "none" : `max_concurrent ${maxConcurrent}`;
}
