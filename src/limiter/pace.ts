import { type AimdPolicy, nextMultiplier } from "../core/limits/aimd.ts";
import { decayedGuardUs, MAX_GUARD_US, widenedGuardUs } from "../core/limits/guard.ts";
import { evenSpacingUs } from "../core/limits/spacing.ts";
import type { Window } from "../core/limits/window-log.ts";
import type { BudgetPolicy } from "../policy/limits.ts";

/** A policy, with the distance of smoothed sends where its rates alone do not tell it. */
export interface PacedPolicy extends BudgetPolicy {
  readonly evenUs?: number | undefined;
}

/** One thing that was learned, for whoever listens. */
export interface PaceChange {
  readonly what: "multiplier" | "guard_ms" | "shape";
  readonly old: number | string;
  readonly new: number | string;
  readonly reason: string;
}

/**
 * What a lane has learned of the pace its server wants: the multiplier of law L9, the guard and shape of law L12.
 * It belongs to the run: a new process starts from the policy again.
 */
export class Pace {
  multiplier: number;
  guardUs: number;
  isSmooth: boolean;
  /** The policy's windows at this pace. */
  windows: readonly Window[];
  #policy: PacedPolicy;
  #aimd: AimdPolicy;
  #calls = 0;
  #throttled = 0;
  #countingSinceUs: number;
  #widenedUs = Number.NEGATIVE_INFINITY;
  /** Since when there was nothing to widen the guard for, or since it last shrank. */
  #calmSinceUs = Number.NEGATIVE_INFINITY;

  constructor(policy: PacedPolicy, aimd: AimdPolicy, nowUs: number) {
    this.#policy = policy;
    this.#aimd = aimd;
    this.multiplier = startOf(aimd);
    this.guardUs = policy.guardUs;
    this.isSmooth = policy.spacingUs > 0;
    this.windows = policy.windows;
    this.#countingSinceUs = nowUs;
    if (this.multiplier !== 1) this.#rebuild();
  }

  get spacingUs(): number {
    const { rates, evenUs = evenSpacingUs(rates) } = this.#policy;
    return this.isSmooth ? Math.ceil(evenUs / this.multiplier) : 0;
  }

  /** Goes on under another policy with what was learned; a guard is never narrower than the policy's. */
  reload(policy: PacedPolicy, aimd: AimdPolicy): void {
    const wasSmoothByPolicy = this.#policy.spacingUs > 0;
    this.#policy = policy;
    this.#aimd = aimd;
    this.guardUs = Math.max(this.guardUs, policy.guardUs);
    this.isSmooth = policy.spacingUs > 0 || (this.isSmooth && !wasSmoothByPolicy);
    this.multiplier = aimd.enabled ? Math.min(aimd.maxMultiplier, Math.max(aimd.minMultiplier, this.multiplier)) : 1;
    this.#rebuild();
  }

  /** Counts one answer. A throttled one also says that the guard was too narrow. */
  record(isThrottled: boolean, nowUs: number): readonly PaceChange[] {
    const changes = this.tick(nowUs);
    this.#calls += 1;
    if (!isThrottled) return changes;
    this.#throttled += 1;
    return [...changes, ...this.#widen(nowUs)];
  }

  /** Draws the sum of a window that has ended, and lets a calm guard shrink. */
  tick(nowUs: number): readonly PaceChange[] {
    const changes: PaceChange[] = [...this.#calmGuard(nowUs)];
    const elapsedUs = nowUs - this.#countingSinceUs;
    if (elapsedUs < this.#aimd.windowUs) return changes;
    const allowance = this.#allowance();
    const seen = { calls: this.#calls, throttled: this.#throttled, allowance };
    this.#calls = 0;
    this.#throttled = 0;
    this.#countingSinceUs = nowUs;
    if (!this.#aimd.enabled) return changes;
    const old = this.multiplier;
    this.multiplier = nextMultiplier(this.#aimd, old, seen);
    if (this.multiplier === old) return changes;
    this.#rebuild();
    const reason = this.multiplier < old ? `${seen.throttled} of ${seen.calls} throttled` : "calm";
    return [...changes, { what: "multiplier", old, new: this.multiplier, reason }];
  }

  /** True when a fresh one would be the same: nothing is lost by forgetting it (law L11). */
  isNeutral(nowUs: number): boolean {
    const isAsPolicy =
      this.multiplier === startOf(this.#aimd) &&
      this.guardUs === this.#policy.guardUs &&
      this.isSmooth === this.#policy.spacingUs > 0;
    const isCounted = this.#calls === 0 || nowUs - this.#countingSinceUs >= this.#aimd.windowUs;
    // A count that is complete and not yet summed up may still slow the key down.
    return isAsPolicy && isCounted && !(this.#aimd.enabled && this.#throttled > 0);
  }

  /** One 429 burst is one piece of news, so the guard moves once in a window at the most. */
  #widen(nowUs: number): readonly PaceChange[] {
    const shortestUs = Math.min(...this.windows.map(({ spanUs }) => spanUs));
    this.#calmSinceUs = nowUs;
    if (nowUs - this.#widenedUs < shortestUs) return [];
    this.#widenedUs = nowUs;
    const reason = "429 although the windows were kept";
    if (this.guardUs >= MAX_GUARD_US) {
      if (this.isSmooth) return [];
      this.isSmooth = true;
      return [{ what: "shape", old: "burst", new: "smooth", reason }];
    }
    const old = this.guardUs / 1000;
    this.guardUs = widenedGuardUs(this.guardUs);
    this.#rebuild();
    return [{ what: "guard_ms", old, new: this.guardUs / 1000, reason }];
  }

  #calmGuard(nowUs: number): readonly PaceChange[] {
    const calmed = decayedGuardUs(this.guardUs, this.#policy.guardUs, nowUs - this.#calmSinceUs);
    if (calmed >= this.guardUs) return [];
    const old = this.guardUs / 1000;
    this.guardUs = calmed;
    this.#calmSinceUs = nowUs;
    this.#rebuild();
    return [{ what: "guard_ms", old, new: calmed / 1000, reason: "calm" }];
  }

  /** How many calls the rates would have allowed in one counting window at this pace. */
  #allowance(): number {
    const shares = this.#policy.rates.map(({ limit, windowUs }) => (limit * this.#aimd.windowUs) / windowUs);
    return Math.floor(Math.min(...shares) * this.multiplier);
  }

  #rebuild(): void {
    this.windows = this.#policy.windows.map((window, index) => {
      const windowUs = this.#policy.rates[index]?.windowUs ?? window.spanUs;
      return { ...window, spanUs: Math.ceil(windowUs / this.multiplier) + this.guardUs };
    });
  }
}

function startOf({ enabled, maxMultiplier }: AimdPolicy): number {
  return enabled ? maxMultiplier : 1;
}
