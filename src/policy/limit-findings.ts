import type { BudgetPolicy, RoleBudgetPolicy } from "./budget-policy.ts";
import { winningSource } from "./explanation.ts";
import { type PolicyFinding, warning } from "./finding.ts";
import type { ConfiguredLimits, ScopeEntry } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { roleLimitPaths, totalPaths, totalPlaces } from "./precedence.ts";
import { probeOf } from "./probed-url.ts";
import { implies } from "./rate-order.ts";
import { ROLES, type Role } from "./roles.ts";
import { serviceOfName, withoutTier } from "./service-name.ts";
import { isShippedSource } from "./shipped-policy.ts";

/** Assumed duration of a call, to judge whether max_concurrent can reach the rate. */
const TYPICAL_LATENCY_MS = 300;
const MINUTE_US = 60_000_000;

/** Valid limits that probably do not have the intended effect. */
export function limitFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  const { resolved } = policy.ratelimits;
  const used = resolved.entries.filter(entry => !isReplacedByTiers(resolved, entry));
  const found = used.flatMap(entry =>
    ROLES.flatMap(role => {
      const { roleBudget, above } = resolved.routeOf(entry, role);
      const totals = above.map(budget => budget.policy);
      return [
        ...roleFindings(`${entry.name ?? "defaults"} ${role}`, roleBudget, totals),
        ...ineffectiveRates(policy, entry, role),
      ];
    }),
  );
  return [...new Map(found.map(finding => [finding.message, finding])).values()];
}

/** True for an entry without a tier whose hosts all get a key over https that selects a tier: few requests have its limits. */
function isReplacedByTiers(limits: ConfiguredLimits, { scope, members }: ScopeEntry): boolean {
  const { listed = [], tiers = [] } = scope;
  const probes = listed.length > 0 ? [{ host: listed.at(-1) ?? "", path: "" }] : members.map(probeOf);
  if (tiers.length > 0 || probes.length === 0) return false;
  return probes.every(({ host, path }) => (limits.scopeOf(host, path).tiers ?? []).length > 0);
}

function roleFindings(
  name: string,
  roleBudget: RoleBudgetPolicy,
  above: readonly BudgetPolicy[],
): readonly PolicyFinding[] {
  const warnings: PolicyFinding[] = [];
  const budgets = [roleBudget, ...above];
  for (const budget of budgets) {
    for (const [index, rate] of budget.rates.entries()) {
      const spacingMs = rate.windowUs / rate.limit / 1000;
      // A longer window with more than one call is a quota, which is rarely full.
      if ((rate.windowUs <= MINUTE_US || rate.limit === 1) && spacingMs > roleBudget.maxDelayMs) {
        warnings.push(
          warning(
            "bound-below-spacing",
            `${name}: max_delay_ms ${roleBudget.maxDelayMs} is less than the ${Math.ceil(spacingMs)} ms between calls at ${budget.labels[index]}: when the window is full, calls are refused instead of queued; raise max_delay_ms`,
          ),
        );
      }
      const implying = budget.rates.findIndex(
        (other, at) => at !== index && implies(other, rate) && (at < index || !implies(rate, other)),
      );
      if (implying >= 0)
        warnings.push(
          warning(
            "redundant-window",
            `${name}: ${budget.labels[index]} has no effect: ${budget.labels[implying]} is at least as strict`,
          ),
        );
    }
  }
  warnings.push(...impossibleCosts(name, roleBudget, budgets));
  const cap = Math.min(...budgets.map(budget => budget.maxConcurrent));
  const ratePerSecond = Math.min(
    ...budgets.flatMap(budget => budget.rates.map(({ limit, windowUs }) => (limit * 1e6) / windowUs)),
  );
  const reachablePerSecond = (cap * 1000) / TYPICAL_LATENCY_MS;
  if (Number.isFinite(ratePerSecond) && reachablePerSecond < ratePerSecond) {
    warnings.push(
      warning(
        "slots-below-rate",
        `${name}: max_concurrent ${cap} limits this to about ${reachablePerSecond.toFixed(1)} calls/s (at ${TYPICAL_LATENCY_MS} ms per call), below its rate of ${ratePerSecond.toFixed(1)}/s`,
      ),
    );
  }
  return warnings;
}

/** Costs of a call that does not name its own, and that no window can grant. In shadow mode such a call is sent. */
function impossibleCosts(
  name: string,
  { callCosts, isShadow }: RoleBudgetPolicy,
  budgets: readonly BudgetPolicy[],
): readonly PolicyFinding[] {
  if (isShadow) return [];
  return budgets.flatMap(({ costs }) =>
    costs.flatMap(({ unit, rates, labels }) => {
      const cost = callCosts[unit] ?? 1;
      const exceeded = rates.findIndex(({ limit }) => cost > limit);
      if (exceeded < 0) return [];
      const text = `${name}: call_costs.${unit} ${cost} is more than ${labels[exceeded]} allows: each call that does not name its costs fails; lower call_costs.${unit} or raise the limit`;
      return [warning("cost-above-limit", text)];
    }),
  );
}

/**
 * Rates that the user set, and that a lower total above them makes ineffective. Inherited and shipped rates are left
 * out: a host with a total usually keeps the rates of the defaults.
 */
function ineffectiveRates(policy: LoadedPolicy, entry: ScopeEntry, role: Role): readonly PolicyFinding[] {
  const { scope, name = "defaults" } = entry;
  const { roleBudget, above } = policy.ratelimits.resolved.routeOf(entry, role);
  const budgets = [
    {
      shown: `${name} ${role}`,
      budget: roleBudget as BudgetPolicy,
      paths: roleLimitPaths("rates", role, scope).filter(([first]) => first !== "defaults"),
    },
    ...above.map(total => ({
      shown: `${total.name} total`,
      budget: total.policy,
      paths: totalPlaces(scope)
        .filter(place => place.name === withoutTier(total.name))
        .flatMap(place => totalPaths("rates", place, scope)),
    })),
  ];
  return budgets.flatMap(({ shown, budget, paths }, index) => {
    const source = winningSource(policy, "ratelimits", paths);
    if (source === undefined || isShippedSource(source)) return [];
    return budget.rates.flatMap((rate, at) =>
      above.slice(index).flatMap(total => {
        const stricter = total.policy.rates.findIndex(other => implies(other, rate) && !implies(rate, other));
        if (stricter < 0) return [];
        const label = budget.labels[at];
        const service = serviceOfName(withoutTier(total.name));
        const target = service === undefined ? withoutTier(total.name) : `service:${service}`;
        return [
          warning(
            "role-above-total",
            `${shown}: ${label} (${source}) has no effect: the total of ${total.name} is ${total.policy.labels[stricter]}; raise it too, for example with --rate ${target}:total=rates:${label}`,
          ),
        ];
      }),
    );
  });
}
