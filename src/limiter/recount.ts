/** What was sent before a reload counts in every budget that applies to it now (law L1). */
import { WindowLog } from "../core/limits/window-log.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import type { Role } from "../policy/roles.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import type { Costs } from "./charge.ts";
import type { CostLog } from "./cost-log.ts";
import { RoleBudget } from "./role-budget.ts";
import type { FormerBudget } from "./sent-history.ts";

/** What a budget has taken over from others, which have sent it before a reload. */
export interface TakenOver {
  readonly budget: Budget;
  /** One of the role budgets whose requests pass it. */
  readonly roleBudget: RoleBudget;
  /** Units that count in its windows now. */
  readonly units: number;
}

/** The limits before and after a reload, and the budgets of the new ones. */
export interface Reloaded {
  readonly before: LimitPolicies;
  readonly now: LimitPolicies;
  readonly budgetAt: (route: Route, role: Role) => RoleBudget;
  readonly nowUs: number;
}

/**
 * Counts what the budgets of the old limits have sent in those of the new ones. A service does not know which of its
 * members has sent what: each member that left it counts all of it.
 */
export function countAgain(senders: readonly FormerBudget[], reloaded: Reloaded): TakenOver[] {
  const { before, now, budgetAt, nowUs } = reloaded;
  const takenOver: TakenOver[] = [];
  const inTotals = new Map<Budget, Set<FormerBudget>>();
  const passedBy = new Map<Budget, RoleBudget>();
  /** The totals that have counted the requests, but not this unit. */
  const inCosts = new Map<CostLog, Set<FormerBudget>>();
  for (const sender of senders) {
    const { name, role, log } = sender;
    if (log.written + log.pending === 0) continue;
    const counted = new Map(before.routeByName(name, role)?.above.map(total => [total.name, total.policy]));
    const absorbing = new Set([name]);
    const partition = name.slice(commonName(name).length);
    for (const { host, path } of before.placesOf(name)) {
      const common = now.route(host, role, path);
      const isPartition = partition !== "" && common.roleBudget.isPerPartition;
      const route = isPartition ? { ...common, name: `${common.name}${partition}` } : common;
      const roleBudget = budgetAt(route, role);
      // At once: the next budget that is created may evict one without units.
      if (!absorbing.has(route.name)) {
        roleBudget.absorb([sender]);
        takenOver.push({ budget: roleBudget, roleBudget, units: unitsOf(roleBudget, [sender], nowUs) });
      }
      absorbing.add(route.name);
      for (const total of budgetsAbove(roleBudget)) {
        passedBy.set(total, roleBudget);
        const countedBy = counted.get(total.name);
        if (countedBy === undefined) addTo(inTotals, total, sender);
        else
          for (const cost of total.costLogs)
            if (countedBy.costs.every(({ unit }) => unit !== cost.unit)) addTo(inCosts, cost, sender);
      }
    }
  }
  for (const [total, sources] of inTotals) {
    total.absorb([...sources]);
    const roleBudget = passedBy.get(total);
    if (roleBudget !== undefined)
      takenOver.push({ budget: total, roleBudget, units: unitsOf(total, [...sources], nowUs) });
  }
  for (const [cost, sources] of inCosts) {
    cost.absorb([...sources]);
    for (const source of sources)
      if (source instanceof RoleBudget && !source.isDetached)
        cost.log.reserve(pendingCosts(source, 1).get(cost.unit) ?? 0);
  }
  return takenOver;
}

/** Moves in-flight requests and pending units of a role budget to the budgets that are above it now. */
export function transfer(roleBudget: RoleBudget, from: readonly Budget[], to: readonly Budget[]): void {
  for (const [budgets, others, sign] of [
    [from, to, -1],
    [to, from, 1],
  ] as const) {
    for (const budget of budgets) {
      if (others.includes(budget)) continue;
      budget.inFlight += sign * roleBudget.inFlight;
      budget.reserve({ units: sign * roleBudget.log.pending, costs: pendingCosts(roleBudget, sign) });
    }
  }
}

/** Counts requests that are granted and not written as written now. */
export function writePending(roleBudget: RoleBudget, nowUs: number): void {
  for (const { log, windows } of [roleBudget, ...roleBudget.costLogs])
    if (log.pending > 0) log.write(windows, log.pending, nowUs);
}

/** The most units of these senders that count in a window of the budget, those in flight included. */
function unitsOf({ windows }: Budget, senders: readonly FormerBudget[], nowUs: number): number {
  const log = WindowLog.merged(windows, senders);
  const pending = senders.reduce((sum, sender) => sum + sender.log.pending, 0);
  return pending + Math.max(0, ...windows.map((window, index) => log.usedUnits(index, window, nowUs)));
}

function pendingCosts({ costLogs }: RoleBudget, sign: 1 | -1): Costs {
  return new Map(costLogs.map(({ unit, log }) => [unit, sign * log.pending]));
}

function addTo<Key>(map: Map<Key, Set<FormerBudget>>, key: Key, sender: FormerBudget): void {
  map.set(key, (map.get(key) ?? new Set()).add(sender));
}
