import { NO_UNIT } from "./breaker-policy.ts";
import type { BudgetPolicy } from "./budget-policy.ts";
import type { Route, ScopeEntry } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { memberText } from "./member.ts";
import { ROLES, type Role } from "./roles.ts";
import { serviceName, withoutTier } from "./service-name.ts";
import type { PolicyTarget } from "./target.ts";

/** `enforce` applies a limit; `shadow` only reports what it would have done. */
export type PolicyMode = "enforce" | "shadow";

/** The effective limits and breaker settings of one role at one host or service. A field that does not apply is absent. */
export interface PolicyRow {
  /** The host, `service <name>` for a budget that its members share, or `(all other hosts)`; with a key, `… with <name>`. */
  readonly host: string;
  /** metadata, landing or artifact; `total`, or `total of <name>`, for a budget over all roles. */
  readonly role: string;
  /**
   * The rate limits, joined by ` + `: `10/SECOND + 5000/HOUR`; those of other units follow: `credits 100000/DAY`. Empty
   * for no rate limit.
   */
  readonly rates: string;
  /** Longest wait for a rate limit or cooldown, in milliseconds. Absent for a total. */
  readonly maxDelayMs?: number;
  /** Whether HEAD requests count toward the rate limits. Absent for a total. */
  readonly countsHead?: boolean;
  /** Maximum number of requests in flight: the lowest of the role and the totals above it. Absent for no maximum. */
  readonly maxConcurrent?: number;
  /** Whether the rate limits are enforced. Absent for a total. */
  readonly mode?: PolicyMode;
  /** Whether the breaker is enforced. This and the next four are absent for totals, and for services with `per_host`. */
  readonly breakerMode?: PolicyMode;
  /** Consecutive failures that open the circuit. */
  readonly failMax?: number;
  /** Time from opening the circuit to the first trial call, in seconds. */
  readonly resetS?: number;
  /** Longest cooldown that a Retry-After can cause, in seconds. */
  readonly retryAfterCapS?: number;
  /** Calls that may be in flight while the circuit is half-open. */
  readonly trialCalls?: number;
  /** Where limits are stored: memory, multiprocess, sqlite, redis or postgres. */
  readonly backend: string;
  /** Whether the rate adapts to 429 responses: `aimd` of its entry, else `aimd.enabled`. */
  readonly aimd: boolean;
}

/** The breaker settings of a listed host or service, of all other hosts, or of a resolver. */
export interface BreakerRow {
  /** The host, `service <name>`, `(all other hosts)`, or `resolver <name>`. */
  readonly name: string;
  /** Absent for a resolver, which has one circuit. */
  readonly role?: Role;
  readonly failMax: number;
  readonly resetS: number;
  readonly trialCalls: number;
  /** Absent for a resolver: a Retry-After concerns a host. */
  readonly retryAfterCapS?: number;
  /** Absent for a resolver: the mode of each host decides. */
  readonly mode?: PolicyMode;
}

/** A service and its members. */
export interface ServiceRow {
  readonly name: string;
  /** Hosts, `*.suffix` and `host/path`; empty for a service with `per_host`. */
  readonly members: readonly string[];
}

const ALL_OTHER_HOSTS = "(all other hosts)";

/** The defaults, every listed host and every service, each without a key and with each set of its keys. */
export function policyRows(policy: LoadedPolicy): readonly PolicyRow[] {
  const { resolved } = policy.ratelimits;
  const entryRows = (entry: ScopeEntry) => {
    const { name = ALL_OTHER_HOSTS } = entry;
    return rowsOf(policy, name, unitOf(policy, entry), role => resolved.routeOf(entry, role));
  };
  // breakers.yaml may list hosts that have the default limits.
  const breakerHosts = Object.keys(policy.breakers.options.hosts ?? {}).filter(host => {
    const { service, listed = [] } = resolved.scopeOf(host);
    return service === undefined && listed.length === 0;
  });
  return [
    ...resolved.entries.filter(entry => !isService(entry)).flatMap(entryRows),
    ...breakerHosts.flatMap(host => hostPolicyRows(policy, { host })),
    ...resolved.entries.filter(isService).flatMap(entryRows),
  ];
}

/** The rows of one host, or of one path of it: its roles, then the totals above them. */
export function hostPolicyRows(
  policy: LoadedPolicy,
  { host, path, sentKeys }: Pick<PolicyTarget, "host"> & Partial<PolicyTarget>,
): readonly PolicyRow[] {
  const { resolved } = policy.ratelimits;
  const unit = policy.breakers.resolved.route(host, path).circuit;
  // A host that sets limits of one role only shares the budgets of the others with its service.
  return rowsOf(policy, undefined, unit, role => resolved.route(host, role, path, sentKeys));
}

/** The breaker settings of all other hosts, of each host and service that breakers.yaml lists, and of each resolver. */
export function breakerRows(policy: LoadedPolicy): readonly BreakerRow[] {
  const { options, resolved } = policy.breakers;
  const units = [NO_UNIT, ...Object.keys(options.hosts ?? {}), ...Object.keys(options.services ?? {}).map(serviceName)];
  const resolvers = Object.keys(options.resolvers ?? {}).map(name => {
    const { failMax, resetUs, trialCalls } = resolved.resolver(name);
    return { name: `resolver ${name}`, failMax, resetS: resetUs / 1e6, trialCalls };
  });
  return [...units.flatMap(unit => unitBreakerRows(policy, unit)), ...resolvers];
}

/** The breaker settings of one host or path, by role. */
export function hostBreakerRows(
  policy: LoadedPolicy,
  { host, path }: { readonly host: string; readonly path?: string | undefined },
): readonly BreakerRow[] {
  return unitBreakerRows(policy, policy.breakers.resolved.route(host, path).circuit);
}

function unitBreakerRows(policy: LoadedPolicy, unit: string): readonly BreakerRow[] {
  return ROLES.map(role => {
    const { breakerMode: mode, ...cells } = breakerCells(policy, unit, role);
    return { name: unit === NO_UNIT ? ALL_OTHER_HOSTS : unit, role, ...cells, mode };
  });
}

export function serviceRows(policy: LoadedPolicy): readonly ServiceRow[] {
  return policy.ratelimits.resolved.entries
    .filter(entry => isService(entry) && entry.scope.tiers?.length === 0)
    .map(({ scope, members }) => ({ name: scope.service ?? "", members: members.map(memberText) }));
}

function isService({ scope }: ScopeEntry): boolean {
  return scope.service !== undefined && (scope.listed ?? []).length === 0;
}

/** The owner of an entry's circuits; undefined for a service with `per_host`, whose hosts have their own. */
function unitOf({ breakers }: LoadedPolicy, { scope, members }: ScopeEntry): string | undefined {
  const host = scope.listed?.at(-1);
  if (host !== undefined) return breakers.resolved.route(host).circuit;
  if (scope.service === undefined) return NO_UNIT;
  return members.length === 0 ? undefined : serviceName(scope.service);
}

/** @param shown the name in all rows; if undefined, each row has the name of its budget */
function rowsOf(
  policy: LoadedPolicy,
  shown: string | undefined,
  unit: string | undefined,
  routeOf: (role: Role) => Route,
): readonly PolicyRow[] {
  const { resolved, options } = policy.ratelimits;
  const backend = options.backend?.kind ?? "memory";
  const rows = ROLES.map(role => {
    const { name, roleBudget, above } = routeOf(role);
    const maxConcurrent = Math.min(roleBudget.maxConcurrent, ...above.map(total => total.policy.maxConcurrent));
    const { maxDelayMs, countsHead, isShadow } = roleBudget;
    return {
      host: shown ?? name,
      role,
      ...budgetCells({ ...roleBudget, maxConcurrent }),
      maxDelayMs,
      countsHead,
      mode: modeOf(isShadow),
      ...(unit === undefined ? {} : breakerCells(policy, unit, role)),
      backend,
      aimd: roleBudget.isAdaptive ?? resolved.aimd.enabled,
    };
  });
  const { name: metadataName, above } = routeOf("metadata");
  const host = shown ?? metadataName;
  const totals = above.map(({ name, policy: total }) => ({
    host,
    role: withoutTier(name) === withoutTier(host) ? "total" : `total of ${name}`,
    ...budgetCells(total),
    backend,
    aimd: resolved.aimd.enabled,
  }));
  return [...rows, ...totals];
}

function budgetCells({ labels, costs, maxConcurrent }: BudgetPolicy): Pick<PolicyRow, "rates" | "maxConcurrent"> {
  const rates = [...labels, ...costs.flatMap(cost => cost.labels)].join(" + ");
  return Number.isFinite(maxConcurrent) ? { rates, maxConcurrent } : { rates };
}

type BreakerCells = Required<Pick<PolicyRow, "breakerMode" | "failMax" | "resetS" | "retryAfterCapS" | "trialCalls">>;

function breakerCells({ breakers }: LoadedPolicy, unit: string, role: Role): BreakerCells {
  const { failMax, resetUs, trialCalls } = breakers.resolved.circuit(unit, role);
  return {
    breakerMode: modeOf(breakers.resolved.isShadow(unit)),
    failMax,
    resetS: resetUs / 1e6,
    retryAfterCapS: breakers.resolved.retryAfterCapMs(unit) / 1000,
    trialCalls,
  };
}

function modeOf(isShadow: boolean): PolicyMode {
  return isShadow ? "shadow" : "enforce";
}
