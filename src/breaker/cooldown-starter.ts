import type { CircuitPolicy } from "../core/breaker/circuit.ts";
import { wallDeadlineMs } from "../core/breaker/deadline.ts";
import type { OpenReason } from "../errors.ts";
import type { Time } from "../time/time.ts";
import type { BreakerChange, ChangeOrigin } from "./breaker-change.ts";
import type { BreakerEmitter } from "./breaker-emitter.ts";
import type { BreakerTable } from "./breaker-table.ts";
import type { HostBreaker } from "./host-breaker.ts";

/**
 * Starts the cooldowns of a host: for a Retry-After, for too many failures in the rolling window, for an operator.
 * `lastPermit` is the number of the last permit issued: only the success of a later one may end the cooldown (law B5).
 */
export class CooldownStarter {
  readonly #table: BreakerTable;
  readonly #time: Time;
  readonly #emitter: BreakerEmitter;
  readonly #record: (change: BreakerChange) => void;

  constructor(table: BreakerTable, time: Time, emitter: BreakerEmitter, record: (change: BreakerChange) => void) {
    this.#table = table;
    this.#time = time;
    this.#emitter = emitter;
    this.#record = record;
  }

  /** Lasts as long as the host asked, at most `retry_after_cap_s`. Repeated long values raise the reset timeout. */
  startForRetryAfter(host: HostBreaker, policy: CircuitPolicy, retryAfterMs: number, lastPermit: number): void {
    const { isAdaptive, retryAfterCapMs } = this.#table.policies;
    const ms = Math.min(retryAfterMs, retryAfterCapMs(host.name));
    this.start(host, ms, "retry-after", lastPermit);
    const oldUs = Math.max(policy.resetUs, host.learnedResetUs);
    if (isAdaptive && host.learnReset(ms * 1000, policy.resetUs)) {
      this.#emitter.resetRaised(host.name, oldUs, host.learnedResetUs);
    }
  }

  /** Counts a failure in the rolling window, and starts a cooldown at the threshold (law B6). */
  countFailure(host: HostBreaker, nowUs: number, lastPermit: number): void {
    const { enabled, threshold, windowUs, cooldownMs } = this.#table.policies.rollingWindow;
    if (enabled && host.failures.add(nowUs, threshold, windowUs))
      this.start(host, cooldownMs, "rolling-window", lastPermit);
  }

  start(host: HostBreaker, ms: number, reason: OpenReason, lastPermit: number, origin: ChangeOrigin = "local"): void {
    const clocks = { monotonicUs: this.#time.monotonicUs(), wallMs: this.#time.wallMs() };
    const untilUs = clocks.monotonicUs + Math.ceil(ms * 1000);
    if (!host.cooldowns.set({ untilUs, reason, afterPermit: lastPermit })) return;
    this.#record({ kind: "cooldown", origin, blocker: host, untilUs, reason });
    this.#emitter.cooled(host.name, wallDeadlineMs(untilUs, clocks), reason);
  }
}
