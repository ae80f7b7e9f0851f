import { isOfUnnamedHost } from "../policy/budget-unit.ts";
import type { LimitPolicies, RequestPlace, Route } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { ROLES } from "../policy/roles.ts";
import type { Budget } from "./budget.ts";
import type { RoleBudget } from "./role-budget.ts";

/**
 * All processes reload at about the same time. Within this time after a reload, each has reported to the store what its
 * budgets have taken over. For a host that has left a suffix, a process reports only when it calls that host itself.
 */
const REPORTED_WITHIN_US = 1_600_000;

interface EarlierLimits {
  readonly limits: LimitPolicies;
  readonly untilUs: number;
  /** The result of `hasGained` by common name and role: it is the same for all partitions. */
  readonly gained: Map<string, boolean>;
}

/**
 * Holds budgets that a reload adds, or that count requests of other places since, in a store that several processes
 * share. The store does not count for them what was sent before: nothing is sent until the processes have had the time
 * to report that.
 */
export class ReloadHolds {
  /** The limits before each of their last changes, until all processes have reported what they had sent before it. */
  #earlier: readonly EarlierLimits[] = [];

  reloaded(before: LimitPolicies, nowUs: number): void {
    this.#dropEnded(nowUs);
    const all = [...this.#earlier, { limits: before, untilUs: nowUs + REPORTED_WITHIN_US }];
    this.#earlier = all.map(({ limits, untilUs }) => ({ limits, untilUs, gained: new Map() }));
  }

  /** Called for each new total. */
  holdTotal(total: Budget, route: Route, now: LimitPolicies, nowUs: number): void {
    if (route.above.some(({ name, isKnownFirst }) => isKnownFirst === true && name === total.name)) return;
    this.#hold(total, nowUs, earlier => !hasCounted(total, route, earlier.limits, now));
  }

  /** Called for each new role budget, and after each reload for all of them. */
  holdRoleBudget(roleBudget: RoleBudget, now: LimitPolicies, nowUs: number): void {
    this.#hold(roleBudget, nowUs, ({ limits, gained }) => {
      const { name, role } = roleBudget;
      if (isOfUnnamedHost(name, limits) && isOfUnnamedHost(name, now)) return false;
      if (limits.routeByName(name, role)?.name !== name) return true;
      const key = `${role} ${commonName(name)}`;
      const known = gained.get(key) ?? hasGained(roleBudget, limits, now);
      gained.set(key, known);
      return known;
    });
  }

  #hold(budget: Budget, nowUs: number, mustWait: (earlier: EarlierLimits) => boolean): void {
    this.#dropEnded(nowUs);
    for (const earlier of this.#earlier) {
      if (earlier.untilUs <= budget.reportedUntilUs || !mustWait(earlier)) continue;
      budget.reportedUntilUs = earlier.untilUs;
      budget.holdUntilUs = Math.max(budget.holdUntilUs, earlier.untilUs);
    }
  }

  #dropEnded(nowUs: number): void {
    if (this.#earlier.some(({ untilUs }) => untilUs <= nowUs))
      this.#earlier = this.#earlier.filter(({ untilUs }) => untilUs > nowUs);
  }
}

/** Whether the total had counted the same requests under the earlier limits. */
function hasCounted({ name }: Budget, route: Route, earlier: LimitPolicies, now: LimitPolicies): boolean {
  const has = (unit: string) => ROLES.some(role => hasTotal(earlier.routeByName(unit, role), name));
  const places = (of: LimitPolicies) => JSON.stringify(ROLES.map(role => of.placesOf(name, role).map(placeText)));
  return has(name) && has(route.name) && places(earlier) === places(now);
}

/** Whether the role budget has places that another one had by the earlier limits. */
function hasGained({ name, role }: RoleBudget, earlier: LimitPolicies, now: LimitPolicies): boolean {
  const had = new Set(earlier.placesOf(name, role).map(placeText));
  return now.placesOf(name, role).some(place => !had.has(placeText(place)));
}

function placeText({ host, path, service, sentKeys }: RequestPlace): string {
  return JSON.stringify([host, path, service, sentKeys && [...sentKeys]]);
}

export function hasTotal(route: Route | undefined, name: string): boolean {
  return route?.above.some(total => total.name === name) ?? false;
}
