import type { AimdPolicy } from "../core/limits/aimd.ts";
import { formatRates, parseRates, type Rate } from "../core/limits/rate.ts";
import { evenSpacingUs } from "../core/limits/spacing.ts";
import { makeWindow, type Window } from "../core/limits/window-log.ts";
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError } from "../errors.ts";
import { DEFAULT_AIMD, DEFAULT_GUARD_MS, DEFAULT_LIMITS } from "./defaults.ts";
import {
  type ParsedAimd,
  type ParsedBudgetLimits,
  type ParsedHostLimits,
  type ParsedRoleLimits,
  parseRatelimits,
  type RatelimitsOptions,
} from "./ratelimit-schema.ts";
import { ROLES, type Role } from "./roles.ts";

/** What one budget allows, complete and frozen. */
export interface BudgetPolicy {
  readonly rates: readonly Rate[];
  readonly guardUs: number;
  /** The least distance between two sends of a smoothed budget; 0 where bursts are fine. */
  readonly spacingUs: number;
  /** The rates with their guard, as the log enforces them. */
  readonly windows: readonly Window[];
  /** The rates as people write them, made once because refusals quote them. */
  readonly labels: readonly string[];
  /** Infinity for no cap. */
  readonly maxConcurrent: number;
  /** The cap counts over all processes that share a store. */
  readonly sharesSlots: boolean;
}

/** A budget of one role, with how its callers are treated. */
export interface RoleBudgetPolicy extends BudgetPolicy {
  readonly maxDelayMs: number;
  readonly countsHead: boolean;
  /** What would be held or refused is told, and let go. */
  readonly isShadow: boolean;
}

/** A budget that several lanes share. */
export interface TotalBudget {
  readonly name: string;
  readonly policy: BudgetPolicy;
}

/** Which budgets a request draws on: its lane, then what stands above it, nearest first. */
export interface Route {
  /** The host, or the group whose members share one lane. */
  readonly name: string;
  readonly roleBudget: RoleBudgetPolicy;
  readonly above: readonly TotalBudget[];
}

/** Where the gate asks which limits hold. */
export interface LimitPolicies {
  readonly aimd: AimdPolicy;
  /** The ceiling over all requests in flight; Infinity for none. */
  readonly maxInFlight: number;
  /** Throws a RangeError for what is not a host. */
  route(host: string, role: Role, path?: string): Route;
  /** True when paths of this canonical host have budgets of their own. */
  hasPaths(host: string): boolean;
  /** The route by which a lane of that name is reached, a host's or a group's; undefined when there is none any more. */
  named(name: string, role: Role): Route | undefined;
}

export const NO_AIMD: AimdPolicy = aimdPolicy(DEFAULT_AIMD);
export const UNLIMITED: BudgetPolicy = freezeBudget({}, { rates: [], guardUs: 0 });

type RolePolicies = Readonly<Record<Role, RoleBudgetPolicy>>;

interface HostEntry {
  readonly name: string;
  readonly path: string;
  readonly rolePolicies: RolePolicies;
  readonly above: readonly TotalBudget[];
}

/** A group whose calls are limited for each host they go to: keys of the form `service:host`. */
interface PerHostGroup {
  readonly rolePolicies: RolePolicies;
  readonly total: ParsedBudgetLimits | undefined;
}

/**
 * Limits from the shape of `ratelimits.yaml`.
 * What a host does not name it inherits, field by field: from its group, then from `defaults`, then from ours.
 * Members of a group that are not listed among the hosts share the group's lanes; a listed one has lanes of its own
 * and shares the group's `total`.
 */
export function limitPoliciesFrom(options: RatelimitsOptions, where: string): LimitPolicies {
  const { mode, defaults, hosts, groups, aimd, global } = parseRatelimits(options, where);
  const base = {} as Record<Role, ParsedRoleLimits>;
  for (const role of ROLES) {
    const { rates, ...rest } = DEFAULT_LIMITS[role];
    base[role] = { rates: parseRates(rates), ...rest, mode, ...named(defaults[role]) };
  }
  const fallback = rolePoliciesOf(base, {});
  const entries = new Map<string, HostEntry[]>();
  const add = (host: string, entry: HostEntry) => entries.set(host, [...(entries.get(host) ?? []), entry]);
  const claimed = new Map<string, { readonly inherited: ParsedHostLimits; readonly above: readonly TotalBudget[] }>();
  const taken = new Map<string, string>();
  const byGroup = new Map<string, HostEntry>();
  const perHost = new Map<string, PerHostGroup>();
  for (const [group, { members, per_host, ...options }] of Object.entries(groups)) {
    if (per_host) {
      const message = members && "a group that is limited per host has no members: calls name it as their service";
      if (message) throw new ConfigError([{ where, path: `groups.${group}.members`, message }]);
      perHost.set(groupName(group), { rolePolicies: rolePoliciesOf(base, options), total: options.total });
      continue;
    }
    if (members === undefined) {
      throw new ConfigError([
        { where, path: `groups.${group}.members`, message: "a group needs members: hosts, or host/path" },
      ]);
    }
    const name = groupName(group);
    const above = totalBudgets(name, options.total);
    const rolePolicies = rolePoliciesOf(base, options);
    byGroup.set(name, { name, path: "", rolePolicies, above });
    for (const { host, path } of members) {
      const place = `${host}${path}`;
      const other = taken.get(place);
      if (other !== undefined) {
        const message = `${place} is a member of ${other} already: it can share one budget only`;
        throw new ConfigError([{ where, path: `groups.${group}.members`, message }]);
      }
      taken.set(place, group);
      if (path === "" && Object.hasOwn(hosts, host)) claimed.set(host, { inherited: options, above });
      else add(host, { name, path, rolePolicies, above });
    }
  }
  for (const [host, options] of Object.entries(hosts)) {
    const group = claimed.get(host);
    const inherited = mergeRoles(base, group?.inherited ?? {});
    const above = [...totalBudgets(host, options.total), ...(group?.above ?? [])];
    add(host, { name: host, path: "", rolePolicies: rolePoliciesOf(inherited, options), above });
  }
  // The longest path first: it is the most particular.
  for (const list of entries.values()) list.sort((a, b) => b.path.length - a.path.length);

  return {
    aimd: aimdPolicy(aimd),
    maxInFlight: global.max_inflight ?? Number.POSITIVE_INFINITY,
    route(text, role, path = "") {
      const host = canonicalHost(text);
      const entry = entries.get(host)?.find(candidate => isBelow(path, candidate.path));
      if (entry === undefined) return { name: host, roleBudget: fallback[role], above: [] };
      return { name: entry.name, roleBudget: entry.rolePolicies[role], above: entry.above };
    },
    hasPaths: host => entries.get(host)?.some(({ path }) => path !== "") ?? false,
    named(name, role) {
      if (!isGroupName(name)) return this.route(name, role);
      const entry = byGroup.get(name);
      if (entry !== undefined) return { name, roleBudget: entry.rolePolicies[role], above: entry.above };
      const colon = name.indexOf(":");
      const each = perHost.get(name.slice(0, colon));
      if (each === undefined) return undefined;
      // What its server allows in all holds whoever asks.
      const { above } = this.route(name.slice(colon + 1), role);
      return { name, roleBudget: each.rolePolicies[role], above: [...totalBudgets(name, each.total), ...above] };
    },
  };
}

function aimdPolicy(options: ParsedAimd): AimdPolicy {
  return Object.freeze({
    enabled: options.enabled,
    windowUs: options.window_s * 1e6,
    highRatio: options.high_429_ratio,
    increase: options.increase_step_pct / 100,
    decrease: options.decrease_step_pct / 100,
    minMultiplier: options.min_multiplier,
    maxMultiplier: options.max_multiplier,
  });
}

/** A space cannot stand in a host, so that a group never takes a host's place. */
/**
 * The limits of one process of several that cannot speak to each other: each rate divided by their number. A rate too
 * small to be divided is stretched instead.
 */
export function shareOf(limits: LimitPolicies, processes: number): LimitPolicies {
  if (processes <= 1) return limits;
  const known = new WeakMap<BudgetPolicy, BudgetPolicy>();
  const share = <Policy extends BudgetPolicy>(policy: Policy): Policy => {
    const made = known.get(policy) ?? dividedPolicy(policy, processes);
    known.set(policy, made);
    return made as Policy;
  };
  const routed = ({ name, roleBudget, above }: Route): Route => ({
    name,
    roleBudget: share(roleBudget),
    above: above.map(budget => ({ name: budget.name, policy: share(budget.policy) })),
  });
  return {
    aimd: limits.aimd,
    maxInFlight: limits.maxInFlight,
    route: (host, role, path) => routed(limits.route(host, role, path)),
    hasPaths: host => limits.hasPaths(host),
    named: (name, role) => {
      const route = limits.named(name, role);
      return route && routed(route);
    },
  };
}

function dividedPolicy<Policy extends BudgetPolicy>(policy: Policy, processes: number): Policy {
  const rates = policy.rates.map(({ limit, windowUs }) =>
    limit >= processes
      ? { limit: Math.floor(limit / processes), windowUs }
      : { limit: 1, windowUs: windowUs * Math.ceil(processes / limit) },
  );
  return Object.freeze({
    ...policy,
    rates,
    spacingUs: policy.spacingUs * processes,
    maxConcurrent: policy.sharesSlots
      ? Math.max(1, Math.floor(policy.maxConcurrent / processes))
      : policy.maxConcurrent,
    windows: rates.map(({ limit, windowUs }) => makeWindow(limit, windowUs + policy.guardUs)),
    labels: rates.map(rate => `${formatRates([rate])} as a share of ${processes}`),
  });
}

export function groupName(group: string): string {
  return `group ${group}`;
}

export function isGroupName(name: string): boolean {
  return name.startsWith("group ");
}

function isBelow(path: string, prefix: string): boolean {
  return prefix === "" || path === prefix || path.startsWith(`${prefix}/`) || path.startsWith(`${prefix}?`);
}

function mergeRoles(
  base: Readonly<Record<Role, ParsedRoleLimits>>,
  over: ParsedHostLimits,
): Record<Role, ParsedRoleLimits> {
  const merged = {} as Record<Role, ParsedRoleLimits>;
  for (const role of ROLES) merged[role] = { ...base[role], ...named(over[role]) };
  return merged;
}

/** Only what was named: an `undefined` would wipe out what is inherited, and a rate wiped out is no limit at all. */
function named(options: ParsedRoleLimits | undefined): ParsedRoleLimits {
  return Object.fromEntries(Object.entries(options ?? {}).filter(([, value]) => value !== undefined));
}

function rolePoliciesOf(base: Readonly<Record<Role, ParsedRoleLimits>>, over: ParsedHostLimits): RolePolicies {
  const merged = mergeRoles(base, over);
  const rolePolicies = {} as Record<Role, RoleBudgetPolicy>;
  for (const role of ROLES) rolePolicies[role] = roleBudgetPolicy(merged[role]);
  return rolePolicies;
}

/** A lane's policy from options that already carry whatever they inherit. */
export function roleBudgetPolicy(options: ParsedRoleLimits): RoleBudgetPolicy {
  const { max_delay_ms = 0, count_head = true, mode } = options;
  return Object.freeze({
    ...budgetPolicyOf(options),
    maxDelayMs: max_delay_ms,
    countsHead: count_head,
    isShadow: mode === "shadow",
  });
}

function totalBudgets(name: string, total: ParsedBudgetLimits | undefined): readonly TotalBudget[] {
  return total === undefined ? [] : [{ name, policy: budgetPolicyOf(total) }];
}

function budgetPolicyOf(options: ParsedBudgetLimits): BudgetPolicy {
  const guardUs = Math.round((options.guard_ms ?? DEFAULT_GUARD_MS) * 1000);
  return freezeBudget(options, { rates: options.rates ?? [], guardUs });
}

function freezeBudget(
  { max_concurrent = Number.POSITIVE_INFINITY, shared = false, shape }: ParsedBudgetLimits,
  { rates, guardUs }: { readonly rates: readonly Rate[]; readonly guardUs: number },
): BudgetPolicy {
  const windows = rates.map(({ limit, windowUs }) => makeWindow(limit, windowUs + guardUs));
  const spacingUs = shape === "smooth" ? evenSpacingUs(rates) : 0;
  const labels = rates.map(rate => formatRates([rate]));
  const sharesSlots = shared && Number.isFinite(max_concurrent);
  return Object.freeze({ rates, guardUs, spacingUs, windows, labels, maxConcurrent: max_concurrent, sharesSlots });
}
