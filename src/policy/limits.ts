import type { AimdPolicy } from "../core/limits/aimd.ts";
import { parseRates } from "../core/limits/rate.ts";
import { canonicalHost } from "../core/text/host.ts";
import { ConfigError } from "../errors.ts";
import { type BudgetPolicy, budgetPolicy, type RoleBudgetPolicy, roleBudgetPolicy } from "./budget-policy.ts";
import { DEFAULT_AIMD, DEFAULT_LIMITS } from "./defaults.ts";
import { groupName, isGroupName } from "./group-name.ts";
import {
  effectiveValue,
  type LimitScope,
  ROLE_LIMIT_FIELDS,
  type RoleLimitField,
  roleLimitPaths,
  totalPlaces,
  valueAt,
} from "./precedence.ts";
import {
  type ParsedAimd,
  type ParsedBudgetLimits,
  type ParsedRatelimits,
  type ParsedRoleLimits,
  parseRatelimits,
  type RatelimitsOptions,
} from "./ratelimit-schema.ts";
import { ROLES, type Role } from "./roles.ts";

/** A budget that several roles or hosts share. */
export interface TotalBudget {
  readonly name: string;
  readonly policy: BudgetPolicy;
}

/** The budgets that a request is charged to: its role's, then the totals above it, nearest first. */
export interface Route {
  /** The host, or the group whose members share one budget for each role. */
  readonly name: string;
  readonly roleBudget: RoleBudgetPolicy;
  readonly above: readonly TotalBudget[];
}

/** The limits of every host, as the gate reads them. */
export interface LimitPolicies {
  readonly aimd: AimdPolicy;
  /** Maximum number of requests in flight over all hosts; Infinity for no maximum. */
  readonly maxInFlight: number;
  /** Throws a RangeError when the text is not a host. */
  route(host: string, role: Role, path?: string): Route;
  /** True when paths of this canonical host have budgets of their own. */
  hasPaths(host: string): boolean;
  /** The route of the budget with that name, of a host or a group; undefined when the policy no longer has it. */
  routeByName(name: string, role: Role): Route | undefined;
}

/** One entry of the policy: a listed host, a group, or the defaults. */
export interface ScopeEntry {
  readonly scope: LimitScope;
  /** The host, or `group <name>`; undefined for the defaults. */
  readonly name: string | undefined;
  /** The hosts and paths of a group; empty for a group with `per_host`. */
  readonly members: readonly { readonly host: string; readonly path: string }[];
}

/** Limits that were made from a policy, and can say which entries they were made of. */
export interface ConfiguredLimits extends LimitPolicies {
  /** The defaults, then the listed hosts, then the groups, each once. */
  readonly entries: readonly ScopeEntry[];
  /** The entry that decides for a host and path. */
  scopeOf(host: string, path?: string): LimitScope;
  /** The budgets of an entry by itself, without naming a host that belongs to it. */
  routeOf(entry: ScopeEntry, role: Role): Route;
}

export const NO_AIMD: AimdPolicy = aimdPolicy(DEFAULT_AIMD);

const BUILT_IN = Object.fromEntries(
  ROLES.map(role => [role, { ...DEFAULT_LIMITS[role], rates: parseRates(DEFAULT_LIMITS[role].rates) }]),
) as Record<Role, ParsedRoleLimits>;

/** The budgets of one scope, by role. */
interface ScopeBudgets {
  readonly scope: LimitScope;
  readonly name: string;
  readonly rolePolicies: Readonly<Record<Role, RoleBudgetPolicy>>;
  readonly above: readonly TotalBudget[];
}

interface RoutedPath {
  readonly path: string;
  readonly budgets: ScopeBudgets;
}

/**
 * Limits from options in the shape of `ratelimits.yaml`.
 * Members of a group that are not listed under `hosts` share the group's budgets. A member that is listed has budgets of
 * its own, which inherit from the group, and shares the group's `total`.
 */
export function limitPoliciesFrom(options: RatelimitsOptions, where: string): ConfiguredLimits {
  const document = parseRatelimits(options, where);
  const members = groupMembers(document, where);
  const defaults = budgetsOf(document, {}, "");
  const routed = new Map<string, RoutedPath[]>();
  const add = (host: string, path: string, budgets: ScopeBudgets) =>
    routed.set(host, [...(routed.get(host) ?? []), { path, budgets }]);
  const groups = new Map<string, ScopeBudgets>();
  const groupOfHost = new Map<string, string>();
  for (const group of Object.keys(document.groups)) {
    const name = groupName(group);
    const budgets = budgetsOf(document, { group }, name);
    groups.set(name, budgets);
    for (const { host, path } of members.get(group) ?? []) {
      if (path === "" && Object.hasOwn(document.hosts, host)) groupOfHost.set(host, group);
      else add(host, path, budgets);
    }
  }
  for (const host of Object.keys(document.hosts))
    add(host, "", budgetsOf(document, { host, group: groupOfHost.get(host) }, host));
  // The longest path is the most specific one, so it is compared first.
  for (const list of routed.values()) list.sort((a, b) => b.path.length - a.path.length);

  const isPerHost = ({ scope: { group = "" } }: ScopeBudgets) => document.groups[group]?.per_host ?? false;
  const budgetsFor = (host: string, path: string) =>
    routed.get(host)?.find(candidate => isBelow(path, candidate.path))?.budgets;
  return {
    aimd: aimdPolicy(document.aimd),
    maxInFlight: document.global.max_inflight ?? Number.POSITIVE_INFINITY,
    entries: scopeEntries(document, members, groupOfHost),
    scopeOf: (text, path = "") => (budgetsFor(canonicalHost(text), path) ?? defaults).scope,
    route(text, role, path = "") {
      const host = canonicalHost(text);
      const budgets = budgetsFor(host, path) ?? defaults;
      const name = budgets === defaults ? host : budgets.name;
      return { name, roleBudget: budgets.rolePolicies[role], above: budgets.above };
    },
    routeOf({ scope, name }, role) {
      const budgets = name === undefined ? defaults : (groups.get(name) ?? budgetsFor(scope.host ?? "", ""));
      const { rolePolicies, above } = budgets ?? defaults;
      return { name: name ?? "", roleBudget: rolePolicies[role], above };
    },
    hasPaths: host => routed.get(host)?.some(({ path }) => path !== "") ?? false,
    routeByName(name, role) {
      if (!isGroupName(name)) return this.route(name, role);
      const shared = groups.get(name);
      if (shared !== undefined && !isPerHost(shared))
        return { name, roleBudget: shared.rolePolicies[role], above: shared.above };
      // A group with `per_host` has one budget for each host, named `group <name>:<host>`.
      const colon = name.indexOf(":");
      const group = groups.get(name.slice(0, colon));
      if (group === undefined || !isPerHost(group)) return undefined;
      // The totals of the host count every request to it, whichever service sends it.
      const { above } = this.route(name.slice(colon + 1), role);
      const own = group.above.map(total => ({ name, policy: total.policy }));
      return { name, roleBudget: group.rolePolicies[role], above: [...own, ...above] };
    },
  };
}

/** The members of each group. Throws a ConfigError for a group without members, and for a member of two groups. */
function groupMembers({ groups }: ParsedRatelimits, where: string): ReadonlyMap<string, ScopeEntry["members"]> {
  const groupOf = new Map<string, string>();
  const all = new Map<string, ScopeEntry["members"]>();
  for (const [group, { members, per_host }] of Object.entries(groups)) {
    const fail = (message: string) => new ConfigError([{ where, path: `groups.${group}.members`, message }]);
    if (per_host && members)
      throw fail("members is not allowed together with per_host: calls select this group with the option service");
    if (!per_host && members === undefined) throw fail("members is missing: list hosts or host/path");
    for (const { host, path } of members ?? []) {
      const member = `${host}${path}`;
      const other = groupOf.get(member);
      if (other !== undefined)
        throw fail(`${member} is already a member of group ${other}; a host or path can be in one group only`);
      groupOf.set(member, group);
    }
    all.set(group, members ?? []);
  }
  return all;
}

function scopeEntries(
  { hosts, groups }: ParsedRatelimits,
  members: ReadonlyMap<string, ScopeEntry["members"]>,
  groupOfHost: ReadonlyMap<string, string>,
): readonly ScopeEntry[] {
  return [
    { scope: {}, name: undefined, members: [] },
    ...Object.keys(hosts).map(host => ({ scope: { host, group: groupOfHost.get(host) }, name: host, members: [] })),
    ...Object.keys(groups).map(group => ({
      scope: { group },
      name: groupName(group),
      members: members.get(group) ?? [],
    })),
  ];
}

function budgetsOf(document: ParsedRatelimits, scope: LimitScope, name: string): ScopeBudgets {
  const rolePolicies = {} as Record<Role, RoleBudgetPolicy>;
  for (const role of ROLES) {
    const value = (field: RoleLimitField) =>
      effectiveValue<unknown>(document, roleLimitPaths(field, role, scope), BUILT_IN[role][field]);
    rolePolicies[role] = roleBudgetPolicy(Object.fromEntries(ROLE_LIMIT_FIELDS.map(field => [field, value(field)])));
  }
  const above = totalPlaces(scope).flatMap(({ name: owner, path }) => {
    const total = valueAt(document, path) as ParsedBudgetLimits | undefined;
    return total === undefined ? [] : [{ name: owner, policy: budgetPolicy(total) }];
  });
  return { scope, name, rolePolicies, above };
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

function isBelow(path: string, prefix: string): boolean {
  return prefix === "" || path === prefix || path.startsWith(`${prefix}/`) || path.startsWith(`${prefix}?`);
}
