/** The shape of `ratelimits.yaml` and of the same as an object; keys as users write them. */
import { z } from "zod";
import { parseRates } from "../core/limits/rate.ts";
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { DEFAULT_AIMD } from "./defaults.ts";
import { assignmentsOf, canonicalHostIfValid } from "./layer.ts";
import { problemsOf } from "./validation.ts";

/** Runs a parser of the core and turns its RangeError into an issue at this place. */
function parsedBy<Input, Output>(parse: (input: Input) => Output) {
  return (input: Input, context: z.RefinementCtx): Output => {
    try {
      return parse(input);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      context.addIssue({ code: "custom", message: error.message });
      return z.NEVER;
    }
  };
}

const rates = z
  .union([z.string(), z.array(z.string()).readonly()], {
    error: "expected a rate such as 10/SECOND, or a list of rates",
  })
  .describe("Windows such as 10/SECOND, 1/3SECOND or 300/min; a list, or joined by +")
  .transform(parsedBy(parseRates));
export const hostNameSchema = z.string().transform(parsedBy(canonicalHost));

/** Shadow: everything is computed and told, and nothing is held. */
export const mode = z
  .enum(["enforce", "shadow"])
  .optional()
  .describe("shadow computes and reports what would be held or refused, and lets it go; enforce");

const budget = {
  rates: rates.optional(),
  max_concurrent: z.int().min(1).optional().describe("How many may be in flight at once"),
  shared: z.boolean().optional().describe("Whether max_concurrent counts over all processes that share a store; false"),
  guard_ms: z.number().min(0).max(60_000).optional().describe("Added to every window for the network's sake; 25"),
  shape: z.enum(["burst", "smooth"]).optional().describe("smooth spaces sends evenly at (N - 2) / T"),
};
const total = z.strictObject(budget);
const role = z.strictObject({
  ...budget,
  max_delay_ms: z.number().min(0).optional().describe("The longest wait for rates and cooldowns, judged on arrival"),
  count_head: z.boolean().optional().describe("Whether HEAD requests spend tokens"),
  mode,
});
const roles = { metadata: role.optional(), landing: role.optional(), artifact: role.optional() };

const member = z.string().transform(
  parsedBy(text => {
    const slash = text.indexOf("/");
    if (slash < 0) return { host: canonicalHost(text), path: "" };
    return { host: canonicalHost(text.slice(0, slash)), path: text.slice(slash).replace(/\/+$/, "") };
  }),
);

export const ratelimitsSchema = z.strictObject({
  version: z.literal(1).optional(),
  /** Whether a file adds to the shipped one or stands alone. */
  extends: z.enum(["default", "none"]).optional(),
  mode,
  defaults: z.strictObject(roles).prefault({}),
  hosts: z.record(hostNameSchema, z.strictObject({ total: total.optional(), ...roles })).prefault({}),
  groups: z
    .record(
      z.string().min(1),
      z.strictObject({
        members: z.array(member).min(1).optional(),
        per_host: z.boolean().optional().describe("Each host that its calls go to has a budget of its own"),
        total: total.optional(),
        ...roles,
      }),
    )
    .prefault({}),
  aimd: z
    .strictObject({
      enabled: z.boolean().default(DEFAULT_AIMD.enabled),
      window_s: z.number().positive().default(DEFAULT_AIMD.window_s),
      high_429_ratio: z.number().gt(0).max(1).default(DEFAULT_AIMD.high_429_ratio),
      increase_step_pct: z.number().min(0).max(100).default(DEFAULT_AIMD.increase_step_pct),
      decrease_step_pct: z.number().min(0).lt(100).default(DEFAULT_AIMD.decrease_step_pct),
      min_multiplier: z.number().gt(0).max(1).default(DEFAULT_AIMD.min_multiplier),
      max_multiplier: z.number().gt(0).max(1).default(DEFAULT_AIMD.max_multiplier),
    })
    .refine(({ min_multiplier, max_multiplier }) => min_multiplier > 1 || min_multiplier <= max_multiplier, {
      path: ["min_multiplier"],
      message: "min_multiplier must not be above max_multiplier",
    })
    .prefault({}),
  backend: z
    .strictObject({
      kind: z.enum(["memory", "multiprocess", "sqlite", "redis"]).default("memory"),
      dsn: z.string().default(""),
    })
    .prefault({}),
  global: z.strictObject({ max_inflight: z.int().min(1).optional() }).prefault({}),
});

/** What a user may write. */
export type RatelimitsOptions = z.input<typeof ratelimitsSchema>;
/** What a user may write for one host, and for one of its roles. */
export type HostLimits = NonNullable<RatelimitsOptions["hosts"]>[string];
export type RoleLimits = NonNullable<HostLimits["metadata"]>;
export type ParsedAimd = z.output<typeof ratelimitsSchema>["aimd"];
export type ParsedBudgetLimits = z.output<typeof total>;
export type ParsedRoleLimits = z.output<typeof role>;
export type ParsedHostLimits = z.output<typeof ratelimitsSchema>["hosts"][string];

/** Reads the limits, or throws a ConfigError that lists everything wrong with them. */
export function parseRatelimits(options: RatelimitsOptions, where: string): z.output<typeof ratelimitsSchema> {
  return parseOptions(ratelimitsSchema, options, where);
}

/** Reads options by a schema, or throws a ConfigError that lists everything wrong with them. */
export function parseOptions<Schema extends z.ZodType>(
  schema: Schema,
  options: unknown,
  where: string,
): z.output<Schema> {
  const problems = [...problemsOf(schema, assignmentsOf(options, where), where), ...duplicateHosts(options, where)];
  if (problems.length > 0) throw new ConfigError(problems);
  return schema.parse(options);
}

/** A host that is listed twice, in two spellings, would lose one of its entries. */
function duplicateHosts(options: unknown, where: string): readonly ConfigProblem[] {
  const { hosts } = (options ?? {}) as { readonly hosts?: unknown };
  if (typeof hosts !== "object" || hosts === null) return [];
  const names = Object.keys(hosts).map(canonicalHostIfValid);
  const seen = new Set<string>();
  const duplicates = names.filter(name => seen.size === seen.add(name).size);
  return duplicates.map(name => ({ where, path: `hosts.${name}`, message: `${name} is listed twice` }));
}
