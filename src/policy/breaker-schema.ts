/** The schema of `breakers.yaml`. Its descriptions are those of `breaker-options.ts`, for editors. */
import { defaultClassifyRules } from "../core/breaker/classify.ts";
import type { BreakersOptions } from "./breaker-options.ts";
import { DEFAULT_BREAKERS } from "./defaults.ts";
import {
  type Exact,
  extendsSchema,
  hostNameSchema,
  parseMerged,
  parseOptions,
  versionSchema,
} from "./parse-options.ts";
import * as s from "./schema.ts";

export type { BreakersOptions } from "./breaker-options.ts";

const { half_open, rolling_window, adaptive_reset, ramp_up, cooldown_store } = DEFAULT_BREAKERS;

const count = s.integer().min(1).max(1_000_000);
const seconds = s
  .number()
  .above(0)
  .max(31 * 86_400);
const status = s.integer().min(100).max(599);

const modeSchema = s
  .oneOf("enforce", "shadow")
  .optional()
  .describe(
    "enforce refuses calls while a circuit is open or a host is in cooldown; shadow only reports which calls would have been refused, and sends them. The mode of a host wins over that of its service, and both over the top-level one. Default: enforce",
  );

const circuit = {
  fail_max: count
    .optional()
    .describe(
      "Consecutive failures that open the circuit, 1 to 1000000. Default: inherited; otherwise 5 (metadata, resolvers), 4 (landing), 3 (artifact)",
    ),
  reset_timeout_s: seconds
    .optional()
    .describe(
      "Time from opening the circuit to the first trial call, in seconds, above 0 and at most 31 days. Default: inherited; otherwise 45 (metadata), 60 (landing, resolvers), 120 (artifact)",
    ),
};
const circuitSchema = s.object(circuit);
const rolesSchema = s.object({
  metadata: circuitSchema.optional().describe("Circuit of requests for metadata. Default: inherited"),
  landing: circuitSchema.optional().describe("Circuit of requests for landing pages. Default: inherited"),
  artifact: circuitSchema.optional().describe("Circuit of requests for files. Default: inherited"),
});
const ROLES_TEXT = "Numbers by role; a role wins over the numbers of its host. Default: none";
const CAP_TEXT =
  "Longest cooldown that a Retry-After can cause, in seconds, above 0 and at most 31 days. A growing reset timeout is limited by this value";
const PER_TEXT =
  "all: one set of circuits and cooldowns for all calls; partition: one for each partition that a call names. An operator's command for the host applies to all of them.";
const perSchema = s.oneOf("all", "partition").optional();

const throttlesSchema = s
  .list(
    s
      .object({
        status: s.list(status).optional().describe("Statuses (100 to 599) that the rule applies to. Default: all"),
        header: s
          .string()
          .regex(/^[!#$%&'*+.^`|~\w-]+(?::.*)?$/, "expected the name of a response header, or `name: text`")
          .optional()
          .describe(
            "A header field that the response must have: its name, or `name: text` if its value must contain a text. Default: none",
          ),
        body: s
          .string()
          .min(1)
          .max(200)
          .optional()
          .describe(
            "A text of 1 to 200 characters that the first 4 KiB of a text, JSON or XML body must contain, in any case of letters. The response is held back until they have arrived, for at most a second. Default: none",
          ),
        retry_after_s: seconds
          .optional()
          .describe(
            "Cooldown for a response without Retry-After, in seconds, above 0 and at most 31 days. Default: none",
          ),
      })
      .check(({ header, body }) =>
        header !== undefined || body !== undefined
          ? undefined
          : "expected header or body: a status alone belongs to classify.failure_statuses",
      ),
  )
  .optional()
  .describe(
    "Rules that recognise throttles, in addition to 429, 403 with Retry-After or without remaining quota, and 503, 509 and 529 with Retry-After. Those of defaults, of the service and of the host apply together. Default: none",
  );

const classifySchema = s.object({
  failure_statuses: s
    .list(status)
    .default([...defaultClassifyRules.failureStatuses])
    .describe(
      "Statuses (100 to 599) that count as failures. Default: 408, 429, 500, 502, 503, 504, 507, 509, 520 to 527, 529, 530",
    ),
  neutral_statuses: s
    .list(status)
    .default([...defaultClassifyRules.neutralStatuses])
    .describe(
      "Statuses (100 to 599) that count neither as failure nor as success; this list wins over failure_statuses. A status of 400 or more in neither list is neutral too. Default: 401, 403, 404, 410, 451",
    ),
});

const trialCalls = (role: keyof typeof half_open.trial_calls) =>
  count
    .default(half_open.trial_calls[role])
    .describe(
      `Trial calls of ${role} that may be in flight at once, 1 to 1000000. Default: ${half_open.trial_calls[role]}`,
    );
const halfOpenSchema = s.object({
  trial_calls: s
    .object({
      metadata: trialCalls("metadata"),
      landing: trialCalls("landing"),
      artifact: trialCalls("artifact"),
    })
    .default({})
    .describe(
      "How many trial calls may be in flight at once, by role. Default: 1 (metadata), 1 (landing), 2 (artifact)",
    ),
  jitter_ms: s
    .number()
    .min(0)
    .max(60_000)
    .default(half_open.jitter_ms)
    .describe("Longest random delay before a trial call, in milliseconds, 0 to 60000. Default: 150"),
  success_threshold: count
    .default(half_open.success_threshold)
    .describe("Successful trial calls that close the circuit, 1 to 1000000. Default: 1"),
});

const defaultsSchema = s.object({
  ...circuit,
  retry_after_cap_s: seconds.optional().describe(`${CAP_TEXT} too. Default: 900`),
  per: perSchema.describe(`${PER_TEXT} Default: all`),
  throttles: throttlesSchema,
  classify: classifySchema.default({}).describe("Which HTTP statuses are failures. Default: built-in lists"),
  roles: rolesSchema.default({}).describe(ROLES_TEXT),
  half_open: halfOpenSchema
    .default({})
    .describe("The half-open state, in which trial calls decide whether the circuit closes. Default: built-in numbers"),
});

const rollingWindowSchema = s.object({
  enabled: s
    .boolean()
    .default(rolling_window.enabled)
    .describe("Whether failures are counted in a rolling window. Default: true"),
  window_s: seconds
    .default(rolling_window.window_s)
    .describe("Length of the window, in seconds, above 0 and at most 31 days. Default: 30"),
  threshold_failures: count
    .default(rolling_window.threshold_failures)
    .describe("Failures within the window that start a cooldown, 1 to 1000000. Default: 6"),
  cooldown_s: seconds
    .default(rolling_window.cooldown_s)
    .describe("Length of that cooldown, in seconds, above 0 and at most 31 days. Default: 60"),
  slow_call_ms: s
    .number()
    .above(0)
    .optional()
    .describe(
      "Slow calls start the cooldown too: a call is slow if its response begins later than this, in milliseconds, above 0. Default: off",
    ),
  slow_call_share: s
    .number()
    .above(0)
    .max(1)
    .default(rolling_window.slow_call_share)
    .describe("Share of slow calls within the window that starts the cooldown, above 0 and at most 1. Default: 0.5"),
  slow_call_min: count
    .default(rolling_window.slow_call_min)
    .describe(
      "Slow calls start the cooldown only if the window has at least this many calls, 1 to 1000000. Default: 10",
    ),
});

const advancedSchema = s.object({
  rolling_window: rollingWindowSchema
    .default({})
    .describe("Cooldown of a host that fails often between successes. Default: on"),
  cooldown_store: s
    .object({
      backend: s
        .oneOf("none", "sqlite", "redis", "postgres")
        .default(cooldown_store.backend)
        .describe(
          "Where cooldowns and circuits are stored: none uses the store of the limits, sqlite a file, redis a server, postgres a database. Default: none",
        ),
      dsn: s
        .string()
        .default(cooldown_store.dsn)
        .describe("File (sqlite) or URL (redis, postgres) of the store. Default: empty"),
    })
    .default({})
    .describe("Store of cooldowns and circuits. Default: none"),
  adaptive_reset: s
    .object({
      enabled: s
        .boolean()
        .default(adaptive_reset.enabled)
        .describe("Whether each failed trial call doubles reset_timeout_s, up to retry_after_cap_s. Default: true"),
    })
    .default({})
    .describe("Longer reset for a host that stays down. Default: on"),
  ramp_up: s
    .object({
      enabled: s
        .boolean()
        .default(ramp_up.enabled)
        .describe("Whether calls are held back after a cooldown. Default: true"),
      max_calls: count
        .default(ramp_up.max_calls)
        .describe(
          "When this many calls of a role may wait at once, no call is held back any more, 1 to 1000000. Default: 64",
        ),
    })
    .default({})
    .describe("Few calls at first after a cooldown. Default: on"),
});

const hostSchema = s.object({
  ...circuit,
  retry_after_cap_s: seconds
    .optional()
    .describe(`${CAP_TEXT} and by that of defaults. Default: inherited; otherwise 900`),
  per: perSchema.describe(`${PER_TEXT} Default: inherited; otherwise all`),
  mode: modeSchema,
  throttles: throttlesSchema,
  roles: rolesSchema.optional().describe(ROLES_TEXT),
});

export const breakersSchema = s.object({
  version: versionSchema,
  extends: extendsSchema,
  mode: modeSchema,
  defaults: defaultsSchema
    .default({})
    .describe(
      "Breakers of hosts that are not listed, and of fields that a host does not set. Default: built-in numbers",
    ),
  advanced: advancedSchema.default({}).describe("Settings of all breakers together. Default: built-in settings"),
  hosts: s
    .map(hostNameSchema, hostSchema)
    .default({})
    .describe(
      "Breakers by host. An entry holds for every port of the host, except ports that the policy names as `host:port`. A listed host of a service has circuits of its own. Default: none",
    ),
  services: s
    .map(s.string().min(1), hostSchema)
    .default({})
    .describe(
      "Breakers by service, as ratelimits.yaml names it; its members share circuits and cooldowns. Default: none",
    ),
  resolvers: s
    .map(s.string().min(1), circuitSchema)
    .default({})
    .describe(
      "Circuits by resolver. A resolver's circuit counts the calls that name it, whichever host they go to. Default: none",
    ),
});

true satisfies Exact<s.InputOf<typeof breakersSchema>, BreakersOptions>;

export type ParsedBreakers = s.OutputOf<typeof breakersSchema>;

/**
 * Parses the breakers. Throws a ConfigError that lists every problem.
 * @param isMerged the options were assembled from layers that were checked
 */
export function parseBreakers(options: BreakersOptions, where: string, isMerged = false): ParsedBreakers {
  return (isMerged ? parseMerged : parseOptions)(breakersSchema, options, where);
}
