import type { BudgetPolicy } from "./budget-policy.ts";
import type { Route, ScopeEntry } from "./limits.ts";
import type { LoadedPolicy } from "./load.ts";
import { ROLES, type Role } from "./roles.ts";

/** `enforce` applies a limit; `shadow` only reports what it would have done. */
export type PolicyMode = "enforce" | "shadow";

/** The effective limits and breaker settings of one role at one host or group. A field that does not apply is absent. */
export interface PolicyRow {
  /** The host, `group <name>` for a budget that the members of a group share, or `(all other hosts)`. */
  readonly host: string;
  /** metadata, landing or artifact; `total`, or `total of <name>`, for a budget over all roles. */
  readonly role: string;
  /** The rate limits, joined by ` + `: `10/SECOND + 5000/HOUR`; empty for no rate limit. */
  readonly rates: string;
  /** Longest wait for a rate limit or cooldown, in milliseconds. Absent for a total. */
  readonly maxDelayMs?: number;
  /** Whether HEAD requests count toward the rate limits. Absent for a total. */
  readonly countsHead?: boolean;
  /** Maximum number of requests in flight: the lowest of the role and the totals above it. Absent for no maximum. */
  readonly maxConcurrent?: number;
  /** Whether the rate limits are enforced. Absent for a total. */
  readonly mode?: PolicyMode;
  /** Whether the breaker is enforced. This and the next four are absent for totals, and for groups whose hosts differ. */
  readonly breakerMode?: PolicyMode;
  /** Consecutive failures that open the circuit. */
  readonly failMax?: number;
  /** Time from opening the circuit to the first trial call, in seconds. */
  readonly resetS?: number;
  /** Longest cooldown that a Retry-After can cause, in seconds. */
  readonly retryAfterCapS?: number;
  /** Calls that may be in flight while the circuit is half-open. */
  readonly trialCalls?: number;
  /** Where limits are stored: memory, multiprocess, sqlite or redis. */
  readonly backend: string;
  /** Whether the rate adapts to 429 responses (`aimd.enabled`). */
  readonly aimd: boolean;
}

/** The breaker settings of a listed host, of all others, or of a resolver. */
export interface BreakerRow {
  /** The host, `(all other hosts)`, or `resolver <name>`. */
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

/** A group and its members. */
export interface GroupRow {
  readonly name: string;
  /** Hosts and `host/path`; empty for a group with `per_host`. */
  readonly members: readonly string[];
}

const ALL_OTHER_HOSTS = "(all other hosts)";
/** Hosts that are not listed share their settings; the breakers take them from any name that is not listed. */
const NO_HOST = "";

/** The defaults, every listed host and every group, each once. */
export function policyRows(policy: LoadedPolicy): readonly PolicyRow[] {
  const { resolved } = policy.ratelimits;
  const entryRows = (entry: ScopeEntry) => {
    const { scope, name = ALL_OTHER_HOSTS, members } = entry;
    const ofGroup = members.map(({ host }) => host);
    const hosts = scope.host !== undefined ? [scope.host] : scope.group !== undefined ? ofGroup : [NO_HOST];
    return rowsOf(policy, name, hosts, role => resolved.routeOf(entry, role));
  };
  // breakers.yaml may list hosts that have the default limits.
  const breakerHosts = Object.keys(policy.breakers.options.hosts ?? {}).filter(host => {
    const scope = resolved.scopeOf(host);
    return scope.host === undefined && scope.group === undefined;
  });
  return [
    ...resolved.entries.filter(entry => !isGroup(entry)).flatMap(entryRows),
    ...breakerHosts.flatMap(host => hostPolicyRows(policy, { host })),
    ...resolved.entries.filter(isGroup).flatMap(entryRows),
  ];
}

/** The rows of one host, or of one path of it: its roles, then the totals above them. */
export function hostPolicyRows(
  policy: LoadedPolicy,
  { host, path }: { readonly host: string; readonly path?: string | undefined },
): readonly PolicyRow[] {
  const { resolved } = policy.ratelimits;
  return rowsOf(policy, resolved.route(host, "metadata", path).name, [host], role => resolved.route(host, role, path));
}

/** The breaker settings of all other hosts, of each host that breakers.yaml lists, and of each resolver. */
export function breakerRows(policy: LoadedPolicy): readonly BreakerRow[] {
  const { options, resolved } = policy.breakers;
  const hosts = [NO_HOST, ...Object.keys(options.hosts ?? {})];
  const resolvers = Object.keys(options.resolvers ?? {}).map(name => {
    const { failMax, resetUs, trialCalls } = resolved.resolver(name);
    return { name: `resolver ${name}`, failMax, resetS: resetUs / 1e6, trialCalls };
  });
  return [...hosts.flatMap(host => hostBreakerRows(policy, host)), ...resolvers];
}

/** The breaker settings of one host, by role. */
export function hostBreakerRows(policy: LoadedPolicy, host: string): readonly BreakerRow[] {
  return ROLES.map(role => {
    const { breakerMode: mode, ...cells } = breakerCells(policy, host, role);
    return { name: host === NO_HOST ? ALL_OTHER_HOSTS : host, role, ...cells, mode };
  });
}

export function groupRows(policy: LoadedPolicy): readonly GroupRow[] {
  return policy.ratelimits.resolved.entries.filter(isGroup).map(({ scope, members }) => ({
    name: scope.group ?? "",
    members: members.map(({ host, path }) => `${host}${path}`),
  }));
}

function isGroup({ scope }: ScopeEntry): boolean {
  return scope.host === undefined && scope.group !== undefined;
}

function rowsOf(
  policy: LoadedPolicy,
  shown: string,
  hosts: readonly string[],
  routeOf: (role: Role) => Route,
): readonly PolicyRow[] {
  const { resolved, options } = policy.ratelimits;
  const common = { backend: options.backend?.kind ?? "memory", aimd: resolved.aimd.enabled };
  const rows = ROLES.map(role => {
    const { roleBudget, above } = routeOf(role);
    const maxConcurrent = Math.min(roleBudget.maxConcurrent, ...above.map(total => total.policy.maxConcurrent));
    const { maxDelayMs, countsHead, isShadow } = roleBudget;
    return {
      host: shown,
      role,
      ...budgetCells({ ...roleBudget, maxConcurrent }),
      maxDelayMs,
      countsHead,
      mode: modeOf(isShadow),
      ...commonBreakerCells(policy, hosts, role),
      ...common,
    };
  });
  const { above } = routeOf("metadata");
  const totals = above.map(({ name, policy: total }, index) => ({
    host: shown,
    role: index === 0 ? "total" : `total of ${name}`,
    ...budgetCells(total),
    ...common,
  }));
  return [...rows, ...totals];
}

function budgetCells({ labels, maxConcurrent }: BudgetPolicy): Pick<PolicyRow, "rates" | "maxConcurrent"> {
  const rates = labels.join(" + ");
  return Number.isFinite(maxConcurrent) ? { rates, maxConcurrent } : { rates };
}

type BreakerCells = Required<Pick<PolicyRow, "breakerMode" | "failMax" | "resetS" | "retryAfterCapS" | "trialCalls">>;

function breakerCells({ breakers }: LoadedPolicy, host: string, role: Role): BreakerCells {
  const { failMax, resetUs, trialCalls } = breakers.resolved.circuit(host, role);
  return {
    breakerMode: modeOf(breakers.resolved.isShadow(host)),
    failMax,
    resetS: resetUs / 1e6,
    retryAfterCapS: breakers.resolved.retryAfterCapMs(host) / 1000,
    trialCalls,
  };
}

/** Circuits belong to hosts, so a group has breaker settings only if all its hosts have the same. */
function commonBreakerCells(policy: LoadedPolicy, hosts: readonly string[], role: Role): Partial<BreakerCells> {
  const [first, ...others] = hosts.map(host => breakerCells(policy, host, role));
  const text = JSON.stringify(first);
  return first !== undefined && others.every(cells => JSON.stringify(cells) === text) ? first : {};
}

function modeOf(isShadow: boolean): PolicyMode {
  return isShadow ? "shadow" : "enforce";
}
