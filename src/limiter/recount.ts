/** Requests that were sent before a reload count in every budget that would apply to them now (law L1). */
import { WindowLog } from "../core/limits/window-log.ts";
import type { BudgetPolicy } from "../policy/budget-policy.ts";
import type { LimitPolicies, RequestPlace, Route } from "../policy/limit-policies.ts";
import { commonName, nameWithoutPartition } from "../policy/partition-name.ts";
import type { Role } from "../policy/roles.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import type { CostLog } from "./cost-log.ts";
import type { MovedPlaces } from "./moved-places.ts";
import type { RoleBudget } from "./role-budget.ts";
import type { FormerBudget } from "./sent-history.ts";

/** Units that other budgets have sent before a reload, and that this budget counts too since the reload. */
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
  /**
   * The budget that holds the units sent before the route was divided. A partition that is created later counts them.
   */
  readonly dividedAt: (route: Route, role: Role) => RoleBudget;
  /** The budgets of all partitions. */
  readonly partitions: () => readonly RoleBudget[];
  readonly nowUs: number;
  /** The places that the budgets of earlier limits have counted. */
  readonly moved: MovedPlaces;
}

/**
 * The budgets of the partitions by common name and role. Those that are created later are not in it: they count the units
 * that `dividedAt` holds when they are created.
 */
export function partitionsByName({ partitions }: Reloaded): (name: string, role: Role) => readonly RoleBudget[] {
  const byKey = Map.groupBy(partitions(), ({ name, role }) => `${role} ${nameWithoutPartition(name)}`);
  return (name, role) => byKey.get(`${role} ${name}`) ?? [];
}

/**
 * The route of requests to a place. `partition` is the suffix `#<hash>` in the names of partitions; empty for requests
 * without a partition.
 */
export function routeAt(
  { host, path, service, sentKeys }: RequestPlace,
  role: Role,
  partition: string,
  limits: LimitPolicies,
): Route {
  const named = service === undefined ? undefined : limits.serviceRoute(service, host, role, path, sentKeys);
  const common = named ?? limits.route(host, role, path, sentKeys);
  const hasPartition = partition !== "" && common.roleBudget.isPerPartition;
  return hasPartition ? { ...common, name: `${common.name}${partition}` } : common;
}

/**
 * Counts in the budgets of the new limits the units that the budgets of the old limits have sent. It is not known which
 * units a member of a service has sent: each member that has left the service counts all units of the service. In the
 * same way, each partition counts all units of limits that were common before. `isCountedBy`: whether the budget of that
 * name has counted them already.
 */
export function countAgain(
  senders: readonly FormerBudget[],
  reloaded: Reloaded,
  isCountedBy: (name: string) => boolean = () => false,
): TakenOver[] {
  const { before, now, budgetAt, dividedAt, nowUs, moved } = reloaded;
  /** Grouped when they are first needed: this function may be called for each of thousands of partitions. */
  let partitionsOf: ReturnType<typeof partitionsByName> | undefined;
  const takenOver: TakenOver[] = [];
  /** Role budgets that are new for these senders. */
  const inRoleBudgets = new Map<RoleBudget, Set<FormerBudget>>();
  /** Totals that are new for these senders. */
  const inTotals = new Map<Budget, Set<FormerBudget>>();
  /** A role budget whose requests pass the total. */
  const passedBy = new Map<Budget, RoleBudget>();
  /** Cost logs that are new in totals: those totals have counted the requests of these senders, but not this unit. */
  const inCosts = new Map<CostLog, Set<FormerBudget>>();
  // Common budgets first: budgetAt may create a partition, which counts the units that dividedAt holds at that time.
  const commonFirst = senders.toSorted((a, b) => Number(isPartition(a)) - Number(isPartition(b)));
  for (const sender of commonFirst) {
    const { name, role, log, holdUntilUs = 0, isDivided = false } = sender;
    if ((log.written === 0 && holdUntilUs <= nowUs) || moved.isUnmoved(name, role, before)) continue;
    const former = before.routeByName(name, role);
    const counted = new Map(former?.above.map(total => [total.name, total.policy]));
    /** Several members of a service have one route. */
    const handledNames = new Set<string>();
    const partition = name.slice(commonName(name).length);
    const mayHavePartition = isDivided || (partition === "" && !former?.roleBudget.isPerPartition);
    const routes = moved.of(name, role, before).map(place => routeAt(place, role, partition, now));
    // Of a service that was removed and comes back, the limits before know no place.
    const returned = former?.name === name ? undefined : now.routeByName(name, role);
    for (const route of returned?.name === name ? [returned, ...routes] : routes) {
      if (handledNames.has(route.name) || isCountedBy(route.name)) continue;
      handledNames.add(route.name);
      const isNew = route.name !== name;
      const isDividedNow = mayHavePartition && route.roleBudget.isPerPartition;
      // A key that was forgotten stays so: if it is used again, it counts what it has sent.
      if (
        !isNew &&
        !isDividedNow &&
        route.above.every(({ name: total, policy }) => isCounted(policy, counted.get(total)))
      )
        continue;
      const roleBudget = budgetAt(route, role);
      const absorbers = isNew && !isDivided ? [roleBudget] : [];
      if (isDividedNow) {
        // If the limits were divided before, the partitions of this name have counted these units already.
        partitionsOf ??= partitionsByName(reloaded);
        if (isNew || !isDivided) absorbers.push(...partitionsOf(route.name, role));
        dividedAt(route, role).absorb([sender]);
      }
      for (const absorber of absorbers) addTo(inRoleBudgets, absorber, sender);
      if (isDivided) continue;
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
  for (const [cost, sources] of inCosts) cost.absorb([...sources]);
  for (const [roleBudget, sources] of inRoleBudgets) {
    roleBudget.absorb([...sources]);
    takenOver.push({ budget: roleBudget, roleBudget, units: unitsOf(roleBudget, [...sources], nowUs) });
  }
  return takenOver;
}

/** Whether a total that has counted requests by the policy `by` has counted each unit of its new policy. */
function isCounted(policy: BudgetPolicy, by: BudgetPolicy | undefined): boolean {
  return by !== undefined && policy.costs.every(({ unit }) => by.costs.some(cost => cost.unit === unit));
}

/** The most units of these senders that count in a window of the budget. */
export function unitsOf({ windows }: Budget, senders: readonly FormerBudget[], nowUs: number): number {
  const log = WindowLog.merged(windows, senders);
  return Math.max(0, ...windows.map((window, index) => log.usedUnits(index, window, nowUs)));
}

function isPartition({ name }: FormerBudget): boolean {
  return nameWithoutPartition(name) !== undefined;
}

function addTo<Key>(map: Map<Key, Set<FormerBudget>>, key: Key, sender: FormerBudget): void {
  const senders = map.get(key) ?? new Set();
  map.set(key, senders.add(sender));
}
