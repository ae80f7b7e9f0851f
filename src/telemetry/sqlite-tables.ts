/** The tables of telemetry in SQLite: their columns, and the table of each event type. */
import type { DatabaseFormat } from "../stores/sqlite/database-file.ts";
import type { EventType } from "./events.ts";

const ENVELOPE =
  "seq INTEGER PRIMARY KEY, ts INTEGER NOT NULL, event_type TEXT NOT NULL, run_id TEXT NOT NULL, config_hash TEXT NOT NULL";

/** A new field of an event needs a new migration. Existing migrations must not change; a test checks the columns. */
export const TELEMETRY_FORMAT: DatabaseFormat = {
  // "dtkt".
  applicationId: 0x64_74_6b_74,
  migrations: [
    `
CREATE TABLE http_events (${ENVELOPE}, "host" TEXT, "role" TEXT, "resolver" TEXT, "method" TEXT, "status" INTEGER,
  "error" TEXT, "from_cache" INTEGER, "revalidated" INTEGER, "stale" INTEGER, "coalesced" INTEGER, "attempts" INTEGER,
  "retry_after_s" REAL, "rate_delay_ms" REAL, "rate_concurrency_wait_ms" REAL, "breaker_host_state" TEXT,
  "breaker_resolver_state" TEXT, "breaker_open_remaining_ms" REAL, "breaker_recorded" TEXT, "elapsed_ms" REAL,
  "url_hash" TEXT, "attempt" INTEGER, "delay_ms" REAL, "unread_ms" REAL, "message" TEXT);
CREATE TABLE rate_events (${ENVELOPE}, "key" TEXT, "role" TEXT, "rates" TEXT, "weight" REAL, "mode" TEXT,
  "blocked_ms" REAL, "outcome" TEXT, "seconds" REAL, "host" TEXT, "old", "new", "reason" TEXT, "what" TEXT,
  "source" TEXT, "processes" INTEGER, "message" TEXT, "would" TEXT, "wait_ms" REAL, "constraint" TEXT);
CREATE TABLE breaker_transitions (${ENVELOPE}, "host" TEXT, "role" TEXT, "resolver" TEXT, "old" TEXT, "new" TEXT,
  "reset_timeout_s" REAL, "last_rate_delay_ms" REAL, "until" INTEGER, "reason" TEXT, "by" TEXT, "heard" INTEGER, "old_s" REAL,
  "new_s" REAL);
CREATE TABLE breaker_calls (${ENVELOPE}, "host" TEXT, "role" TEXT, "resolver" TEXT, "allowed" INTEGER, "state" TEXT,
  "reason" TEXT, "remaining_ms" REAL, "sample_rate" REAL, "status" INTEGER, "retry_after_s" REAL);
CREATE TABLE run_events (${ENVELOPE}, "program" TEXT, "version" TEXT, "sink" TEXT, "dropped" INTEGER);
CREATE INDEX http_events_run ON http_events (run_id, ts, seq);
CREATE INDEX rate_events_run ON rate_events (run_id, ts, seq);
CREATE INDEX breaker_transitions_run ON breaker_transitions (run_id, ts, seq);
CREATE INDEX breaker_calls_run ON breaker_calls (run_id, ts, seq);
CREATE INDEX run_events_run ON run_events (run_id, ts, seq);
CREATE TABLE run_summary (run_id TEXT PRIMARY KEY, config_hash TEXT NOT NULL, program TEXT, started_ts INTEGER NOT NULL,
  ended_ts INTEGER NOT NULL, calls INTEGER NOT NULL, cache_hit_rate REAL NOT NULL, throttle_rate REAL NOT NULL,
  rate_delay_p50_ms REAL NOT NULL, rate_delay_p95_ms REAL NOT NULL, acquired INTEGER NOT NULL, blocked INTEGER NOT NULL,
  breaker_opens INTEGER NOT NULL, breaker_denied INTEGER NOT NULL, time_saved_ms REAL NOT NULL, summary TEXT NOT NULL);
`,
    'ALTER TABLE http_events ADD COLUMN "partition" TEXT',
    `
CREATE TABLE http_attempts (${ENVELOPE}, "call_id" TEXT, "attempt" INTEGER, "cause" TEXT, "host" TEXT, "key" TEXT,
  "role" TEXT, "resolver" TEXT, "partition" TEXT, "method" TEXT, "rate_wait_ms" REAL, "slot_wait_ms" REAL, "breaker_wait_ms" REAL,
  "jitter_wait_ms" REAL, "retry_wait_ms" REAL, "connection" TEXT, "status" INTEGER, "error" TEXT, "outcome" TEXT,
  "breaker_recorded" TEXT, "retry_after_s" REAL, "request_bytes" INTEGER, "response_bytes" INTEGER, "connect_ms" REAL,
  "first_byte_ms" REAL, "elapsed_ms" REAL);
CREATE INDEX http_attempts_run ON http_attempts (run_id, ts, seq);
ALTER TABLE http_events ADD COLUMN "call_id" TEXT;
ALTER TABLE http_events ADD COLUMN "final_host" TEXT;
ALTER TABLE http_events ADD COLUMN "aborted" INTEGER;
ALTER TABLE http_events ADD COLUMN "background" INTEGER;
ALTER TABLE http_events ADD COLUMN "breaker_wait_ms" REAL;
ALTER TABLE http_events ADD COLUMN "unsent_wait_ms" REAL;
`,
    `
ALTER TABLE run_events ADD COLUMN "host" TEXT;
ALTER TABLE run_events ADD COLUMN "client" TEXT;
ALTER TABLE run_events ADD COLUMN "seconds" REAL;
ALTER TABLE run_events ADD COLUMN "setting" TEXT;
ALTER TABLE run_events ADD COLUMN "old" TEXT;
ALTER TABLE run_events ADD COLUMN "new" TEXT;
ALTER TABLE run_events ADD COLUMN "source" TEXT;
ALTER TABLE run_events ADD COLUMN "changes" INTEGER;
ALTER TABLE run_events ADD COLUMN "message" TEXT;
`,
    `
ALTER TABLE rate_events ADD COLUMN "costs" TEXT;
ALTER TABLE rate_events ADD COLUMN "unit" TEXT;
ALTER TABLE rate_events ADD COLUMN "charged" INTEGER;
ALTER TABLE rate_events ADD COLUMN "used" INTEGER;
`,
    `ALTER TABLE rate_events ADD COLUMN "away_ms" REAL;`,
    `
ALTER TABLE breaker_calls ADD COLUMN "fail_counter" INTEGER;
ALTER TABLE breaker_calls ADD COLUMN "exc_type" TEXT;
ALTER TABLE breaker_calls ADD COLUMN "msg" TEXT;
ALTER TABLE breaker_calls ADD COLUMN "cooldown_s" REAL;
`,
    `
ALTER TABLE http_events ADD COLUMN "decided_by" TEXT;
ALTER TABLE rate_events ADD COLUMN "decided_by" TEXT;
ALTER TABLE breaker_calls ADD COLUMN "decided_by" TEXT;
`,
    `ALTER TABLE http_attempts ADD COLUMN "decided_by" TEXT;`,
    `ALTER TABLE breaker_transitions RENAME COLUMN "heard" TO "from_peer";`,
    `
ALTER TABLE rate_events ADD COLUMN "by" TEXT;
ALTER TABLE rate_events ADD COLUMN "is_looser" INTEGER;
`,
    `ALTER TABLE http_events ADD COLUMN "unsent_slot_wait_ms" REAL;`,
    `ALTER TABLE http_attempts ADD COLUMN "cooldown_key" TEXT;`,
  ],
};

export type EventTable =
  | "http_events"
  | "http_attempts"
  | "rate_events"
  | "breaker_transitions"
  | "breaker_calls"
  | "run_events";

export const TABLE_OF: Readonly<Record<EventType, EventTable>> = {
  http_request: "http_events",
  http_attempt: "http_attempts",
  http_retry: "http_events",
  body_unread: "http_events",
  cache_trouble: "http_events",
  "ratelimit.acquire": "rate_events",
  "ratelimit.settle": "rate_events",
  "ratelimit.cooldown": "rate_events",
  "ratelimit.shadow": "rate_events",
  rate_head_skipped: "rate_events",
  aimd_adjust: "rate_events",
  guard_adjust: "rate_events",
  shape_adjust: "rate_events",
  limit_learned: "rate_events",
  limit_ordered: "rate_events",
  limit_overruled: "rate_events",
  store_away: "rate_events",
  store_back: "rate_events",
  breaker_state_change: "breaker_transitions",
  breaker_cooldown_set: "breaker_transitions",
  breaker_cooldown_ended: "breaker_transitions",
  breaker_reset_raised: "breaker_transitions",
  breaker_shadow: "breaker_calls",
  breaker_before_call: "breaker_calls",
  breaker_success: "breaker_calls",
  breaker_failure: "breaker_calls",
  run_started: "run_events",
  run_ended: "run_events",
  bypassed: "run_events",
  crawl_delay: "run_events",
  policy_loaded: "run_events",
  policy_changed: "run_events",
  policy_rejected: "run_events",
  telemetry_dropped: "run_events",
};

export const EVENT_TABLES: readonly EventTable[] = [...new Set(Object.values(TABLE_OF))];
