import type { OpenReason } from "../errors.ts";
import type { TelemetryEvent } from "./events.ts";

/** A host, a role of it or a resolver was cut off. */
export interface BreakerOpening {
  /** `resolver <name>` for the circuit of a resolver. */
  readonly host: string;
  readonly reason: OpenReasonKind;
  /** Epoch milliseconds until which it lasts, unless it ends early. */
  readonly untilMs: number;
}

/** An operator's own words are left out. */
export type OpenReasonKind = "failures" | "retry-after" | "rolling-window" | "cli-open";
export const REASONS: readonly OpenReasonKind[] = ["failures", "retry-after", "rolling-window", "cli-open"];

/** More hosts than this that are cut off at once are not told apart from those that come again. */
const HOSTS_MAX = 100_000;

/**
 * Which events are openings. A circuit that opens is one, and so is a cooldown; one that only lengthens a cooldown that
 * runs is not.
 */
export class BreakerOpenings {
  readonly #cooledUntilMs = new Map<string, number>();

  of(event: TelemetryEvent): BreakerOpening | undefined {
    if (event.event_type === "breaker_state_change") {
      if (event.new !== "open") return undefined;
      const host = event.host ?? `resolver ${event.resolver ?? ""}`;
      return { host, reason: "failures", untilMs: event.ts + event.reset_timeout_s * 1000 };
    }
    if (event.event_type === "breaker_cooldown_ended") this.#cooledUntilMs.delete(event.host);
    if (event.event_type !== "breaker_cooldown_set") return undefined;
    const { host, ts, until, reason } = event;
    const isRunning = (this.#cooledUntilMs.get(host) ?? 0) > ts;
    if (this.#cooledUntilMs.size >= HOSTS_MAX) this.#forget(ts);
    this.#cooledUntilMs.set(host, until);
    return isRunning ? undefined : { host, reason: reasonKind(reason), untilMs: until };
  }

  #forget(nowMs: number): void {
    for (const [host, untilMs] of this.#cooledUntilMs) if (untilMs <= nowMs) this.#cooledUntilMs.delete(host);
    if (this.#cooledUntilMs.size >= HOSTS_MAX) this.#cooledUntilMs.clear();
  }
}

/** `cli-open:maintenance` is one of a kind. What a newer version may call it counts as failures. */
function reasonKind(reason: OpenReason | string | undefined): OpenReasonKind {
  const kind = reason?.replace(/:.*/s, "");
  return REASONS.find(known => known === kind) ?? "failures";
}
