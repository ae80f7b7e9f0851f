import type { BudgetPolicy } from "./budget-policy.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import type { ConfiguredLimits, Route } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { roleLimitPaths, totalPaths, totalPlaces } from "./precedence.ts";
import { type ProbedUrl, probeOf, probeText, UNLISTED, withoutProbes } from "./probed-url.ts";
import { ROLES, type Role } from "./roles.ts";
import { withoutTier } from "./service-name.ts";
import { shippedValues } from "./shipped-policy.ts";

/** One budget of a policy, and the requests that are charged to it. */
interface ProbedBudget {
  readonly name: string;
  /** Undefined for a total. */
  readonly role: Role | undefined;
  readonly policy: BudgetPolicy;
  /** Whether HEAD requests count in it. False for a total: the role decides. */
  readonly countsHead: boolean;
  readonly charged: { readonly probe: ProbedUrl; readonly role: Role }[];
}

/**
 * Limits that are looser than the shipped ones: a window or a cap that no longer holds for some request, requests that
 * shared a window and are now counted apart, and HEAD requests that no longer count. A shipped budget is kept if one
 * budget of the policy has the same limit, or a lower one, for all its requests.
 */
export function looserFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  const { shipped, ratelimits } = policy;
  if (shipped === undefined) return [];
  const limits = ratelimits.resolved;
  const probes = probesOf(shipped, limits);
  return budgetsOf(shipped, probes).flatMap(budget => {
    const routes = budget.charged.map(({ probe, role }) => ({ role, route: routeAt(limits, probe, role) }));
    const lost = firstLostLimit(budget.policy, routes);
    return [
      ...(lost === undefined ? [] : [finding(policy, budget, lost)]),
      ...(budget.countsHead && routes.some(({ route }) => !route.roleBudget.countsHead)
        ? [headFinding(policy, budget)]
        : []),
    ];
  });
}

/** The field of a shipped limit, whose comment has the source of the number. */
type LimitField = "rates" | "max_concurrent" | "count_head";

interface LostLimit {
  readonly field: LimitField;
  /** The shipped limit that no longer holds: `5/SECOND`, or `max_concurrent 1`. */
  readonly limit: string;
  /** The index of the first request for which it does not hold; undefined if it holds for each one, but not for all together. */
  readonly at: number | undefined;
}

function firstLostLimit(
  budget: BudgetPolicy,
  routes: readonly { readonly role: Role; readonly route: Route }[],
): LostLimit | undefined {
  const limits = [
    ...budget.windows.map((window, index) => ({
      field: "rates" as const,
      limit: budget.labels[index] ?? "",
      isKept: (other: BudgetPolicy) =>
        other.windows.some(({ limit, spanUs }) => limit * Math.ceil(window.spanUs / spanUs) <= window.limit),
    })),
    ...(Number.isFinite(budget.maxConcurrent)
      ? [
          {
            field: "max_concurrent" as const,
            limit: capText(budget),
            isKept: (other: BudgetPolicy) =>
              other.maxConcurrent <= budget.maxConcurrent && (other.sharesSlots || !budget.sharesSlots),
          },
        ]
      : []),
  ];
  for (const { field, limit, isKept } of limits) {
    const keeping = routes.map(
      ({ role, route }) =>
        new Set(
          chargedBudgets(route, role)
            .filter(b => !b.isSplit && isKept(b.policy))
            .map(b => b.key),
        ),
    );
    const at = keeping.findIndex(names => names.size === 0);
    if (at >= 0) return { field, limit, at };
    const [first = new Set<string>(), ...others] = keeping;
    if (![...first].some(name => others.every(names => names.has(name)))) return { field, limit, at: undefined };
  }
  return undefined;
}

/** `max_concurrent 1`, or `max_concurrent 1 over all processes`. */
function capText({ maxConcurrent, sharesSlots }: BudgetPolicy): string {
  return `max_concurrent ${maxConcurrent}${sharesSlots ? " over all processes" : ""}`;
}

function finding(policy: LoadedPolicy, budget: ProbedBudget, { field, limit, at }: LostLimit): PolicyFinding {
  const shown = `${withoutProbes(budget.name)} ${budget.role ?? "total"}`;
  const note = noteOf(policy, budget, field);
  const source = note === undefined ? "" : ` (${note})`;
  const documented = `${limit}${source}`;
  if (at === undefined && budget.role === undefined)
    return warning(
      "looser-than-shipped",
      `${shown}: looser than the shipped limit ${documented}: no limit counts all its requests together`,
    );
  if (at === undefined) {
    const names = [
      ...new Set(budget.charged.map(({ probe, role }) => routeAt(policy.ratelimits.resolved, probe, role).name)),
    ].map(withoutProbes);
    return warning(
      "counted-apart",
      `${shown}: requests that share the shipped ${documented} are counted apart: ${names.slice(0, 5).join(", ")}`,
    );
  }
  const { probe = UNLISTED, role = "metadata" } = budget.charged[at] ?? {};
  const { name, roleBudget, above } = routeAt(policy.ratelimits.resolved, probe, role);
  const budgets = [roleBudget, ...above.map(total => total.policy)];
  // The same rate with a lower guard is a looser limit.
  const isGuardLower = field === "rates" && budgets.some(({ guardUs }) => guardUs < budget.policy.guardUs);
  const guardText = ({ guardUs, rates }: BudgetPolicy) =>
    isGuardLower && rates.length > 0 ? ` with guard_ms ${guardUs / 1000}` : "";
  const now = budgets.map((each, index) => {
    const rates = `${each.labels.join(" + ")}${guardText(each)}`;
    const limits = [rates, Number.isFinite(each.maxConcurrent) ? capText(each) : ""].filter(text => text !== "");
    return `${limits.join(" + ")}${index === 0 && roleBudget.isPerPartition ? " for each partition" : ""}`;
  });
  const inForce = now.filter(text => text !== "").join("; ") || "none";
  return warning(
    "looser-than-shipped",
    `${probeText(probe)} (${role}): looser than the shipped limit ${limit}${guardText(budget.policy)}${source} of ${shown}; the limits of ${withoutProbes(name)} apply: ${inForce}`,
  );
}

function headFinding(policy: LoadedPolicy, budget: ProbedBudget): PolicyFinding {
  const note = noteOf(policy, budget, "count_head");
  return warning(
    "looser-than-shipped",
    `${withoutProbes(budget.name)} ${budget.role}: looser than the shipped count_head true${note === undefined ? "" : ` (${note})`}: HEAD requests are not limited by a rate`,
  );
}

/**
 * The comment beside the shipped number, which has its source and date. Read from the shipped file: the merged values
 * lack those of tiers that the user has replaced.
 */
function noteOf(
  { shipped }: LoadedPolicy,
  { name, role, charged }: ProbedBudget,
  field: LimitField,
): string | undefined {
  const [first] = charged;
  if (first === undefined || shipped === undefined) return undefined;
  const scope = shipped.scopeOf(first.probe.host, first.probe.path);
  const paths =
    role === undefined
      ? totalPlaces(scope)
          .filter(place => place.name === withoutTier(name))
          .flatMap(place => (field === "count_head" ? [] : totalPaths(field, place, scope)))
      : roleLimitPaths(field, role, scope);
  const texts = paths.map(path => path.join(" "));
  const set = shippedValues("ratelimits").filter(({ path }) => texts.includes(path.join(" ")));
  return set.toSorted((a, b) => texts.indexOf(a.path.join(" ")) - texts.indexOf(b.path.join(" "))).at(-1)?.note;
}

function budgetsOf(limits: ConfiguredLimits, probes: readonly ProbedUrl[]): readonly ProbedBudget[] {
  const budgets = new Map<string, ProbedBudget>();
  for (const probe of probes) {
    for (const role of ROLES) {
      const route = routeAt(limits, probe, role);
      for (const { key, name, policy, isTotal } of chargedBudgets(route, role)) {
        const countsHead = !isTotal && route.roleBudget.countsHead;
        const known = budgets.get(key) ?? { name, role: isTotal ? undefined : role, policy, countsHead, charged: [] };
        known.charged.push({ probe, role });
        budgets.set(key, known);
      }
    }
  }
  return [...budgets.values()];
}

function chargedBudgets({ name, roleBudget, above }: Route, role: Role) {
  return [
    {
      key: `${name} ${role}`,
      name,
      policy: roleBudget as BudgetPolicy,
      isTotal: false,
      // Each partition may use the whole limit, so the limit does not hold for all partitions together.
      isSplit: roleBudget.isPerPartition,
    },
    ...above.map(total => ({
      key: `total ${total.name}`,
      name: total.name,
      policy: total.policy,
      isTotal: true,
      isSplit: false,
    })),
  ];
}

/**
 * A request for each host, suffix and path that is shipped, and for those of the user that belong to a shipped entry. A
 * host that only the user lists is left out: its limits are the user's own choice.
 */
function probesOf(shipped: ConfiguredLimits, limits: ConfiguredLimits): readonly ProbedUrl[] {
  const probes = new Map([["", UNLISTED]]);
  const add = (probe: ProbedUrl) => {
    const { service, listed = [] } = shipped.scopeOf(probe.host, probe.path);
    if (service !== undefined || listed.length > 0) probes.set(`${probe.host}${probe.path}`, probe);
  };
  for (const { scope, members } of [...shipped.entries, ...limits.entries]) {
    for (const host of scope.listed ?? []) add({ host, path: "" });
    for (const member of members) add(probeOf(member));
  }
  return [...probes.values()];
}

function routeAt(limits: ConfiguredLimits, { host, path }: ProbedUrl, role: Role): Route {
  return limits.route(host, role, path);
}
