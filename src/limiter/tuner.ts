import type { Announcement } from "../core/limits/ratelimit-fields.ts";
import type { Time } from "../time/time.ts";
import type { Lane } from "./budget.ts";
import type { Answer } from "./grant.ts";
import { Learned, type LearnedChange } from "./learned-limits.ts";
import type { GateTeller } from "./limiter-emitter.ts";
import { Pace, type PaceChange } from "./pace.ts";
import type { Lanes } from "./role-budgets.ts";
import type { Turnstile } from "./scheduler.ts";
import { impossible } from "./weight.ts";

/**
 * Keeps every lane at the pace its server asks for: by its answers (laws L9, L12), by what it announces (law L10), and
 * by a hold. Whoever waits is reckoned anew with each change.
 */
export class Tuner {
  readonly #lanes: Lanes;
  readonly #time: Time;
  readonly #teller: GateTeller;
  readonly #counted: Turnstile;
  readonly #uncounted: Turnstile;

  constructor(lanes: Lanes, time: Time, teller: GateTeller, counted: Turnstile, uncounted: Turnstile) {
    this.#lanes = lanes;
    this.#time = time;
    this.#teller = teller;
    this.#counted = counted;
    this.#uncounted = uncounted;
  }

  /** Asked for every answer, and nearly always there is nothing to do. */
  answered(lane: Lane, { isThrottled, announced }: Answer): void {
    // What is announced holds before anybody is let through because the pace has changed.
    if (announced !== undefined && announced.length > 0) this.#heed(lane, announced);
    this.record(lane, isThrottled);
  }

  /** Counts an answer, for the pace of its lane. */
  record(asked: Lane, isThrottled: boolean): void {
    const { aimd } = this.#lanes;
    if (!isThrottled && asked.pace === undefined && !aimd.enabled) return;
    const lane = this.#lanes.current(asked);
    if (lane === undefined) return;
    const nowUs = this.#time.monotonicUs();
    lane.pace ??= new Pace(lane.policy, aimd, nowUs);
    this.#adopt(lane, lane.pace.record(isThrottled, nowUs));
  }

  /** Ends the counting windows that are over. */
  tick(): void {
    const nowUs = this.#time.monotonicUs();
    for (const lane of this.#lanes) if (lane.pace !== undefined) this.#adopt(lane, lane.pace.tick(nowUs));
  }

  /** Sends nothing of this lane before `ms` from now; the later of two holds counts. */
  hold(lane: Lane, ms: number): void {
    if (!holdFor(lane, ms, this.#time.monotonicUs())) return;
    this.#changed(lane);
    this.#teller.held(lane, ms);
  }

  /** Everything an answer announces is in force before anybody is let through, or told. */
  #heed(asked: Lane, announced: readonly Announcement[]): void {
    const lane = this.#lanes.current(asked);
    if (lane === undefined) return;
    const nowUs = this.#time.monotonicUs();
    const heldMs = spentForMs(announced);
    const isHeld = heldMs > 0 && holdFor(lane, heldMs, nowUs);
    const changes = this.#learn(lane, announced, nowUs);
    if (!isHeld && changes.length === 0) return;
    if (changes.length > 0) this.#dismiss(lane);
    this.#changed(lane);
    if (isHeld) this.#teller.held(lane, heldMs);
    this.#teller.learned(lane, changes);
  }

  #learn(lane: Lane, announced: readonly Announcement[], nowUs: number): readonly LearnedChange[] {
    const learned = lane.learned ?? new Learned(lane.policy);
    const changes = learned.hear(announced, lane.hasKeptPolicy, nowUs);
    if (changes.length === 0) return changes;
    lane.learn(learned, this.#lanes.aimd);
    return changes;
  }

  /** Those whom the lane can never grant any more: to wait on would be for ever. */
  #dismiss(lane: Lane): void {
    for (const waiter of this.#counted.lineOf(lane)?.everybody() ?? []) {
      // Sending one away may have let others through.
      const error = waiter.hasLeft ? undefined : impossible(waiter.units, lane);
      if (error === undefined) continue;
      this.#counted.leave(waiter);
      waiter.refused(error);
    }
  }

  #adopt(lane: Lane, changes: readonly PaceChange[]): void {
    if (changes.length === 0) return;
    this.#changed(lane);
    this.#teller.paced(lane, changes);
  }

  #changed(lane: Lane): void {
    for (const turnstile of [this.#counted, this.#uncounted]) {
      turnstile.paceChanged(lane);
      turnstile.pump();
    }
  }
}

/** False when it is held for longer already. */
function holdFor(lane: Lane, ms: number, nowUs: number): boolean {
  const untilUs = nowUs + Math.ceil(ms * 1000);
  if (untilUs <= lane.holdUntilUs) return false;
  lane.holdUntilUs = untilUs;
  return true;
}

/** How long nothing is left of some quota; 0 for now. NCBI sends a zero without a reset with ordinary answers. */
function spentForMs(announced: readonly Announcement[]): number {
  return announced.reduce((ms, { remaining, resetMs = 0 }) => (remaining === 0 ? Math.max(ms, resetMs) : ms), 0);
}
