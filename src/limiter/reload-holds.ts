import { isOfUnnamedHost } from "../policy/budget-unit.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { ROLES } from "../policy/roles.ts";
import type { Budget } from "./budget.ts";
import type { RoleBudget } from "./role-budget.ts";

/** All processes reload at about the same time. Within this time after a reload, each has reported to the store. */
const REPORTED_WITHIN_US = 1_600_000;

interface EarlierLimits {
  readonly limits: LimitPolicies;
  readonly untilUs: number;
}

/**
 * Holds budgets that a reload adds, or that count requests of other places since, in a store that several processes
 * share. The store does not count for them what was sent before: until all processes have reported that, nothing is sent.
 */
export class ReloadHolds {
  /** The limits before each of their last changes, until all processes have reported what they had sent before it. */
  #earlier: readonly EarlierLimits[] = [];

  reloaded(before: LimitPolicies, nowUs: number): void {
    const running = this.#earlier.filter(({ untilUs }) => untilUs > nowUs);
    this.#earlier = [...running, { limits: before, untilUs: nowUs + REPORTED_WITHIN_US }];
  }

  /** Called for each new total. */
  holdTotal(total: Budget, route: Route, now: LimitPolicies, nowUs: number): void {
    this.#hold(total, nowUs, earlier => !hasCounted(total, route, earlier, now));
  }

  /** Called for each new role budget, and after each reload for all of them. */
  holdRoleBudget(roleBudget: RoleBudget, now: LimitPolicies, nowUs: number): void {
    this.#hold(roleBudget, nowUs, earlier => hasGained(roleBudget, earlier, now));
  }

  #hold(budget: Budget, nowUs: number, mustWait: (earlier: LimitPolicies) => boolean): void {
    for (const { limits, untilUs } of this.#earlier)
      if (untilUs > Math.max(nowUs, budget.holdUntilUs) && mustWait(limits)) budget.holdUntilUs = untilUs;
  }
}

/** Whether the total had counted the same requests under the earlier limits. */
function hasCounted({ name }: Budget, route: Route, earlier: LimitPolicies, now: LimitPolicies): boolean {
  const has = (unit: string) => ROLES.some(role => hasTotal(earlier.routeByName(unit, role), name));
  const places = (of: LimitPolicies) => JSON.stringify(ROLES.map(role => of.placesOf(name, role)));
  return has(name) && has(route.name) && places(earlier) === places(now);
}

/** Whether the role budget has places that another one had by the earlier limits. */
function hasGained({ name, role }: RoleBudget, earlier: LimitPolicies, now: LimitPolicies): boolean {
  if (isOfUnnamedHost(name, earlier) && isOfUnnamedHost(name, now)) return false;
  if (earlier.routeByName(name, role)?.name !== name) return true;
  const had = earlier.placesOf(name, role);
  return now
    .placesOf(name, role)
    .some(({ host, path }) => had.every(place => place.host !== host || place.path !== path));
}

export function hasTotal(route: Route | undefined, name: string): boolean {
  return route?.above.some(total => total.name === name) ?? false;
}
