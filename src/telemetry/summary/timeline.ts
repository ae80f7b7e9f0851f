import type { CircuitState } from "../../breaker/breaker-events.ts";
import type { BreakerOpening } from "../breaker-openings.ts";
import { CALL_OUTCOMES, type CallOutcome, callOutcomeOf } from "../call-outcome.ts";
import type { TelemetryEvent } from "../events.ts";

/** For how long something was not as it should be. */
export interface BreakerPeriod {
  readonly kind: "open" | "cooldown" | "half_open";
  readonly fromMs: number;
  toMs: number;
  /** Whose circuit, or why. */
  readonly about: string;
}

/** One host over time, in equal steps. */
export interface HostTimeline {
  readonly host: string;
  readonly calls: number;
  readonly outcomes: Readonly<Record<CallOutcome, readonly number[]>>;
  /** The longest wait of the calls that ended in each step. */
  readonly waitMs: readonly number[];
  readonly periods: readonly BreakerPeriod[];
}

export interface RunTimeline {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly hosts: readonly HostTimeline[];
}

const STEPS = 240;
const FIRST_STEP_MS = 50;
/** Hosts beyond these are charted together. */
const HOSTS_MAX = 256;
const PERIODS_MAX = 1000;
const OTHERS = "(other hosts)";

/** A host's counts and waits. When the run outgrows its steps, each two become one. */
class HostTrack {
  readonly host: string;
  calls = 0;
  readonly outcomes = Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, new Float64Array(STEPS)])) as Record<
    CallOutcome,
    Float64Array
  >;
  readonly waitMs = new Float64Array(STEPS);
  readonly periods: BreakerPeriod[] = [];

  constructor(host: string) {
    this.host = host;
  }

  halve(): void {
    for (const outcome of CALL_OUTCOMES) fold(this.outcomes[outcome], (one, two) => one + two);
    fold(this.waitMs, Math.max);
  }

  /** Something began; what went on under the same name has ended. */
  period(period: BreakerPeriod): void {
    this.end(period.about, period.fromMs);
    if (this.periods.length < PERIODS_MAX) this.periods.push(period);
  }

  end(about: string, atMs: number): void {
    const last = this.periods.findLast(period => period.about === about);
    if (last !== undefined && last.toMs > atMs) last.toMs = Math.max(last.fromMs, atMs);
  }
}

export class TimelineTally {
  readonly #tracks = new Map<string, HostTrack>();
  #fromMs: number | undefined;
  #stepMs = FIRST_STEP_MS;
  #lastMs = 0;

  take(event: TelemetryEvent, opening: BreakerOpening | undefined): void {
    const { ts } = event;
    this.#fromMs ??= ts;
    this.#lastMs = Math.max(this.#lastMs, ts);
    while (ts >= this.#fromMs + STEPS * this.#stepMs) {
      this.#stepMs *= 2;
      for (const track of this.#tracks.values()) track.halve();
    }
    if (opening !== undefined && event.event_type === "breaker_cooldown_set") {
      const { host, reason, untilMs } = opening;
      this.#track(host).period({ kind: "cooldown", fromMs: ts, toMs: untilMs, about: reason });
    }
    switch (event.event_type) {
      case "http_request": {
        const track = this.#track(event.host);
        const step = this.#stepOf(ts);
        track.calls += 1;
        track.outcomes[callOutcomeOf(event)][step] = (track.outcomes[callOutcomeOf(event)][step] ?? 0) + 1;
        track.waitMs[step] = Math.max(track.waitMs[step] ?? 0, event.rate_delay_ms);
        return;
      }
      case "breaker_cooldown_ended":
        for (const { kind, about } of this.#track(event.host).periods)
          if (kind === "cooldown") this.#track(event.host).end(about, ts);
        return;
      case "breaker_cooldown_set":
        if (opening === undefined) this.#lengthen(event.host, event.until);
        return;
      case "breaker_state_change":
        if (event.host !== undefined) this.#changed(event.host, event.role ?? "", event.new, ts, event.reset_timeout_s);
    }
  }

  /** Those with the most calls or breaks first. */
  timeline(): RunTimeline {
    const fromMs = this.#fromMs ?? 0;
    const steps = Math.min(STEPS, Math.floor((this.#lastMs - fromMs) / this.#stepMs) + 1);
    const hosts = Array.from(this.#tracks.values(), ({ host, calls, outcomes, waitMs, periods }) => ({
      host,
      calls,
      outcomes: Object.fromEntries(
        CALL_OUTCOMES.map(outcome => [outcome, Array.from(outcomes[outcome].subarray(0, steps))]),
      ) as Record<CallOutcome, number[]>,
      waitMs: Array.from(waitMs.subarray(0, steps)),
      periods: periods.map(period => ({ ...period, toMs: Math.min(period.toMs, this.#lastMs) })),
    }));
    hosts.sort((a, b) => b.calls - a.calls || b.periods.length - a.periods.length);
    return { fromMs, stepMs: this.#stepMs, hosts };
  }

  /** What waits for its reset is open until somebody looks; for a chart, until its time. */
  #changed(host: string, role: string, state: CircuitState, ts: number, resetS: number): void {
    const track = this.#track(host);
    if (state === "closed") track.end(role, ts);
    else {
      const toMs = state === "open" ? ts + resetS * 1000 : Number.POSITIVE_INFINITY;
      track.period({ kind: state, fromMs: ts, toMs, about: role });
    }
  }

  #lengthen(host: string, untilMs: number): void {
    const last = this.#track(host).periods.findLast(({ kind }) => kind === "cooldown");
    if (last !== undefined) last.toMs = Math.max(last.toMs, untilMs);
  }

  /** An event that comes late, from before the first one, counts for the first step. */
  #stepOf(ts: number): number {
    return Math.max(0, Math.floor((ts - (this.#fromMs ?? ts)) / this.#stepMs));
  }

  #track(host: string): HostTrack {
    const known = this.#tracks.get(host);
    if (known !== undefined) return known;
    if (this.#tracks.size >= HOSTS_MAX && host !== OTHERS) return this.#track(OTHERS);
    const made = new HostTrack(host);
    this.#tracks.set(host, made);
    return made;
  }
}

function fold(values: Float64Array, join: (one: number, two: number) => number): void {
  for (let step = 0; step < STEPS / 2; step += 1) values[step] = join(values[2 * step] ?? 0, values[2 * step + 1] ?? 0);
  values.fill(0, STEPS / 2);
}
