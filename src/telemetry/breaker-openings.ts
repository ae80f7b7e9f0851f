import type { OpenReason } from "../errors.ts";
import type { Role } from "../policy/roles.ts";
import type { TelemetryEvent } from "./events.ts";

/** A circuit opened, or a cooldown of a host began. */
export interface BreakerOpening {
  /** `resolver <name>` for the circuit of a resolver. */
  readonly host: string;
  readonly reason: OpenReasonKind;
  /** When it ends, in epoch ms, unless it ends earlier. */
  readonly untilMs: number;
  /** False when another process has opened it: that process counts it. Orders of an operator are counted by each process. */
  readonly isCounted: boolean;
}

/** Why a circuit opened or a cooldown began, without the text that an operator has given. */
export type OpenReasonKind = "failures" | "retry-after" | "rolling-window" | "slow-calls" | "cli-open";
export const REASONS: readonly OpenReasonKind[] = [
  "failures",
  "retry-after",
  "rolling-window",
  "slow-calls",
  "cli-open",
];

/** The name of a cooldown: an operator's order for one role is a cooldown of its own beside that of the host. */
export function cooldownKey({ host, role }: { readonly host: string; readonly role?: Role | undefined }): string {
  return role === undefined ? host : `${host} ${role}`;
}

/** Bounds the memory. Beyond this, a cooldown that is extended may be counted as a new one. */
const COOLDOWNS_MAX = 100_000;

/** Finds the openings among the events. A cooldown that extends a running one is not an opening. */
export class BreakerOpenings {
  readonly #cooldownEndMs = new Map<string, number>();

  of(event: TelemetryEvent): BreakerOpening | undefined {
    switch (event.event_type) {
      case "breaker_state_change": {
        if (event.new !== "open") return undefined;
        const host = event.host ?? `resolver ${event.resolver ?? ""}`;
        const untilMs = event.ts + event.reset_timeout_s * 1000;
        return { host, reason: "failures", untilMs, isCounted: event.from_peer !== true };
      }
      case "breaker_cooldown_ended":
        this.#cooldownEndMs.delete(cooldownKey(event));
        return undefined;
      case "breaker_cooldown_set": {
        const { host, ts, until, reason } = event;
        const key = cooldownKey(event);
        const isRunning = (this.#cooldownEndMs.get(key) ?? 0) > ts;
        if (this.#cooldownEndMs.size >= COOLDOWNS_MAX) this.#forget(ts);
        this.#cooldownEndMs.set(key, until);
        if (isRunning) return undefined;
        const kind = reasonKind(reason);
        return { host, reason: kind, untilMs: until, isCounted: event.from_peer !== true || kind === "cli-open" };
      }
      default:
        return undefined;
    }
  }

  #forget(nowMs: number): void {
    for (const [key, untilMs] of this.#cooldownEndMs) if (untilMs <= nowMs) this.#cooldownEndMs.delete(key);
    if (this.#cooldownEndMs.size >= COOLDOWNS_MAX) this.#cooldownEndMs.clear();
  }
}

/** `cli-open:maintenance` becomes `cli-open`. An unknown reason of a newer version counts as `failures`. */
function reasonKind(reason: OpenReason | string | undefined): OpenReasonKind {
  const kind = reason?.replace(/:.*/s, "");
  return REASONS.find(known => known === kind) ?? "failures";
}
