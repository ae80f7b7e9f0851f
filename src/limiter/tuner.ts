import type { AnnouncedLimit } from "../core/limits/ratelimit-fields.ts";
import type { Time } from "../time/time.ts";
import type { ServerFeedback } from "./grant.ts";
import { type LearnedChange, LearnedLimits } from "./learned-limits.ts";
import type { LimiterEmitter } from "./limiter-emitter.ts";
import { type KeyUse, Pace, type PaceChange } from "./pace.ts";
import type { Queues } from "./queues.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { RoleBudgets } from "./role-budgets.ts";

/** A throttled response holds a key without windows for this long. */
const UNLIMITED_HOLD_MS = 1000;
/** A key with hourly or daily windows only must not stop for hours because of one throttled response. */
const MAX_HOLD_MS = 60_000;

/**
 * Adjusts the pace of every key to its server: by its responses (laws L9, L12), by the limits that it announces (law
 * L10), and by holds. `wake` is called after each change, because waiting requests may be ready then.
 */
export class Tuner {
  readonly #roleBudgets: RoleBudgets;
  readonly #time: Time;
  readonly #emitter: LimiterEmitter;
  readonly #queues: Queues;
  readonly #wake: () => void;
  readonly #processes: () => number;

  /** `processes`: the number of processes that share the limits, this one included. */
  constructor(
    roleBudgets: RoleBudgets,
    time: Time,
    emitter: LimiterEmitter,
    queues: Queues,
    wake: () => void,
    processes: () => number,
  ) {
    this.#roleBudgets = roleBudgets;
    this.#time = time;
    this.#emitter = emitter;
    this.#queues = queues;
    this.#wake = wake;
    this.#processes = processes;
  }

  recordResponse(roleBudget: RoleBudget, feedback: ServerFeedback): void {
    const { status = 429, isThrottled, retryAfterMs = 0, announced } = feedback;
    roleBudget.isAnswered = true;
    // First the announced limits and the hold: recording may change the pace and serve waiting requests.
    if (announced !== undefined && announced.length > 0) this.#applyAnnounced(roleBudget, announced);
    if (isThrottled && retryAfterMs <= 0) this.#holdThrottled(roleBudget);
    this.record(roleBudget, isThrottled, status >= 500);
  }

  /**
   * Counts a response for the pace of its key. The common case, nothing learned and nothing to learn, returns at once.
   * `isOutage`: the server could not answer, and said when it can.
   */
  record(requested: RoleBudget, isThrottled: boolean, isOutage = false): void {
    const { aimd } = this.#roleBudgets;
    const { isAdaptive = aimd.enabled } = requested.policy;
    if (!isThrottled && requested.pace === undefined && !isAdaptive) return;
    const roleBudget = this.#roleBudgets.current(requested);
    if (roleBudget === undefined) return;
    const nowUs = this.#time.monotonicUs();
    roleBudget.pace ??= new Pace(roleBudget.policy, aimd, nowUs);
    const isExplained = isThrottled && (isOutage || hasJustTightened(roleBudget, nowUs));
    // The throttled request is still counted as in flight: 1 means that it was the only one.
    const isSingle = roleBudget.isTried && roleBudget.inFlight <= 1;
    const context = { isExplained, isSingle };
    this.#applyPace(roleBudget, roleBudget.pace.record(isThrottled, nowUs, this.#useOf(roleBudget), context));
  }

  /** Evaluates the counting windows that have ended. */
  tick(): void {
    const nowUs = this.#time.monotonicUs();
    for (const roleBudget of this.#roleBudgets) {
      const { pace } = roleBudget;
      if (pace !== undefined) this.#applyPace(roleBudget, pace.tick(nowUs, this.#useOf(roleBudget)));
    }
  }

  /** The share of a process in divided limits is not divided again. */
  #useOf({ log, policy }: RoleBudget): KeyUse {
    return {
      sentUnits: log.written + log.pending,
      processes: policy.undivided === undefined ? this.#processes() : 1,
    };
  }

  /** Sends nothing of this key for `ms` from now. Of two holds the later end counts. */
  hold(roleBudget: RoleBudget, ms: number): void {
    if (!holdFor(roleBudget, ms, this.#time.monotonicUs())) return;
    this.#reschedule(roleBudget);
    this.#emitter.held(roleBudget.name, roleBudget.role, ms);
  }

  /**
   * A throttle without Retry-After holds its key for the shortest window (law B10). While a key is held, only requests
   * that were in flight before are answered: their throttles are part of the same event.
   */
  #holdThrottled(requested: RoleBudget): void {
    const roleBudget = this.#roleBudgets.current(requested);
    if (roleBudget === undefined || roleBudget.holdUntilUs > this.#time.monotonicUs()) return;
    this.hold(roleBudget, throttleHoldMs(roleBudget));
  }

  /** Applies all limits of a response before a waiting request is served or an event is emitted. */
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
    if (isHeld) this.#emitter.held(roleBudget.name, roleBudget.role, heldMs);
    this.#emitter.learned(roleBudget, changes);
  }

  #learn(roleBudget: RoleBudget, announced: readonly AnnouncedLimit[], nowUs: number): readonly LearnedChange[] {
    const learned = roleBudget.learned ?? new LearnedLimits(roleBudget.policy);
    const changes = learned.apply(announced, roleBudget.hasUnchangedRates, nowUs);
    if (changes.length === 0) return changes;
    roleBudget.learn(learned, this.#roleBudgets.aimd);
    roleBudget.learnedFrom = { source: changes[0]?.source ?? "", wallMs: this.#time.wallMs() };
    return changes;
  }

  /** Refuses waiting requests whose weight the new limits can never grant: they would wait for ever. */
  #refuseImpossible(roleBudget: RoleBudget): void {
    const { counted } = this.#queues;
    for (const waiter of counted.queueOf(roleBudget)?.all() ?? []) {
      const error = roleBudget.impossibleCharge(waiter.charge);
      if (error === undefined) continue;
      counted.leave(waiter);
      waiter.refused(error);
    }
  }

  #applyPace(roleBudget: RoleBudget, changes: readonly PaceChange[]): void {
    if (changes.length === 0) return;
    this.#reschedule(roleBudget);
    this.#emitter.paced(roleBudget, changes);
  }

  #reschedule(roleBudget: RoleBudget): void {
    this.#queues.paceChanged(roleBudget);
    this.#wake();
  }
}

/** The shortest window of the key, guard included; at most a minute, and a second for a key without windows. */
function throttleHoldMs({ windows }: RoleBudget): number {
  if (windows.length === 0) return UNLIMITED_HOLD_MS;
  return Math.min(MAX_HOLD_MS, ...windows.map(({ spanUs }) => spanUs / 1000));
}

/** Whether the server announced a lower limit within the last window. */
function hasJustTightened({ learned, windows }: RoleBudget, nowUs: number): boolean {
  if (learned === undefined) return false;
  return nowUs - learned.tightenedUs < Math.min(...windows.map(({ spanUs }) => spanUs));
}

/** False if the budget is already held for longer. */
function holdFor(roleBudget: RoleBudget, ms: number, nowUs: number): boolean {
  const untilUs = nowUs + Math.ceil(ms * 1000);
  if (untilUs <= roleBudget.holdUntilUs) return false;
  roleBudget.holdUntilUs = untilUs;
  return true;
}

/**
 * Time until a used-up quota is reset; 0 if none is. NCBI sends `remaining: 0` without a reset in ordinary responses.
 */
function exhaustedForMs(announced: readonly AnnouncedLimit[]): number {
  return announced.reduce((ms, { remaining, resetMs = 0 }) => (remaining === 0 ? Math.max(ms, resetMs) : ms), 0);
}
