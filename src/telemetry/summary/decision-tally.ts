import { callOutcomeOf } from "../call-outcome.ts";
import type { TelemetryEvent } from "../events.ts";
import { queueWaitMs } from "../metric-collector.ts";
import type { DecisionSummary } from "./run-summary.ts";

/** Bounds the memory; further settings are counted together. Each limit that a server announces is a setting. */
const SETTINGS_MAX = 1000;
const OTHER_SETTINGS = "(other settings)";

type DecisionCounts = { -readonly [Key in Exclude<keyof DecisionSummary, "decidedBy">]: number };

/** Counts waits and refusals by the setting that decided them. */
export class DecisionTally {
  readonly #settings = new Map<string, DecisionCounts>();

  take(event: TelemetryEvent): void {
    if (event.event_type === "http_attempt" && event.decided_by !== undefined)
      this.#add(event.decided_by, 1, queueWaitMs(event) - event.jitter_wait_ms, 0);
    else if (
      event.event_type === "http_request" &&
      event.decided_by !== undefined &&
      callOutcomeOf(event) === "refused"
    )
      this.#add(event.decided_by, event.unsent_wait_ms > 0 ? 1 : 0, event.unsent_wait_ms, 1);
  }

  /** Sorted by the sum of the waits, longest first. */
  summaries(): readonly DecisionSummary[] {
    return Array.from(this.#settings, ([decidedBy, counts]) => ({ decidedBy, ...counts })).sort(
      (a, b) => b.waitMs - a.waitMs || b.refusals - a.refusals || (a.decidedBy < b.decidedBy ? -1 : 1),
    );
  }

  #add(setting: string, waits: number, waitMs: number, refusals: number): void {
    const name = this.#settings.has(setting) || this.#settings.size < SETTINGS_MAX ? setting : OTHER_SETTINGS;
    const counts = this.#settings.get(name) ?? { waits: 0, waitMs: 0, refusals: 0 };
    counts.waits += waits;
    counts.waitMs += waitMs;
    counts.refusals += refusals;
    this.#settings.set(name, counts);
  }
}
