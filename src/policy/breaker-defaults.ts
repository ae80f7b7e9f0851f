/** Every default of the breakers, in one place: quoted by code, tests and documents. */
export const DEFAULT_BREAKERS = {
  fail_max: 5,
  reset_timeout_s: 60,
  retry_after_cap_s: 900,
  roles: {
    metadata: { fail_max: 5, reset_timeout_s: 45 },
    landing: { fail_max: 4, reset_timeout_s: 60 },
    artifact: { fail_max: 3, reset_timeout_s: 120 },
  },
  half_open: { trial_calls: { metadata: 1, landing: 1, artifact: 2 }, jitter_ms: 150, success_threshold: 1 },
  rolling_window: { enabled: true, window_s: 30, threshold_failures: 6, cooldown_s: 60 },
  adaptive_reset: { enabled: true },
} as const;
