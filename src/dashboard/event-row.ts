import { breakerReasonText } from "../breaker/breaker-reason.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import type { EventRow } from "./dashboard-state.ts";

type Described = Pick<EventRow, "text" | "level">;

/** A longer text comes from a server or an operator. The page shows its beginning. */
const TEXT_MAX = 300;

/** An event as a line of the page. `event` must be redacted. */
export function eventRow(event: TelemetryEvent, seq: number): EventRow {
  const fields = event as unknown as Readonly<Record<string, unknown>>;
  const host = fields["host"] ?? fields["key"] ?? (fields["resolver"] ? `resolver ${fields["resolver"]}` : "");
  const { text, level } = described(event);
  return {
    seq,
    atMs: event.ts,
    type: event.event_type,
    host: String(host),
    role: String(fields["role"] ?? ""),
    text: text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}…` : text,
    level,
    isRoutine: isRoutineEvent(event),
  };
}

/** Events of ordinary requests, and refusals: an outage refuses every call, and one event of the circuit is enough. */
export function isRoutineEvent(event: TelemetryEvent): boolean {
  switch (event.event_type) {
    case "ratelimit.acquire":
    case "breaker_before_call":
    case "breaker_success":
    case "breaker_failure":
    case "rate_head_skipped":
    case "ratelimit.shadow":
    case "breaker_shadow":
      return true;
    case "http_attempt":
      return event.outcome !== "throttled" && event.outcome !== "failed";
    case "http_request":
      return event.error === undefined || event.aborted || event.error in REFUSALS;
    default:
      return false;
  }
}

function described(event: TelemetryEvent): Described {
  switch (event.event_type) {
    case "breaker_state_change": {
      const duration = event.new === "open" ? ` for ${Math.ceil(event.reset_timeout_s)} s` : "";
      const origin = event.from_peer ? ", reported by another process" : "";
      const level = event.new === "open" ? "bad" : "info";
      return line(`circuit ${event.old} → ${event.new}${duration}${origin}`, level);
    }
    case "breaker_cooldown_set": {
      const seconds = Math.max(0, Math.ceil((event.until - event.ts) / 1000));
      return line(`cooldown for ${seconds} s: ${breakerReasonText(event.reason)}`, "bad");
    }
    case "breaker_cooldown_ended":
      return line(`cooldown ended by ${event.by === "operator" ? "an operator" : "a successful call"}`, "info");
    case "ratelimit.cooldown":
      return line(`held for ${Math.ceil(event.seconds)} s`, "warn");
    case "aimd_adjust":
      return line(`pace ${event.old} → ${event.new}: ${event.reason}`, "warn");
    case "limit_learned":
      return line(`limit ${event.old} → ${event.new}: ${event.source}`);
    case "limit_ordered": {
      const by = event.by === "" ? "" : ` (${event.by})`;
      const looser = event.is_looser ? ", looser than the policy" : "";
      const duration = event.seconds > 0 ? ` for ${Math.ceil(event.seconds)} s` : "";
      return line(`limit ${event.old} → ${event.new}${duration}${looser}: ${event.reason}${by}`, "warn");
    }
    case "policy_loaded":
      return line(`policy ${event.config_hash.slice(0, 12)} loaded`);
    case "policy_changed":
      return line(`${event.setting}: ${event.old ?? "not set"} → ${event.new ?? "not set"} (${event.source})`);
    case "crawl_delay":
      return line(`Crawl-delay of ${event.seconds} s`);
    case "ratelimit.shadow": {
      const wait = event.would === "wait" && event.wait_ms !== undefined ? ` ${Math.round(event.wait_ms)} ms` : "";
      return line(`shadow mode: would ${event.would}${wait} for ${event.constraint}`, "warn");
    }
    case "breaker_shadow":
      return line(`shadow mode: would refuse: ${breakerReasonText(event.reason)}`, "warn");
    case "http_request":
      return requestText(event);
    case "http_attempt":
      return attemptText(event);
    case "http_retry":
      return line(
        `attempt ${event.attempt} failed (${answer(event)}); next in ${Math.round(event.delay_ms)} ms`,
        "warn",
      );
    case "ratelimit.acquire":
      if (event.outcome === "granted") return line(`granted after ${Math.round(event.blocked_ms)} ms`);
      return line(`${event.outcome} after ${Math.round(event.blocked_ms)} ms: ${event.rates}`, "warn");
    case "breaker_before_call":
      if (event.allowed) return line("permitted");
      return line(
        `refused: ${breakerReasonText(event.reason ?? event.state)}, ${Math.ceil(event.remaining_ms / 1000)} s left`,
        "warn",
      );
    case "breaker_success":
    case "breaker_failure":
    case "rate_head_skipped":
      return line(fieldText(event));
    case "store_away":
    case "policy_rejected":
    case "cache_trouble":
    case "bypassed":
    case "body_unread":
      return line(fieldText(event), "bad");
    default:
      return line(fieldText(event), "info");
  }
}

function requestText(event: Extract<TelemetryEvent, { readonly event_type: "http_request" }>): Described {
  const { method, attempts, rate_delay_ms, elapsed_ms, from_cache, coalesced, error, aborted } = event;
  const source = from_cache ? " from the cache" : coalesced ? " by an identical request" : "";
  const waited = rate_delay_ms >= 1 ? `, waited ${Math.round(rate_delay_ms)} ms` : "";
  const sent = attempts > 1 ? `, ${attempts} attempts` : "";
  const text = `${method} ${answer(event)}${source} in ${Math.round(elapsed_ms)} ms${waited}${sent}`;
  if (error === undefined || aborted) return line(text);
  const refusal = REFUSALS[error];
  return refusal === undefined ? line(text, "bad") : line(`${method} refused: ${refusal}${waited}`, "warn");
}

function attemptText(event: Extract<TelemetryEvent, { readonly event_type: "http_attempt" }>): Described {
  const text = `${event.method} ${answer(event)} (${event.cause})`;
  if (event.outcome === "throttled") {
    const asked = event.retry_after_s === undefined ? "" : `, Retry-After ${event.retry_after_s} s`;
    return line(`${text}: throttled${asked}`, "warn");
  }
  return event.outcome === "failed" ? line(`${text}: failed`, "bad") : line(text);
}

function answer({
  status,
  error,
}: {
  readonly status: number | undefined;
  readonly error: string | undefined;
}): string {
  return error ?? (status === undefined ? "no response" : String(status));
}

const REFUSALS: Readonly<Record<string, string>> = {
  DOCSTOKG_BREAKER_OPEN: "circuit open",
  DOCSTOKG_RATE_LIMITED: "rate limit",
  DOCSTOKG_BUSY: "no free slot",
};

/** The fields of an event that has no sentence of its own. */
function fieldText(event: TelemetryEvent): string {
  return Object.entries(event)
    .filter(([name, value]) => !ENVELOPE.has(name) && value !== undefined)
    .map(([name, value]) => `${name}=${value}`)
    .join(" ");
}

const ENVELOPE: ReadonlySet<string> = new Set(["ts", "run_id", "config_hash", "event_type", "host", "key", "role"]);

function line(text: string, level: EventRow["level"] = "info"): Described {
  return { text, level };
}
