/** The shape of `breakers.yaml` and of the same as an object; keys as users write them. */
import { z } from "zod";
import { defaultClassifyRules } from "../core/breaker/classify.ts";
import { DEFAULT_BREAKERS } from "./defaults.ts";
import { hostNameSchema, mode, parseOptions } from "./ratelimit-schema.ts";

const count = z.int().min(1).max(1_000_000);
const seconds = z
  .number()
  .positive()
  .max(31 * 86_400);
const status = z.int().min(100).max(599);

const numbers = { fail_max: count.optional(), reset_timeout_s: seconds.optional() };
const role = z.strictObject(numbers);
const roles = z.strictObject({ metadata: role.optional(), landing: role.optional(), artifact: role.optional() });
const capped = { ...numbers, retry_after_cap_s: seconds.optional() };

const { half_open, rolling_window, adaptive_reset } = DEFAULT_BREAKERS;
const trialCalls = z.strictObject({
  metadata: count.default(half_open.trial_calls.metadata),
  landing: count.default(half_open.trial_calls.landing),
  artifact: count.default(half_open.trial_calls.artifact),
});

export const breakersSchema = z.strictObject({
  version: z.literal(1).optional(),
  /** Whether a file adds to the shipped one or stands alone. */
  extends: z.enum(["default", "none"]).optional(),
  mode,
  defaults: z
    .strictObject({
      ...capped,
      classify: z
        .strictObject({
          failure_statuses: z.array(status).default([...defaultClassifyRules.failureStatuses]),
          neutral_statuses: z.array(status).default([...defaultClassifyRules.neutralStatuses]),
        })
        .prefault({}),
      roles: roles.prefault({}),
      half_open: z
        .strictObject({
          trial_calls: trialCalls.prefault({}),
          jitter_ms: z.number().min(0).max(60_000).default(half_open.jitter_ms),
          success_threshold: count.default(half_open.success_threshold),
        })
        .prefault({}),
    })
    .prefault({}),
  advanced: z
    .strictObject({
      rolling_window: z
        .strictObject({
          enabled: z.boolean().default(rolling_window.enabled),
          window_s: seconds.default(rolling_window.window_s),
          threshold_failures: count.default(rolling_window.threshold_failures),
          cooldown_s: seconds.default(rolling_window.cooldown_s),
        })
        .prefault({}),
      cooldown_store: z
        .strictObject({ backend: z.enum(["none", "sqlite", "redis"]).default("none"), dsn: z.string().default("") })
        .prefault({}),
      adaptive_reset: z.strictObject({ enabled: z.boolean().default(adaptive_reset.enabled) }).prefault({}),
    })
    .prefault({}),
  hosts: z.record(hostNameSchema, z.strictObject({ ...capped, mode, roles: roles.optional() })).prefault({}),
  resolvers: z.record(z.string().min(1), role).prefault({}),
});

/** What a user may write. */
export type BreakersOptions = z.input<typeof breakersSchema>;

/** Reads the breakers, or throws a ConfigError that lists everything wrong with them. */
export function parseBreakers(options: BreakersOptions, where: string): z.output<typeof breakersSchema> {
  return parseOptions(breakersSchema, options, where);
}
