import { formatWait } from "../core/text/duration.ts";
import type { StoreError } from "../errors.ts";
import { LEASE_MS } from "../stores/store.ts";
import type { Time, Timer } from "../time/time.ts";

/** What calls do while the store does not answer, as the policy says. */
export interface AwayPolicy {
  readonly mode: "share" | "wait" | "refuse";
  /** The largest number of processes that share the store; undefined if the policy does not say. */
  readonly fleetSize: number | undefined;
}

/** The store does not answer. */
export interface StoreAway {
  /**
   * What calls do meanwhile. `share` becomes `wait` for a process that does not know how many share the store. Undefined
   * for a store that shares only breakers.
   */
  readonly mode?: AwayPolicy["mode"];
  /** The number of processes that the limits are divided by; 1 if it is not known. */
  readonly processes: number;
  /** True if calls wait because the number of processes is not known. */
  readonly isUncounted?: boolean;
  /** True if the store answers, but has lost the use of a budget. */
  readonly hasLostData?: boolean;
  /** True if the store was never reached and no retry can succeed: calls are refused, whatever the policy says. */
  readonly isUnusable?: boolean;
  readonly error: StoreError;
}

export interface StoreOutageOptions {
  readonly time: Time;
  readonly random: () => number;
  readonly policy: () => AwayPolicy;
  /** Tries the store again. */
  readonly probe: () => void;
}

/** A store that is away is tried again 250 to 500 ms after the last attempt began. */
export const PROBE_MS = 250;
/** If an attempt took longer than `PROBE_MS`, the next one follows after this pause, or up to twice as long. */
const PROBE_PAUSE_MS = 100;
/** A store that has lost its data answers, so it gets the reports at once, but not more often than this. */
const LOST_AGAIN_US = 1_000_000;
/** The store counts as back only if no other call has failed for this long. */
const QUIET_US = 500_000;

/** Whether the store answers, how many processes share it, and when a store that is away is tried again. */
export class StoreOutage {
  readonly #options: StoreOutageOptions;
  readonly #processCount = new RecentMaximum();
  #away: StoreAway | undefined;
  #contactUs = Number.NEGATIVE_INFINITY;
  #failedUs = Number.NEGATIVE_INFINITY;
  #lostUs = Number.NEGATIVE_INFINITY;
  #probeUs = 0;
  #timer: Timer | undefined;
  #isClosed = false;

  constructor(options: StoreOutageOptions) {
    this.#options = options;
  }

  get away(): StoreAway | undefined {
    return this.#away;
  }

  /** Whether requests are sent without leases, within this process's share of the limits. */
  get isSharing(): boolean {
    return this.#away?.mode === "share";
  }

  /** The store has answered an exchange. `processes` is the number that it has counted. */
  reached(processes: number): void {
    this.#contactUs = this.#options.time.monotonicUs();
    this.#processCount.add(processes, this.#contactUs);
  }

  /**
   * An exchange that began at `beganUs` has failed, or has shown that the store has lost its data. True if the store was
   * not away before.
   */
  failed(error: StoreError, beganUs: number, hasLostData = false): boolean {
    const { time, policy } = this.#options;
    const nowUs = time.monotonicUs();
    const isAnswering = hasLostData && nowUs - this.#lostUs >= LOST_AGAIN_US;
    if (hasLostData) this.#lostUs = nowUs;
    this.#probeUs = isAnswering ? nowUs : Math.max(beganUs + PROBE_MS * 1000, nowUs + PROBE_PAUSE_MS * 1000);
    if (this.#away !== undefined) return false;
    const { mode, fleetSize } = policy();
    // The other processes count this one only within a lease: later, its share is not reserved.
    const isCounted = nowUs - this.#contactUs < LEASE_MS * 1000;
    const processes = isCounted ? Math.max(this.#processCount.at(nowUs), fleetSize ?? 1) : fleetSize;
    const isUnusable = error.isPermanent && this.#contactUs === Number.NEGATIVE_INFINITY;
    const isUncounted = mode === "share" && processes === undefined;
    const modeInForce = isUnusable ? "refuse" : isUncounted ? "wait" : mode;
    this.#away = { mode: modeInForce, processes: processes ?? 1, isUncounted, hasLostData, isUnusable, error };
    return true;
  }

  /** A call of another part of the program has failed. True if the store was not away before. */
  failedElsewhere(error: StoreError): boolean {
    this.#failedUs = this.#options.time.monotonicUs();
    return this.failed(error, this.#failedUs);
  }

  /**
   * Whether the end of an outage may be reported, after an exchange that the store has answered. A server that is out
   * of memory may answer some calls and refuse others: its outage is reported once.
   */
  get isQuiet(): boolean {
    return this.#options.time.monotonicUs() - this.#failedUs >= QUIET_US;
  }

  /** The store is back. */
  end(): void {
    this.#away = undefined;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  isProbeDue(nowUs: number): boolean {
    return nowUs >= this.#probeUs;
  }

  /** Tries the store again soon. `keepsAlive`: requests wait for it, so the program must not end before (law S8). */
  probeLater(keepsAlive: boolean): void {
    if (this.#away === undefined || this.#isClosed) return;
    if (this.#timer !== undefined) {
      if (keepsAlive) this.#timer.ref?.();
      return;
    }
    const { time, random } = this.#options;
    const pauseMs = Math.max(0, this.#probeUs - time.monotonicUs()) / 1000;
    // Up to twice as long, so that the processes do not all try at once.
    this.#probeAfter(pauseMs * (1 + random()), keepsAlive);
  }

  /** The store has answered, but another call has failed a moment ago: the store is asked again `QUIET_US` after that. */
  probeWhenQuiet(keepsAlive: boolean): void {
    if (this.#isClosed) return;
    this.#probeUs = this.#failedUs + QUIET_US;
    this.#timer?.cancel();
    this.#probeAfter((this.#probeUs - this.#options.time.monotonicUs()) / 1000, keepsAlive);
  }

  #probeAfter(ms: number, keepsAlive: boolean): void {
    this.#timer = this.#options.time.setTimer(ms, () => {
      this.#timer = undefined;
      this.#options.probe();
    });
    if (!keepsAlive) this.#timer.unref?.();
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

/**
 * The largest value within the last lease. If a server has evicted its list of processes, the list is complete again
 * when all of them have contacted it. Until then the store counts too few processes.
 */
class RecentMaximum {
  #sinceUs = Number.NEGATIVE_INFINITY;
  #current = 1;
  #previous = 1;

  add(value: number, nowUs: number): void {
    const lengthUs = LEASE_MS * 1000;
    if (nowUs - this.#sinceUs >= lengthUs) {
      this.#previous = nowUs - this.#sinceUs < 2 * lengthUs ? this.#current : 1;
      this.#current = 1;
      this.#sinceUs = nowUs;
    }
    this.#current = Math.max(this.#current, value);
  }

  at(nowUs: number): number {
    return nowUs - this.#sinceUs < 2 * LEASE_MS * 1000 ? Math.max(this.#current, this.#previous) : this.#current;
  }
}

/** One sentence for people when an outage begins. */
export function awayText(away: StoreAway): string {
  const { mode, processes, isUncounted = false, hasLostData = false, isUnusable = false, error } = away;
  if (isUnusable)
    return (
      `the shared store cannot be used: ${error.message}; ` +
      "calls are refused until the store or its configuration is corrected"
    );
  const what = hasLostData ? error.message : `the shared store does not answer: ${error.message}`;
  const until = hasLostData ? "until the processes have reported their use" : "until it is back";
  if (mode === undefined) return `${what}; circuits and cooldowns are not shared ${until}`;
  if (mode === "refuse") return `${what}; calls are refused ${until} (when_store_away: refuse)`;
  if (mode === "share")
    return (
      `${what}; this process uses 1/${processes} of each rate limit ${until}, ` +
      "and calls that need more than that wait (when_store_away: share)"
    );
  const reason = isUncounted ? "the number of processes is not known: set fleet_size" : "when_store_away: wait";
  return `${what}; calls wait ${until} (${reason})`;
}

/** One sentence for people when an outage ends. */
export function backText(awayMs: number): string {
  return `the shared store is used again after ${formatWait(awayMs)}`;
}
