import { CALL_OUTCOMES, type CallOutcome } from "../call-outcome.ts";

/** A period in which a circuit was open or half-open, or a host was in cooldown. */
export interface BreakerPeriod {
  readonly kind: "open" | "cooldown" | "half_open";
  readonly fromMs: number;
  toMs: number;
  /** The role of the circuit, or the reason of the cooldown. */
  readonly about: string;
}

/** A period, and the circuit or cooldown that it belongs to. */
interface BlockerPeriod extends BreakerPeriod {
  /** Names a circuit or a cooldown; its periods do not overlap. */
  readonly blocker: string;
}

/** Steps of a timeline. */
export const STEPS = 240;
const PERIODS_MAX = 1000;

/** The calls, waits and breaker periods of one host, in equal steps of time. */
export class HostTrack {
  readonly host: string;
  calls = 0;
  throttles = 0;
  readonly outcomes = Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, new Float64Array(STEPS)])) as Record<
    CallOutcome,
    Float64Array
  >;
  readonly waitMs = new Float64Array(STEPS);
  readonly periods: BlockerPeriod[] = [];
  /** The last period of each blocker, if it is kept. */
  readonly #last = new Map<string, BlockerPeriod>();

  constructor(host: string) {
    this.host = host;
  }

  /** Merges each two steps into one, so that a timeline can cover twice the time. */
  halve(): void {
    for (const outcome of CALL_OUTCOMES) fold(this.outcomes[outcome], (first, second) => first + second);
    fold(this.waitMs, Math.max);
  }

  /** Adds a period, and ends the current one of the same blocker. */
  addPeriod(period: BlockerPeriod): void {
    this.end(period.blocker, period.fromMs);
    if (this.periods.length < PERIODS_MAX) {
      this.periods.push(period);
      this.#last.set(period.blocker, period);
    } else this.#last.delete(period.blocker);
  }

  end(blocker: string, atMs: number): void {
    const last = this.#last.get(blocker);
    if (last !== undefined && last.toMs > atMs) last.toMs = Math.max(last.fromMs, atMs);
  }

  /** The current period of the blocker ends at another time, later or earlier. */
  moveEnd(blocker: string, untilMs: number): void {
    const last = this.#last.get(blocker);
    if (last !== undefined) last.toMs = Math.max(last.fromMs, untilMs);
  }
}

function fold(values: Float64Array, merge: (first: number, second: number) => number): void {
  for (let step = 0; step < STEPS / 2; step += 1)
    values[step] = merge(values[2 * step] ?? 0, values[2 * step + 1] ?? 0);
  values.fill(0, STEPS / 2);
}
