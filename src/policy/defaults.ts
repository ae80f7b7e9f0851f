/** Every built-in default of limits and breakers. Code, tests and documents read them from here. */

/** Milliseconds added to every window, because network jitter changes the time between two requests. */
export const DEFAULT_GUARD_MS = 25;

const COMMON_LIMITS = {
  count_head: false,
  per: "all",
  mode: "enforce",
  guard_ms: DEFAULT_GUARD_MS,
  shape: "burst",
} as const;

/** A role has no cap on its requests in flight unless the policy sets one. */
export const DEFAULT_LIMITS = {
  metadata: { rates: ["10/SECOND", "5000/HOUR"], max_delay_ms: 200, ...COMMON_LIMITS },
  landing: { rates: ["5/SECOND", "2000/HOUR"], max_delay_ms: 250, ...COMMON_LIMITS },
  artifact: { rates: ["2/SECOND", "500/HOUR"], max_delay_ms: 2000, ...COMMON_LIMITS },
} as const;

export const DEFAULT_AIMD = {
  enabled: false,
  window_s: 60,
  high_429_ratio: 0.05,
  increase_step_pct: 5,
  decrease_step_pct: 20,
  min_multiplier: 0.3,
  max_multiplier: 1,
} as const;

export const DEFAULT_BACKEND = {
  kind: "memory",
  dsn: "",
  when_store_away: "share",
  fleet_size: undefined as number | undefined,
} as const;

export const DEFAULT_BREAKERS = {
  mode: "enforce",
  fail_max: 5,
  reset_timeout_s: 60,
  retry_after_cap_s: 900,
  per: "all",
  roles: {
    metadata: { fail_max: 5, reset_timeout_s: 45 },
    landing: { fail_max: 4, reset_timeout_s: 60 },
    artifact: { fail_max: 3, reset_timeout_s: 120 },
  },
  half_open: { trial_calls: { metadata: 1, landing: 1, artifact: 2 }, jitter_ms: 150, success_threshold: 1 },
  rolling_window: {
    enabled: true,
    window_s: 30,
    threshold_failures: 6,
    cooldown_s: 60,
    slow_call_share: 0.5,
    slow_call_min: 10,
  },
  cooldown_store: { backend: "none", dsn: "" },
  adaptive_reset: { enabled: true },
  ramp_up: { enabled: true, max_calls: 64 },
} as const;
