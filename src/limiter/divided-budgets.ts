import type { Route } from "../policy/limit-policies.ts";
import { nameWithoutPartition } from "../policy/partition-name.ts";
import type { Role } from "../policy/roles.ts";
import { RoleBudget } from "./role-budget.ts";
import { type FormerBudget, isKept } from "./sent-history.ts";

/**
 * The units that were sent before limits were divided by partition. It is not known which partition has sent them, so
 * each partition begins with all of these units.
 */
export class DividedBudgets {
  /** By name and role: a budget that grants nothing and holds the units that a new partition has to count. */
  readonly #byKey = new Map<string, RoleBudget>();

  /** The units that a new partition counts; undefined if this is not the name of a partition, or if nothing was sent. */
  ofPartition(name: string, role: Role): RoleBudget | undefined {
    const common = nameWithoutPartition(name);
    return common === undefined ? undefined : this.#byKey.get(keyOf(common, role));
  }

  /** The budget for a route whose limits are divided, created on first use. */
  at(route: Route, role: Role): RoleBudget {
    const key = keyOf(route.name, role);
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const divided = new RoleBudget(route.name, role, route.roleBudget, undefined);
    divided.isDetached = true;
    this.#byKey.set(key, divided);
    return divided;
  }

  /** A reload begins: the units of divided budgets are to be counted again by the new limits. */
  takeAll(nowUs: number): readonly FormerBudget[] {
    const divided = [...this.#byKey.values()].filter(isKept(nowUs));
    this.#byKey.clear();
    return divided.map(({ name, role, log, windows, costLogs, holdUntilUs }) => ({
      ...{ name, role, log, windows, costLogs, holdUntilUs },
      isDivided: true,
    }));
  }
}

function keyOf(name: string, role: Role): string {
  return `${role} ${name}`;
}
