import type { Rate } from "../core/limits/rate.ts";
import { type BudgetPolicy, groupName, type RoleBudgetPolicy } from "./limits.ts";
import type { LoadedPolicy } from "./load.ts";
import { groupRepresentatives } from "./policy-row.ts";
import { ROLES } from "./roles.ts";

/** What a call usually takes, to judge whether a concurrency cap can reach its rate. */
const TYPICAL_LATENCY_MS = 300;
const MINUTE_US = 60_000_000;

/** What is valid and yet will hardly do what its author wants. */
export function warningsOf(policy: LoadedPolicy): readonly string[] {
  const { options, resolved } = policy.ratelimits;
  const warnings: string[] = [];
  const hosts = Object.keys(options.hosts ?? {});
  const owners = [
    ...hosts.map(host => ({ shown: host, host, path: undefined })),
    ...groupRepresentatives(policy).map(({ group, host, path }) => ({ shown: groupName(group), host, path })),
    { shown: "defaults", host: "unlisted.invalid", path: undefined },
  ];
  for (const { shown, host, path } of owners) {
    for (const role of ROLES) {
      const { roleBudget, above } = resolved.route(host, role, path);
      warnings.push(
        ...roleWarnings(
          `${shown} ${role}`,
          roleBudget,
          above.map(budget => budget.policy),
        ),
      );
    }
  }
  return [...new Set(warnings)];
}

function roleWarnings(name: string, roleBudget: RoleBudgetPolicy, above: readonly BudgetPolicy[]): readonly string[] {
  const warnings: string[] = [];
  const budgets = [roleBudget, ...above];
  for (const budget of budgets) {
    for (const [index, rate] of budget.rates.entries()) {
      const spacingMs = rate.windowUs / rate.limit / 1000;
      if (rate.windowUs <= MINUTE_US && spacingMs > roleBudget.maxDelayMs) {
        warnings.push(
          `${name}: max_delay_ms ${roleBudget.maxDelayMs} is shorter than the ${Math.ceil(spacingMs)} ms that a call takes at ${budget.labels[index]}: once the window is full, calls are refused instead of waiting`,
        );
      }
      const implying = budget.rates.findIndex((other, at) => at !== index && implies(other, rate, at < index));
      if (implying >= 0)
        warnings.push(`${name}: ${budget.labels[index]} never binds, ${budget.labels[implying]} is stricter`);
    }
  }
  const cap = Math.min(...budgets.map(budget => budget.maxConcurrent));
  const perSecond = Math.min(
    ...budgets.flatMap(budget => budget.rates.map(({ limit, windowUs }) => (limit * 1e6) / windowUs)),
  );
  const reachable = (cap * 1000) / TYPICAL_LATENCY_MS;
  if (reachable < perSecond) {
    warnings.push(
      `${name}: max_concurrent ${cap} reaches about ${reachable.toFixed(1)}/s at ${TYPICAL_LATENCY_MS} ms a call, its rate is ${perSecond.toFixed(1)}/s`,
    );
  }
  return warnings;
}

/** True when keeping `strict` keeps `loose` too. Of two that imply each other only the first counts. */
function implies(strict: Rate, loose: Rate, isFirst: boolean): boolean {
  const most = strict.limit * Math.ceil(loose.windowUs / strict.windowUs);
  if (most > loose.limit) return false;
  const isMutual = loose.limit * Math.ceil(strict.windowUs / loose.windowUs) <= strict.limit;
  return !isMutual || isFirst;
}
