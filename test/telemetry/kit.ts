import type { EventBodyOf, EventOf, EventType, TelemetryEvent } from "../../src/telemetry/events.ts";
import { jsonlEvents } from "../../src/telemetry/reading/jsonl-events.ts";
import { SkippedEventCounter } from "../../src/telemetry/reading/skipped-events.ts";
import type { Sink } from "../../src/telemetry/sink.ts";

export const RUN = "run-1";
export const START_MS = 1_700_000_000_000;

/** A sink that stores its events. */
export function keepingSink(): Sink & { readonly events: TelemetryEvent[] } {
  const events: TelemetryEvent[] = [];
  return { name: "kept", events, take: event => events.push(event) };
}

/** An event at some ms after the start of the run. */
export function at<Type extends EventType>(
  ms: number,
  event_type: Type,
  fields: Omit<EventBodyOf<Type>, "event_type">,
): EventOf<Type> {
  return { ts: START_MS + ms, event_type, run_id: RUN, config_hash: "abc", ...fields } as EventOf<Type>;
}

type Request = Omit<EventBodyOf<"http_request">, "event_type">;

/** A call that was answered at once, with these changes. */
export function call(ms: number, host: string, fields: Partial<Request> = {}): EventOf<"http_request"> {
  return at(ms, "http_request", {
    call_id: `call-${ms}`,
    host,
    final_host: host,
    role: "metadata",
    resolver: undefined,
    partition: undefined,
    method: "GET",
    status: 200,
    error: undefined,
    aborted: false,
    background: false,
    from_cache: false,
    revalidated: false,
    stale: false,
    coalesced: false,
    attempts: 1,
    retry_after_s: undefined,
    rate_delay_ms: 0,
    rate_concurrency_wait_ms: 0,
    breaker_wait_ms: 0,
    unsent_wait_ms: 0,
    unsent_slot_wait_ms: 0,
    breaker_host_state: "closed",
    breaker_resolver_state: undefined,
    breaker_open_remaining_ms: 0,
    breaker_recorded: "success",
    elapsed_ms: 0,
    url_hash: "0123456789abcdef",
    ...fields,
  });
}

type Attempt = Omit<EventBodyOf<"http_attempt">, "event_type">;

/** An attempt that was answered at once, with these changes. */
export function attempt(ms: number, host: string, fields: Partial<Attempt> = {}): EventOf<"http_attempt"> {
  return at(ms, "http_attempt", {
    call_id: `call-${ms}`,
    attempt: 1,
    cause: "call",
    host,
    key: host,
    cooldown_key: host,
    role: "metadata",
    resolver: undefined,
    partition: undefined,
    method: "GET",
    rate_wait_ms: 0,
    slot_wait_ms: 0,
    breaker_wait_ms: 0,
    jitter_wait_ms: 0,
    retry_wait_ms: 0,
    connection: "reused",
    status: 200,
    error: undefined,
    outcome: "answered",
    breaker_recorded: "success",
    retry_after_s: undefined,
    request_bytes: 0,
    response_bytes: 0,
    connect_ms: 0,
    first_byte_ms: 0,
    elapsed_ms: 0,
    ...fields,
  });
}

export function acquire(ms: number, key: string, outcome: "granted" | "refused" | "aborted", weight = 1) {
  const facts = { key, role: "metadata", rates: "10/SECOND", weight, mode: "block", blocked_ms: 0, outcome } as const;
  return at(ms, "ratelimit.acquire", facts);
}

export async function allOf<Value>(values: AsyncIterable<Value>): Promise<Value[]> {
  const all: Value[] = [];
  for await (const value of values) all.push(value);
  return all;
}

/** All events of a JSONL file and its rotated files, and what was skipped. */
export async function readJsonl(file: string, runId?: string) {
  const skipped = new SkippedEventCounter();
  const events = await allOf(jsonlEvents(file, skipped, runId));
  return { events, skipped };
}
