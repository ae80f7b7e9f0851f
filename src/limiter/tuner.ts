import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import type { Time } from "../time/time.ts";
import type { RoleBudget } from "./budget.ts";
import type { ServerFeedback } from "./grant.ts";
import { type LearnedChange, LearnedLimits } from "./learned-limits.ts";
import type { LimiterEmitter } from "./limiter-emitter.ts";
import { Pace, type PaceChange } from "./pace.ts";
import type { RoleBudgets } from "./role-budgets.ts";
import type { Scheduler } from "./scheduler.ts";
import { impossibleWeight } from "./weight.ts";

/**
 * Keeps every lane at the pace its server asks for: by its answers (laws L9, L12), by what it announces (law L10), and
 * by a hold. Whoever waits is reckoned anew with each change.
 */
export class Tuner {
  readonly #roleBudgets: RoleBudgets;
  readonly #time: Time;
  readonly #emitter: LimiterEmitter;
  readonly #counted: Scheduler;
  readonly #uncounted: Scheduler;

  constructor(roleBudgets: RoleBudgets, time: Time, emitter: LimiterEmitter, counted: Scheduler, uncounted: Scheduler) {
    this.#roleBudgets = roleBudgets;
    this.#time = time;
    this.#emitter = emitter;
    this.#counted = counted;
    this.#uncounted = uncounted;
  }

  /** Asked for every answer, and nearly always there is nothing to do. */
  recordResponse(roleBudget: RoleBudget, { isThrottled, announced }: ServerFeedback): void {
    // What is announced holds before anybody is let through because the pace has changed.
    if (announced !== undefined && announced.length > 0) this.#applyAnnounced(roleBudget, announced);
    this.record(roleBudget, isThrottled);
  }

  /** Counts an answer, for the pace of its lane. */
  record(requested: RoleBudget, isThrottled: boolean): void {
    const { aimd } = this.#roleBudgets;
    if (!isThrottled && requested.pace === undefined && !aimd.enabled) return;
    const roleBudget = this.#roleBudgets.current(requested);
    if (roleBudget === undefined) return;
    const nowUs = this.#time.monotonicUs();
    roleBudget.pace ??= new Pace(roleBudget.policy, aimd, nowUs);
    this.#applyPace(roleBudget, roleBudget.pace.record(isThrottled, nowUs));
  }

  /** Ends the counting windows that are over. */
  tick(): void {
    const nowUs = this.#time.monotonicUs();
    for (const roleBudget of this.#roleBudgets)
      if (roleBudget.pace !== undefined) this.#applyPace(roleBudget, roleBudget.pace.tick(nowUs));
  }

  /** Sends nothing of this lane before `ms` from now; the later of two holds counts. */
  hold(roleBudget: RoleBudget, ms: number): void {
    if (!holdFor(roleBudget, ms, this.#time.monotonicUs())) return;
    this.#reschedule(roleBudget);
    this.#emitter.held(roleBudget, ms);
  }

  /** Everything an answer announces is in force before anybody is let through, or told. */
  #applyAnnounced(requested: RoleBudget, announced: readonly AnnouncedLimit[]): void {
    const roleBudget = this.#roleBudgets.current(requested);
    if (roleBudget === undefined) return;
    const nowUs = this.#time.monotonicUs();
    const heldMs = exhaustedForMs(announced);
    const isHeld = heldMs > 0 && holdFor(roleBudget, heldMs, nowUs);
    const changes = this.#learn(roleBudget, announced, nowUs);
    if (!isHeld && changes.length === 0) return;
    if (changes.length > 0) this.#refuseImpossible(roleBudget);
    this.#reschedule(roleBudget);
    if (isHeld) this.#emitter.held(roleBudget, heldMs);
    this.#emitter.learned(roleBudget, changes);
  }

  #learn(roleBudget: RoleBudget, announced: readonly AnnouncedLimit[], nowUs: number): readonly LearnedChange[] {
    const learned = roleBudget.learned ?? new LearnedLimits(roleBudget.policy);
    const changes = learned.apply(announced, roleBudget.hasUnchangedRates, nowUs);
    if (changes.length === 0) return changes;
    roleBudget.learn(learned, this.#roleBudgets.aimd);
    return changes;
  }

  /** Those whom the lane can never grant any more: to wait on would be for ever. */
  #refuseImpossible(roleBudget: RoleBudget): void {
    for (const waiter of this.#counted.queueOf(roleBudget)?.all() ?? []) {
      // Sending one away may have let others through.
      const error = waiter.hasLeft ? undefined : impossibleWeight(waiter.units, roleBudget);
      if (error === undefined) continue;
      this.#counted.leave(waiter);
      waiter.refused(error);
    }
  }

  #applyPace(roleBudget: RoleBudget, changes: readonly PaceChange[]): void {
    if (changes.length === 0) return;
    this.#reschedule(roleBudget);
    this.#emitter.paced(roleBudget, changes);
  }

  #reschedule(roleBudget: RoleBudget): void {
    for (const scheduler of [this.#counted, this.#uncounted]) {
      scheduler.paceChanged(roleBudget);
      scheduler.serveReady();
    }
  }
}

/** False when it is held for longer already. */
function holdFor(roleBudget: RoleBudget, ms: number, nowUs: number): boolean {
  const untilUs = nowUs + Math.ceil(ms * 1000);
  if (untilUs <= roleBudget.holdUntilUs) return false;
  roleBudget.holdUntilUs = untilUs;
  return true;
}

/** How long nothing is left of some quota; 0 for now. NCBI sends a zero without a reset with ordinary answers. */
function exhaustedForMs(announced: readonly AnnouncedLimit[]): number {
  return announced.reduce((ms, { remaining, resetMs = 0 }) => (remaining === 0 ? Math.max(ms, resetMs) : ms), 0);
}
