import { type AimdPolicy, isUndecided, nextMultiplier } from "../core/limits/aimd.ts";
import { decayedGuardUs, evenSpacingUs, heavySpacingUs, MAX_GUARD_US, widenedGuardUs } from "../core/limits/guard.ts";
import type { Window } from "../core/limits/window-log.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import { shortestWindow } from "./first-windows.ts";

/** A policy, with the spacing of a smooth key if it does not follow from the rates alone. */
export interface PacedPolicy extends BudgetPolicy {
  /** Of all processes together, also in a share of the policy. */
  readonly evenUs?: number | undefined;
}

/** One change of pace, for events. */
export interface PaceChange {
  readonly what: "multiplier" | "guard_ms" | "shape";
  readonly old: number | string;
  readonly new: number | string;
  readonly reason: string;
}

/** What is known about a throttled response. */
export interface ThrottleContext {
  /**
   * True if the server has just announced a lower limit, which requests in flight could not keep. True also for a 5xx
   * with Retry-After, which is an outage. @default false
   */
  readonly isExplained?: boolean;
  /**
   * The request was the only one in flight in the second or third window (law L12). No delay of another request
   * explains its throttle, so one throttle is enough to switch to even spacing. @default false
   */
  readonly isSingle?: boolean;
}

/** How much a key has sent. */
export interface KeyUse {
  /** Units that it has sent or granted since it exists. */
  readonly sentUnits: number;
  /** The number of processes that share its limits, this one included. */
  readonly processes: number;
}

/** This many throttles, each within an hour of the one before, switch a key to even spacing. */
const SMOOTH_AFTER = 2;
const CALM_US = 3_600_000_000;
const NO_THROTTLES = "no throttled responses";

/**
 * The learned pace of a key: the multiplier of law L9, the guard and the shape of law L12. It is kept in memory only; a
 * new process starts from the policy.
 */
export class Pace {
  multiplier: number;
  guardUs: number;
  isSmooth: boolean;
  /** The windows of the policy, stretched by the multiplier and widened by the guard. */
  windows: readonly Window[];
  #policy: PacedPolicy;
  #aimd: AimdPolicy;
  #calls = 0;
  #throttled = 0;
  /** `KeyUse.sentUnits` when the counting window began; undefined before the first response. */
  #sentBefore: number | undefined;
  /** Time of the last response. */
  #lastUs = Number.NEGATIVE_INFINITY;
  #countingSinceUs: number;
  #widenedUs = Number.NEGATIVE_INFINITY;
  /** Time of the last throttled response, or of the last decay of the guard. */
  #calmSinceUs = Number.NEGATIVE_INFINITY;
  /** Throttles that no announced limit and no outage explains, each within an hour of the one before. */
  #unexplained = 0;
  /** Time of the last one. */
  #unexplainedUs = Number.NEGATIVE_INFINITY;

  constructor(policy: PacedPolicy, aimd: AimdPolicy, nowUs: number) {
    this.#policy = policy;
    this.#aimd = aimdOf(policy, aimd);
    this.multiplier = startMultiplier(this.#aimd);
    this.guardUs = policy.guardUs;
    this.isSmooth = policy.spacingUs > 0;
    this.windows = policy.windows;
    this.#countingSinceUs = nowUs;
    if (this.multiplier !== 1) this.#rebuild();
  }

  /** Whether a key with this policy is slower than its rates from the first request on (`max_multiplier` below 1). */
  static isSlowFromStart(policy: PacedPolicy, aimd: AimdPolicy): boolean {
    return startMultiplier(aimdOf(policy, aimd)) !== 1;
  }

  get spacingUs(): number {
    if (!this.isSmooth) return 0;
    const { rates, spacingUs, evenUs, processes = 1 } = this.#policy;
    const learnedUs = evenUs === undefined ? evenSpacingUs(rates) : evenUs * processes;
    return Math.ceil((spacingUs > 0 ? spacingUs : learnedUs) / this.multiplier);
  }

  /** Applies another policy and keeps what was learned. The guard is never narrower than the policy's. */
  reload(policy: PacedPolicy, aimd: AimdPolicy): void {
    const wasSmoothByPolicy = this.#policy.spacingUs > 0;
    this.#policy = policy;
    this.#aimd = aimdOf(policy, aimd);
    const { enabled, minMultiplier, maxMultiplier } = this.#aimd;
    this.guardUs = Math.max(this.guardUs, policy.guardUs);
    this.isSmooth = policy.spacingUs > 0 || (this.isSmooth && !wasSmoothByPolicy);
    this.multiplier = enabled ? Math.min(maxMultiplier, Math.max(minMultiplier, this.multiplier)) : 1;
    this.#rebuild();
  }

  /** Counts one response. A throttle without explanation also widens the guard, and may switch to even spacing. */
  record(
    isThrottled: boolean,
    nowUs: number,
    use: KeyUse,
    { isExplained = false, isSingle = false }: ThrottleContext = {},
  ): readonly PaceChange[] {
    const changes = this.tick(nowUs, use);
    this.#calls += 1;
    this.#lastUs = nowUs;
    if (!isThrottled) return changes;
    this.#throttled += 1;
    this.#calmSinceUs = nowUs;
    if (isExplained) return changes;
    this.#unexplained = isSingle ? SMOOTH_AFTER : this.#unexplainedAt(nowUs) + 1;
    this.#unexplainedUs = nowUs;
    return [...changes, ...this.#widen(nowUs)];
  }

  /** Evaluates a counting window that has ended, and narrows the guard after an hour without throttles. */
  tick(nowUs: number, use: KeyUse): readonly PaceChange[] {
    const changes: PaceChange[] = [...this.#decayGuard(nowUs)];
    this.#sentBefore ??= use.sentUnits;
    const elapsedUs = nowUs - this.#countingSinceUs;
    if (elapsedUs < this.#aimd.windowUs) return changes;
    const seen = { calls: this.#calls, throttled: this.#throttled, used: this.#usedShare(elapsedUs, use) };
    if (isUndecided(seen) && !this.#isIdle(nowUs)) return changes;
    this.#sentBefore = use.sentUnits;
    this.#calls = 0;
    this.#throttled = 0;
    this.#countingSinceUs = nowUs;
    if (!this.#aimd.enabled) return changes;
    const old = this.multiplier;
    this.multiplier = nextMultiplier(this.#aimd, old, seen);
    if (this.multiplier === old) return changes;
    this.#rebuild();
    const reason = this.multiplier < old ? `${seen.throttled} of ${seen.calls} throttled` : NO_THROTTLES;
    return [...changes, { what: "multiplier", old, new: this.multiplier, reason }];
  }

  /** True if a new `Pace` would be the same, so that it may be evicted (law L11). */
  isNeutral(nowUs: number): boolean {
    const isAsPolicy =
      this.multiplier === startMultiplier(this.#aimd) &&
      decayedGuardUs(this.guardUs, this.#policy.guardUs, nowUs - this.#calmSinceUs) === this.#policy.guardUs &&
      (this.isSmooth || this.#unexplainedAt(nowUs) === 0) &&
      this.isSmooth === this.#policy.spacingUs > 0;
    const isNotCounting = this.#calls === 0 || nowUs - this.#countingSinceUs >= this.#aimd.windowUs;
    // A counting window that has ended and is not evaluated yet may still slow the key down.
    return isAsPolicy && isNotCounting && !(this.#aimd.enabled && this.#throttled > 0 && !this.#isIdle(nowUs));
  }

  #unexplainedAt(nowUs: number): number {
    return nowUs - this.#unexplainedUs < CALM_US ? this.#unexplained : 0;
  }

  /** No response for so long that the counts say nothing about the server now. */
  #isIdle(nowUs: number): boolean {
    const longestUs = Math.max(this.#aimd.windowUs, ...this.windows.map(({ spanUs }) => spanUs));
    return nowUs - this.#lastUs >= 2 * longestUs;
  }

  /**
   * Several throttles of one burst are one event, so the guard widens at most once per shortest window. The second
   * throttle, even of the same burst, switches to even spacing. Jitter causes single throttles. Several throttles show
   * a server that counts with two buckets.
   */
  #widen(nowUs: number): readonly PaceChange[] {
    const changes: PaceChange[] = [];
    const reason = "429 although the rate limit was kept";
    if (this.#unexplained >= SMOOTH_AFTER && !this.isSmooth && this.windows.length > 0) {
      this.isSmooth = true;
      changes.push({ what: "shape", old: "burst", new: "smooth", reason });
    }
    const shortestUs = Math.min(...this.windows.map(({ spanUs }) => spanUs));
    if (nowUs - this.#widenedUs < shortestUs || this.guardUs >= MAX_GUARD_US) return changes;
    this.#widenedUs = nowUs;
    const old = this.guardUs / 1000;
    this.guardUs = widenedGuardUs(this.guardUs);
    this.#rebuild();
    changes.push({ what: "guard_ms", old, new: this.guardUs / 1000, reason });
    return changes;
  }

  #decayGuard(nowUs: number): readonly PaceChange[] {
    const decayedUs = decayedGuardUs(this.guardUs, this.#policy.guardUs, nowUs - this.#calmSinceUs);
    if (decayedUs >= this.guardUs) return [];
    const old = this.guardUs / 1000;
    this.guardUs = decayedUs;
    this.#calmSinceUs = nowUs;
    this.#rebuild();
    return [{ what: "guard_ms", old, new: decayedUs / 1000, reason: NO_THROTTLES }];
  }

  /**
   * What the key has used in the counting windows that have ended: of the window or the spacing, at this pace, that it used
   * most. The limits of all processes are divided equally.
   */
  #usedShare(elapsedUs: number, { sentUnits, processes }: KeyUse): number {
    const countedUs = Math.floor(elapsedUs / this.#aimd.windowUs) * this.#aimd.windowUs;
    // Not every caller reports each answer, and a request may use several units.
    const units = Math.max(this.#calls, sentUnits - (this.#sentBefore ?? sentUnits));
    const ofWindows = this.windows.map(({ limit, spanUs }) => (units * spanUs) / limit);
    const limit = shortestWindow(this.windows)?.limit ?? 1;
    const spacingUs = heavySpacingUs(this.spacingUs, limit, units / Math.max(1, this.#calls));
    return (processes * Math.max(this.#calls * spacingUs, ...ofWindows)) / countedUs;
  }

  #rebuild(): void {
    this.windows = this.#policy.windows.map((window, index) => {
      const windowUs = this.#policy.rates[index]?.windowUs ?? window.spanUs;
      return { ...window, spanUs: Math.ceil(windowUs / this.multiplier) + this.guardUs };
    });
  }
}

/** The entry of a host or service may switch AIMD on or off for itself. */
function aimdOf(policy: PacedPolicy, aimd: AimdPolicy): AimdPolicy {
  const { isAdaptive = aimd.enabled } = policy;
  return isAdaptive === aimd.enabled ? aimd : { ...aimd, enabled: isAdaptive };
}

function startMultiplier({ enabled, maxMultiplier }: AimdPolicy): number {
  return enabled ? maxMultiplier : 1;
}
