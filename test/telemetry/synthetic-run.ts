/** A synthetic run of twelve minutes: six hosts, one of them down for a while, one that throttles. */
import type { TelemetryEvent } from "../../src/telemetry/events.ts";
import { acquire, at, attempt, call, START_MS } from "./kit.ts";

interface HostTraffic {
  readonly host: string;
  /** Calls per second. */
  readonly pace: number;
  readonly cached: number;
  readonly waitMs: number;
}

const HOSTS: readonly HostTraffic[] = [
  { host: "api.crossref.org", pace: 6, cached: 0.35, waitMs: 40 },
  { host: "api.openalex.org", pace: 4, cached: 0.2, waitMs: 15 },
  { host: "export.arxiv.org", pace: 0.4, cached: 0.1, waitMs: 2600 },
  { host: "api.unpaywall.org", pace: 2, cached: 0.05, waitMs: 5 },
  { host: "europepmc.org", pace: 1.5, cached: 0.5, waitMs: 120 },
  { host: "zenodo.org", pace: 0.8, cached: 0, waitMs: 300 },
];
const RUN_MS = 12 * 60_000;
const DOWN = { host: "europepmc.org", fromMs: 240_000, toMs: 420_000 };
const THROTTLING = { host: "api.unpaywall.org", fromMs: 500_000, toMs: 560_000 };

export function syntheticRun(): readonly TelemetryEvent[] {
  const random = lcg(7);
  const events: TelemetryEvent[] = [at(0, "run_started", { program: "docstokg run", version: "0.1.0" })];
  for (const traffic of HOSTS) events.push(...callsOf(traffic, random));
  events.push(...breaks(), at(RUN_MS, "run_ended", {}));
  return events.flatMap(withAttempt).sort((a, b) => a.ts - b.ts);
}

/** A call that was sent has one attempt. */
function withAttempt(event: TelemetryEvent): readonly TelemetryEvent[] {
  if (event.event_type !== "http_request" || event.attempts === 0) return [event];
  const { host, role, status, breaker_recorded, retry_after_s, rate_delay_ms, rate_concurrency_wait_ms } = event;
  const sent = attempt(event.ts - START_MS, host, {
    role,
    status,
    breaker_recorded,
    retry_after_s,
    outcome: status === 429 || status === 503 ? "throttled" : "answered",
    rate_wait_ms: rate_delay_ms - rate_concurrency_wait_ms,
    slot_wait_ms: rate_concurrency_wait_ms,
    elapsed_ms: Math.max(0, event.elapsed_ms - rate_delay_ms),
  });
  return [sent, event];
}

function callsOf({ host, pace, cached, waitMs }: HostTraffic, random: () => number): TelemetryEvent[] {
  const events: TelemetryEvent[] = [];
  for (let ms = 0; ms < RUN_MS; ms += (2 * random() * 1000) / pace) {
    const role = random() < 0.12 ? "artifact" : "metadata";
    const wave = 0.6 + 0.4 * Math.sin(ms / 70_000);
    if (random() > wave) continue;
    if (random() < cached) {
      events.push(call(ms, host, { role, from_cache: true, attempts: 0, elapsed_ms: 1 }));
      continue;
    }
    if (host === DOWN.host && ms > DOWN.fromMs && ms < DOWN.toMs) {
      const isTried = ms < DOWN.fromMs + 8000 || Math.floor(ms / 60_000) !== Math.floor((ms - 900) / 60_000);
      if (isTried) {
        events.push(
          at(ms, "breaker_failure", {
            host,
            role,
            status: 503,
            state: "closed",
            fail_counter: 1,
            exc_type: undefined,
            msg: undefined,
            retry_after_s: undefined,
            cooldown_s: undefined,
          }),
        );
        events.push(call(ms, host, { role, status: 503, breaker_recorded: "failure", elapsed_ms: 900 }));
      } else {
        const error = "DOCSTOKG_BREAKER_OPEN";
        const fields = { role, status: undefined, error, attempts: 0, breaker_recorded: undefined } as const;
        events.push(call(ms, host, { ...fields, breaker_open_remaining_ms: 30_000, breaker_host_state: "open" }));
      }
      continue;
    }
    if (host === THROTTLING.host && ms > THROTTLING.fromMs && ms < THROTTLING.toMs && random() < 0.35) {
      events.push(
        at(ms, "breaker_failure", {
          host,
          role,
          status: 429,
          state: "closed",
          fail_counter: 1,
          exc_type: undefined,
          msg: undefined,
          retry_after_s: 10,
          cooldown_s: 10,
        }),
      );
      events.push(
        call(ms, host, { role, status: 429, breaker_recorded: "failure", retry_after_s: 10, elapsed_ms: 90 }),
      );
      continue;
    }
    if (random() < 0.015) {
      events.push(acquire(ms, host, "refused"));
      events.push(call(ms, host, { role, status: undefined, error: "DOCSTOKG_RATE_LIMITED", attempts: 0 }));
      continue;
    }
    const delay = random() < 0.45 ? 0 : waitMs * wave * -Math.log(1 - random() * 0.98);
    events.push(acquire(ms, host, "granted"));
    events.push(call(ms, host, { role, rate_delay_ms: delay, elapsed_ms: delay + 150 + 300 * random() }));
  }
  return events;
}

function breaks(): TelemetryEvent[] {
  const circuit = { host: DOWN.host, role: "metadata", last_rate_delay_ms: 12 } as const;
  const change = (ms: number, old: "closed" | "open" | "half_open", now: "closed" | "open" | "half_open") =>
    at(ms, "breaker_state_change", { ...circuit, old, new: now, reset_timeout_s: 60 });
  const events: TelemetryEvent[] = [
    change(DOWN.fromMs + 4000, "closed", "open"),
    change(DOWN.fromMs + 65_000, "open", "half_open"),
    change(DOWN.fromMs + 66_000, "half_open", "open"),
    change(DOWN.fromMs + 127_000, "open", "half_open"),
    change(DOWN.fromMs + 128_000, "half_open", "open"),
    change(DOWN.toMs + 8000, "open", "half_open"),
    change(DOWN.toMs + 10_000, "half_open", "closed"),
  ];
  for (const ms of [505_000, 520_000, 540_000]) {
    const until = START_MS + ms + 10_000;
    events.push(at(ms, "breaker_cooldown_set", { host: THROTTLING.host, until, reason: "retry-after" }));
    const well = { host: THROTTLING.host, role: "metadata", status: 200, state: "closed", fail_counter: 0 } as const;
    events.push(at(ms + 10_500, "breaker_success", well));
  }
  const adjust = { host: THROTTLING.host, role: "metadata", reason: "429s" } as const;
  events.push(
    at(521_000, "aimd_adjust", { ...adjust, old: 1, new: 0.8 }),
    at(600_000, "aimd_adjust", { ...adjust, old: 0.8, new: 0.85 }),
  );
  return events;
}

/** A seeded generator, so that the run is the same each time. */
function lcg(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}
