/** The schema of `ratelimits.yaml`. Its descriptions are those of `ratelimit-options.ts`, for editors. */
import { MAX_COST_LIMIT, NO_LIMIT, parseRates } from "../core/limits/rate.ts";
import { ConfigError } from "../errors.ts";
import { DEFAULT_AIMD, DEFAULT_BACKEND } from "./defaults.ts";
import { parseMember } from "./member.ts";
import {
  type Exact,
  extendsSchema,
  hostNameSchema,
  parseMerged,
  parseOptions,
  versionSchema,
} from "./parse-options.ts";
import type { RatelimitsOptions } from "./ratelimit-options.ts";
import * as s from "./schema.ts";

export type { HostLimits, RatelimitsOptions, RoleLimits } from "./ratelimit-options.ts";

const ratesSchema = s
  .union(
    [s.string(), s.list(s.string())],
    "expected a rate such as 10/SECOND, a list of rates, or none for no rate limit",
  )
  .convert(texts => (texts === NO_LIMIT ? [] : parseRates(texts)))
  .optional()
  .describe(
    "Rate limits such as 10/SECOND, 1/3SECOND or 300/min; a list, or one text with + between the rates. All of them apply at once. none: no rate limit, not even an inherited one. Default: inherited; for total, no rate limit",
  );

/** A unit is also a key of call options and of overrides such as `costs.credits:1000/DAY`. */
const unitSchema = s
  .string()
  .regex(
    /^(?!requests$)[a-z][a-z0-9_]{0,31}$/,
    "expected a unit in lower case, such as credits; for requests use rates",
  );
const costRatesSchema = s
  .union([s.string(), s.list(s.string())], "expected a rate such as 100000/DAY, a list of rates, or none for no limit")
  .convert(texts => (texts === NO_LIMIT ? [] : parseRates(texts, MAX_COST_LIMIT)));

const modeSchema = s
  .oneOf("enforce", "shadow")
  .optional()
  .describe(
    "enforce applies the limits; shadow only reports which calls would have waited or been refused, and sends them. The most specific key wins. Default: enforce",
  );

const budget = {
  rates: ratesSchema,
  costs: s
    .map(unitSchema, costRatesSchema)
    .optional()
    .describe(
      "Rate limits in other units than requests, by the name of the unit: credits: 100000/DAY. Amounts of money are whole millionths of the currency. All of them apply at once, together with rates. none removes an inherited limit. Default: inherited; for total, none",
    ),
  max_concurrent: s
    .integer()
    .min(1)
    .optional()
    .describe("Maximum number of requests in flight, 1 or more. Default: inherited; otherwise no maximum"),
  shared: s
    .boolean()
    .optional()
    .describe("Whether max_concurrent counts over all processes that share a store. Default: false"),
  guard_ms: s
    .number()
    .min(0)
    .max(60_000)
    .optional()
    .describe("Milliseconds added to every window to absorb network jitter, 0 to 60000. Default: 25"),
  shape: s
    .oneOf("burst", "smooth")
    .optional()
    .describe(
      "burst sends as soon as a window allows; smooth spaces requests evenly, at (N - 2) / T for a rate of N in T. Default: burst",
    ),
};
const budgetSchema = s.object(budget);
const roleSchema = s.object({
  ...budget,
  max_delay_ms: s
    .number()
    .min(0)
    .optional()
    .describe(
      "Longest wait for a rate limit or cooldown, in milliseconds, 0 or more. A call that would wait longer is refused at once. Default: inherited; otherwise 200 (metadata), 250 (landing), 2000 (artifact)",
    ),
  count_head: s
    .boolean()
    .optional()
    .describe("Whether HEAD requests count toward the rate limits. Default: inherited; otherwise false"),
  call_costs: s
    .map(unitSchema, s.integer().min(0).max(MAX_COST_LIMIT))
    .optional()
    .describe(
      "Costs of a call in the units that the call does not set itself, whole numbers of 0 or more: credits: 10. Default: inherited; otherwise 1",
    ),
  cost_headers: s
    .map(unitSchema, s.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "expected the name of a response header"))
    .optional()
    .describe(
      "Response headers that say what the call really used, by unit: credits: X-Credits-Used. The difference is returned or charged afterwards. Default: inherited; otherwise none",
    ),
  per: s
    .oneOf("all", "partition")
    .optional()
    .describe(
      "all: one budget for all calls; partition: one budget for each partition that a call names, below the common total. Calls without a partition share one budget. Default: inherited; otherwise all",
    ),
  mode: modeSchema,
});
const roles = {
  metadata: roleSchema
    .optional()
    .describe("Limits of requests for metadata: API calls and other small answers. Default: inherited"),
  landing: roleSchema.optional().describe("Limits of requests for landing pages of articles. Default: inherited"),
  artifact: roleSchema.optional().describe("Limits of requests for files. Default: inherited"),
};
const host = {
  total: budgetSchema
    .optional()
    .describe(
      "Budget over all roles together; a request needs a free slot in its role and in the total. Default: no total",
    ),
  ...roles,
};

const tier = s.object(host);
const withSchema = s
  .map(
    s.string().regex(/^(?:mailto|[A-Z_][A-Z0-9_]*)$/, "expected mailto, or an environment variable in capitals"),
    tier,
  )
  .optional()
  .describe(
    "Limits of requests that carry a key or the email address, by the name that identities.yaml gives it: an environment variable such as API_KEY, or mailto. Fields that are set here replace those of this entry, and these requests have a budget of their own. If several apply, the last one wins. Default: none",
  );

const adaptsSchema = s
  .boolean()
  .optional()
  .describe("Whether the rates of this entry adapt to 429 responses. Default: inherited; otherwise aimd.enabled");

const memberListSchema = s.list(s.string().convert(parseMember)).min(1);

const serviceSchema = s.object({
  members: s
    .union(
      [
        memberListSchema,
        s.object({
          replace: memberListSchema.describe(
            "The only members: those of the shipped service are dropped. At least one. Default: none",
          ),
        }),
      ],
      "expected a list of hosts, *.suffix or host/path, or { replace: [...] }",
    )
    .optional()
    .describe(
      "Hosts, *.suffix for every host below a name, or host/path for one part of a host; at least one, unless per_host is true. They are added to the shipped members; { replace: [...] }, or !replace in YAML, replaces those. Default: none",
    ),
  per_host: s
    .boolean()
    .optional()
    .describe(
      "One budget for each host that the calls of this service go to, in addition to the limits of the host. Calls select the service with the option service, and members must be absent. Default: false",
    ),
  with: withSchema,
  aimd: adaptsSchema,
  ...host,
});

const servicesSchema = s.map(
  s.string().regex(/^[^\s:=;,/]+$/, "expected a name without spaces and without any of : = ; , /"),
  serviceSchema,
);

const aimdSchema = s.object({
  enabled: s.boolean().default(DEFAULT_AIMD.enabled).describe("Whether rates adapt. Default: false"),
  window_s: s
    .number()
    .above(0)
    .default(DEFAULT_AIMD.window_s)
    .describe("Length of one observation, in seconds, above 0. Default: 60"),
  high_429_ratio: s
    .number()
    .above(0)
    .max(1)
    .default(DEFAULT_AIMD.high_429_ratio)
    .describe(
      "Share of 429 responses in a window from which the rate is lowered, above 0 and at most 1. Default: 0.05",
    ),
  increase_step_pct: s
    .number()
    .min(0)
    .max(100)
    .default(DEFAULT_AIMD.increase_step_pct)
    .describe("Percent of the configured rate added after a window without too many 429, 0 to 100. Default: 5"),
  decrease_step_pct: s
    .number()
    .min(0)
    .below(100)
    .default(DEFAULT_AIMD.decrease_step_pct)
    .describe("Percent of the current rate taken away after a window with too many 429, 0 to below 100. Default: 20"),
  min_multiplier: s
    .number()
    .above(0)
    .max(1)
    .default(DEFAULT_AIMD.min_multiplier)
    .describe("Lowest factor of the configured rate, above 0 and at most max_multiplier. Default: 0.3"),
  max_multiplier: s
    .number()
    .above(0)
    .max(1)
    .default(DEFAULT_AIMD.max_multiplier)
    .describe("Highest factor of the configured rate, above 0 and at most 1. Default: 1"),
});

const backendSchema = s.object({
  kind: s
    .oneOf("memory", "multiprocess", "sqlite", "redis", "postgres")
    .default(DEFAULT_BACKEND.kind)
    .describe(
      "memory: this process only; multiprocess: all processes of this user on this machine; sqlite: all processes that use the same file; redis: all processes that use the same server; postgres: all processes that use the same database. Default: memory",
    ),
  dsn: s
    .string()
    .default(DEFAULT_BACKEND.dsn)
    .describe("File (sqlite) or URL (redis, postgres) of the store; empty for memory and multiprocess. Default: empty"),
  when_store_away: s
    .oneOf("share", "wait", "refuse")
    .default(DEFAULT_BACKEND.when_store_away)
    .describe(
      "What a process does while the store does not answer. share: it uses its share of each limit, and calls that need more wait; wait: calls are queued until the store is back; refuse: calls fail at once. Default: share",
    ),
  fleet_size: s
    .integer()
    .min(1)
    .optional()
    .describe(
      "The largest number of processes that share the store, 1 or more. A process that has not reached the store yet uses 1/fleet_size of each limit; without this key it waits. Default: the number that the store has counted",
    ),
});

const globalSchema = s.object({
  max_inflight: s
    .integer()
    .min(1)
    .optional()
    .describe(
      "Maximum number of requests in flight over all hosts, 1 or more. Default: no maximum; the shipped file sets 500",
    ),
});

export const ratelimitsSchema = s.object({
  version: versionSchema,
  extends: extendsSchema,
  mode: modeSchema,
  defaults: s
    .object(roles)
    .default({})
    .describe("Limits of hosts that are not listed, and of fields that a host does not set. Default: built-in limits"),
  hosts: s
    .map(hostNameSchema, s.object({ with: withSchema, aimd: adaptsSchema, ...host }))
    .default({})
    .describe(
      "Limits by host. An entry holds for every port of the host, except ports that the policy names as `host:port`. Default: none",
    ),
  services: servicesSchema
    .default({})
    .describe("Hosts, suffixes and paths that share one budget, by the name of the service. Default: none"),
  groups: servicesSchema.optional().describe("The former name of services. Default: none"),
  aimd: aimdSchema
    .default({})
    .describe("Adaptive rate: lowers the rate of a host that answers 429, and raises it again. Default: off"),
  backend: backendSchema.default({}).describe("Store of the limits. Default: memory"),
  global: globalSchema.default({}).describe("Limits over all hosts. Default: none"),
});

true satisfies Exact<s.InputOf<typeof ratelimitsSchema>, RatelimitsOptions>;

export type ParsedRatelimits = s.OutputOf<typeof ratelimitsSchema>;
export type ParsedAimd = ParsedRatelimits["aimd"];
export type ParsedBudgetLimits = s.OutputOf<typeof budgetSchema>;
export type ParsedRoleLimits = s.OutputOf<typeof roleSchema>;

/**
 * Parses the limits. Throws a ConfigError that lists every problem.
 * @param isMerged the options were assembled from layers that were checked
 */
export function parseRatelimits(options: RatelimitsOptions, where: string, isMerged = false): ParsedRatelimits {
  const parsed = (isMerged ? parseMerged : parseOptions)(ratelimitsSchema, options, where);
  // Not a part of the schema: a layer that sets one of the two would be compared with the default of the other.
  const { min_multiplier, max_multiplier } = parsed.aimd;
  if (min_multiplier > max_multiplier) {
    const key = options.aimd?.min_multiplier === undefined ? "max_multiplier" : "min_multiplier";
    const message = `min_multiplier ${min_multiplier} must not be above max_multiplier ${max_multiplier}`;
    throw new ConfigError([{ where, path: `aimd.${key}`, message }]);
  }
  return parsed;
}
