/** A policy of which it is obvious which limits apply to a request, and its form as `ratelimits.yaml`. */
import type { RatelimitsOptions, RoleLimits } from "../../../src/policy/ratelimit-options.ts";
import type { Role } from "../../../src/policy/roles.ts";

/** At most `limit` units in any interval of `ms`. */
export interface PlainWindow {
  readonly limit: number;
  readonly ms: number;
}

export interface PlainBudget {
  readonly requests: readonly PlainWindow[];
  readonly credits: readonly PlainWindow[];
  readonly isSmooth: boolean;
}

export type PlainRoles = Readonly<Record<Role, PlainBudget>>;

export interface PlainPolicy {
  readonly guardMs: number;
  readonly maxDelayMs: number;
  readonly countsHead: boolean;
  readonly callCredits: number;
  readonly maxConcurrent: number | undefined;
  readonly isAdaptive: boolean;
  readonly defaults: PlainRoles;
  /** Hosts with limits of their own for every role. */
  readonly hosts: Readonly<Record<string, { readonly roles: PlainRoles; readonly total: PlainBudget | undefined }>>;
  /** One service, or none. Members without limits of their own share its role budgets. */
  readonly service:
    | { readonly members: readonly string[]; readonly roles: PlainRoles; readonly total: PlainBudget }
    | undefined;
}

/** A budget that a request is charged to. Budgets of equal names are the same budget. */
export interface NamedBudget {
  readonly name: string;
  readonly budget: PlainBudget;
}

/** The budgets of a request, its role's first. */
export function budgetsOf(policy: PlainPolicy, host: string, role: Role): readonly [NamedBudget, ...NamedBudget[]] {
  const listed = policy.hosts[host];
  const service = policy.service?.members.includes(host) ? policy.service : undefined;
  const totals = [
    ...(listed?.total === undefined ? [] : [{ name: `total of ${host}`, budget: listed.total }]),
    ...(service === undefined ? [] : [{ name: "total of the service", budget: service.total }]),
  ];
  if (listed !== undefined) return [{ name: `${host} ${role}`, budget: listed.roles[role] }, ...totals];
  if (service !== undefined) return [{ name: `service ${role}`, budget: service.roles[role] }, ...totals];
  return [{ name: `${host} ${role}`, budget: policy.defaults[role] }];
}

export function optionsOf(policy: PlainPolicy): RatelimitsOptions {
  const { guardMs, maxDelayMs, countsHead, callCredits, maxConcurrent, isAdaptive, service } = policy;
  const limitsOf = ({ requests, credits, isSmooth }: PlainBudget) =>
    ({
      rates: requests.length === 0 ? "none" : requests.map(rateText),
      costs: { credits: credits.length === 0 ? "none" : credits.map(rateText) },
      guard_ms: guardMs,
      shape: isSmooth ? "smooth" : "burst",
      ...(maxConcurrent === undefined ? {} : { max_concurrent: maxConcurrent }),
    }) as const;
  const roleOf = (budget: PlainBudget): RoleLimits => ({
    ...limitsOf(budget),
    max_delay_ms: maxDelayMs,
    count_head: countsHead,
    call_costs: { credits: callCredits },
  });
  const rolesOf = ({ metadata, landing, artifact }: PlainRoles) => ({
    metadata: roleOf(metadata),
    landing: roleOf(landing),
    artifact: roleOf(artifact),
  });
  return {
    defaults: rolesOf(policy.defaults),
    hosts: Object.fromEntries(
      Object.entries(policy.hosts).map(([host, { roles, total }]) => [
        host,
        { ...rolesOf(roles), ...(total === undefined ? {} : { total: limitsOf(total) }) },
      ]),
    ),
    ...(service === undefined
      ? {}
      : { services: { one: { members: service.members, ...rolesOf(service.roles), total: limitsOf(service.total) } } }),
    // Every stretched window is a whole number of milliseconds: 80 / 0.8 and 80 / 0.64.
    aimd: { enabled: isAdaptive, window_s: 0.5, decrease_step_pct: 20, increase_step_pct: 36, min_multiplier: 0.64 },
  };
}

function rateText({ limit, ms }: PlainWindow): string {
  return `${limit}/${ms}ms`;
}
