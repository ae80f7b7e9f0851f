import type { CircuitState } from "../../breaker/breaker-events.ts";
import { type BreakerOpening, cooldownKey } from "../breaker-openings.ts";
import { CALL_OUTCOMES, type CallOutcome, callOutcomeOf } from "../call-outcome.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import { queueWaitMs } from "../metric-collector.ts";
import { type BreakerPeriod, HostTrack, STEPS } from "./host-track.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";

/** One host over time, in equal steps. */
export interface HostTimeline {
  readonly host: string;
  readonly calls: number;
  /** Answers with status 429 or 503, every attempt counted. */
  readonly throttles: number;
  readonly outcomes: Readonly<Record<CallOutcome, readonly number[]>>;
  /** The longest wait in each step: of attempts that ended in it, and of calls that ended without one. */
  readonly waitMs: readonly number[];
  readonly periods: readonly BreakerPeriod[];
}

/** All hosts on one time axis. */
export interface RunTimeline {
  readonly fromMs: number;
  readonly stepMs: number;
  readonly hosts: readonly HostTimeline[];
}

const FIRST_STEP_MS = 50;
/** Further hosts are charted together. */
export const CHARTED_HOSTS_MAX = 256;

/** Collects the timelines of all hosts. The steps double when a run gets too long for them. */
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
    switch (event.event_type) {
      case "http_request": {
        if (event.background) return;
        const track = this.#track(event.final_host);
        const counts = track.outcomes[callOutcomeOf(event)];
        const step = this.#stepOf(ts);
        track.calls += 1;
        counts[step] = (counts[step] ?? 0) + 1;
        this.#addWait(event.final_host, ts, event.unsent_wait_ms);
        return;
      }
      case "http_attempt":
        this.#addWait(event.host, ts, queueWaitMs(event));
        if (event.status === 429 || event.status === 503) this.#track(event.host).throttles += 1;
        return;
      case "breaker_cooldown_set": {
        const blocker = cooldownBlocker(event);
        if (opening === undefined) this.#track(event.host).moveEnd(blocker, event.until);
        else {
          const { reason: about, untilMs: toMs } = opening;
          this.#track(event.host).addPeriod({ kind: "cooldown", fromMs: ts, toMs, about, blocker });
        }
        return;
      }
      case "breaker_cooldown_ended":
        this.#track(event.host).end(cooldownBlocker(event), ts);
        return;
      case "breaker_state_change":
        if (event.host !== undefined)
          this.#circuitChanged(event.host, event.role ?? "", event.new, ts, event.reset_timeout_s);
    }
  }

  /** Hosts with the most calls first. */
  timeline(): RunTimeline {
    const fromMs = this.#fromMs ?? 0;
    const steps = Math.min(STEPS, Math.floor((this.#lastMs - fromMs) / this.#stepMs) + 1);
    const hosts = Array.from(this.#tracks.values(), ({ host, calls, throttles, outcomes, waitMs, periods }) => ({
      host,
      calls,
      throttles,
      outcomes: Object.fromEntries(
        CALL_OUTCOMES.map(outcome => [outcome, Array.from(outcomes[outcome].subarray(0, steps))]),
      ) as Record<CallOutcome, number[]>,
      waitMs: Array.from(waitMs.subarray(0, steps)),
      periods: periods.map(({ blocker, ...period }) => ({ ...period, toMs: Math.min(period.toMs, this.#lastMs) })),
    }));
    hosts.sort((a, b) => b.calls - a.calls || b.periods.length - a.periods.length);
    return { fromMs, stepMs: this.#stepMs, hosts };
  }

  /** An open circuit changes its state only at the next call; the chart shows it as open until its reset time. */
  #circuitChanged(host: string, role: string, state: CircuitState, ts: number, resetS: number): void {
    const track = this.#track(host);
    const blocker = `circuit ${host} ${role}`;
    if (state === "closed") track.end(blocker, ts);
    else {
      const toMs = state === "open" ? ts + resetS * 1000 : Number.POSITIVE_INFINITY;
      track.addPeriod({ kind: state, fromMs: ts, toMs, about: role, blocker });
    }
  }

  #addWait(host: string, ts: number, ms: number): void {
    const { waitMs } = this.#track(host);
    const step = this.#stepOf(ts);
    waitMs[step] = Math.max(waitMs[step] ?? 0, ms);
  }

  /** An event from before the first one counts in the first step. */
  #stepOf(ts: number): number {
    return Math.max(0, Math.floor((ts - (this.#fromMs ?? ts)) / this.#stepMs));
  }

  #track(host: string): HostTrack {
    const known = this.#tracks.get(host);
    if (known !== undefined) return known;
    if (this.#tracks.size >= CHARTED_HOSTS_MAX && host !== OTHER_HOSTS) return this.#track(OTHER_HOSTS);
    const made = new HostTrack(host);
    this.#tracks.set(host, made);
    return made;
  }
}

/** Hosts beyond the charted ones share a track, so the name contains the host. */
function cooldownBlocker(event: EventOf<"breaker_cooldown_set"> | EventOf<"breaker_cooldown_ended">): string {
  return `cooldown ${cooldownKey(event)}`;
}
