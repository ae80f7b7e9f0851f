import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import { budgetUnitOf } from "../policy/budget-unit.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { withoutTier } from "../policy/service-name.ts";
import { isExampleOfHosts } from "./moved-places.ts";
import { countAgain, type Reloaded, routeAt, type TakenOver } from "./recount.ts";
import { RoleBudget } from "./role-budget.ts";
import { copyOf, type FormerBudget, keptUntilUs } from "./sent-history.ts";

/** What a budget of a service had sent: the only one, or that of a partition. */
interface LeftBudget {
  readonly sender: FormerBudget;
  /** The budgets that count it, besides those that count all of the service. */
  readonly countedBy: Set<string>;
}

/** What a service had sent when a reload removed one of its suffixes. */
interface LeftService {
  readonly role: Role;
  /** By their names without keys, because it is not known which keys the requests of a host carried. */
  readonly budgets: Map<string, Map<string, LeftBudget>>;
  /** The budgets that count everything that the service had sent. */
  readonly countedBy: Set<string>;
  /** Everything that the service had sent, as one log, by the limits that it was merged for. */
  readonly merged: WeakMap<RoleBudgetPolicy, FormerBudget>;
}

interface LeftInReload {
  /** The limits before it. */
  readonly before: LimitPolicies;
  /** By role and name. */
  readonly services: ReadonlyMap<string, LeftService>;
  readonly untilUs: number;
}

/** The budgets of a service that a host has left. */
export interface FormerService {
  readonly name: string;
  /** The limits that they had. */
  readonly before: LimitPolicies;
  readonly senders: readonly FormerBudget[];
  /** The same units, for the windows of the host's budget. */
  readonly merged: readonly FormerBudget[];
}

/**
 * Hosts that no policy names, and that belonged to a service by a suffix until a reload. Which hosts these are is not
 * known. The budget of such a host counts all units of the service when the host is called for the first time. So does
 * a service that a later reload gives the suffix to.
 */
export class LeftHosts {
  #reloads: readonly LeftInReload[] = [];

  /** To be called after `countAgain`. */
  reloaded(senders: Iterable<FormerBudget>, before: LimitPolicies, now: LimitPolicies, nowUs: number): void {
    const countedBy = servicesLeft(before, now);
    if (countedBy.size === 0) return;
    const services = new Map<string, LeftService>();
    let untilUs = nowUs;
    for (const sender of senders) {
      const { name, role, log, holdUntilUs = 0 } = sender;
      const key = keyOf(name, role);
      const counting = countedBy.get(key);
      if (counting === undefined || (log.written === 0 && holdUntilUs <= nowUs)) continue;
      const service = services.get(key) ?? { role, budgets: new Map(), countedBy: counting, merged: new WeakMap() };
      services.set(key, service);
      const unit = withoutKeys(name);
      const ofUnit = service.budgets.get(unit) ?? new Map<string, LeftBudget>();
      // The units of limits that were divided since have the name of the service too.
      ofUnit.set(`${name} ${sender.isDivided ?? false}`, { sender: copyOf(sender), countedBy: new Set() });
      service.budgets.set(unit, ofUnit);
      untilUs = Math.max(untilUs, keptUntilUs(sender));
    }
    if (services.size > 0) this.#reloads = [...this.#reloads, { before, services, untilUs }];
  }

  /** A later reload may name the hosts in other services: those count the units too, each of them once. */
  countAgain(reloaded: Reloaded): TakenOver[] {
    this.#dropEnded(reloaded.nowUs);
    return this.#reloads.flatMap(({ before, services }) =>
      [...services.values()].flatMap(({ role, budgets, countedBy }) => {
        addMoved(countedBy, role, reloaded);
        return allOf(budgets).flatMap(budget => {
          addMoved(budget.countedBy, role, reloaded);
          const isCounted = (name: string) => {
            // A host counts the units when it is called.
            if (isHostName(name) || countedBy.has(name) || budget.countedBy.has(name)) return true;
            budget.countedBy.add(name);
            return false;
          };
          return countAgain([budget.sender], { ...reloaded, before }, isCounted);
        });
      }),
    );
  }

  /** The services that the host of a new budget has left; each of their budgets is returned once for each new budget. */
  leftBy({ name, role, policy }: RoleBudget, nowUs: number): readonly FormerService[] {
    this.#dropEnded(nowUs);
    return this.#reloads.flatMap(({ before, services }) => {
      const former = formerName(name, role, before);
      const service = former === undefined ? undefined : services.get(keyOf(former, role));
      if (former === undefined || service === undefined || service.countedBy.has(name)) return [];
      const senders = sendersFor(name, former, service);
      if (senders.length === 0) return [];
      return { name: former, before, senders, merged: mergedFor(policy, senders, service) };
    });
  }

  #dropEnded(nowUs: number): void {
    if (this.#reloads.some(({ untilUs }) => untilUs <= nowUs))
      this.#reloads = this.#reloads.filter(({ untilUs }) => untilUs > nowUs);
  }
}

/** Those that the budget does not count yet. From now on it does. */
function sendersFor(name: string, former: string, { budgets, countedBy }: LeftService): readonly FormerBudget[] {
  const isCommon = name === commonName(name);
  if (isCommon) countedBy.add(name);
  const candidates = isCommon ? allOf(budgets) : [...(budgets.get(withoutKeys(former))?.values() ?? [])];
  return candidates.flatMap(budget => {
    if (budget.countedBy.has(name)) return [];
    if (!isCommon) budget.countedBy.add(name);
    return budget.sender;
  });
}

function allOf(budgets: LeftService["budgets"]): readonly LeftBudget[] {
  return Array.from(budgets.values(), ofUnit => [...ofUnit.values()]).flat();
}

/** Whether there are no other senders. Stops counting early, because there may be one for each of many partitions. */
function areAll(senders: readonly FormerBudget[], budgets: LeftService["budgets"]): boolean {
  let count = 0;
  for (const ofUnit of budgets.values()) {
    count += ofUnit.size;
    if (count > senders.length) return false;
  }
  return true;
}

/** Everything that a service had sent is merged once for all hosts with the same limits. */
function mergedFor(
  policy: RoleBudgetPolicy,
  senders: readonly FormerBudget[],
  { role, budgets, merged }: LeftService,
): readonly FormerBudget[] {
  if (senders.length === 1 || !areAll(senders, budgets)) return senders;
  const known = merged.get(policy);
  if (known !== undefined) return [known];
  const sum = new RoleBudget("merged", role, policy, undefined);
  sum.absorb(senders);
  merged.set(policy, sum);
  return [sum];
}

/** Adds the budgets that count, since a reload, what these ones have counted. */
function addMoved(names: Set<string>, role: Role, { before, now, moved }: Reloaded): void {
  for (const name of [...names]) {
    if (moved.isUnmoved(name, role, before)) continue;
    const partition = name.slice(commonName(name).length);
    for (const place of moved.of(name, role, before)) names.add(routeAt(place, role, partition, now).name);
  }
}

/** By role and name, the services that hosts have left, with the budgets that the reload itself has counted them in. */
function servicesLeft(before: LimitPolicies, now: LimitPolicies): ReadonlyMap<string, Set<string>> {
  const services = new Map<string, Set<string>>();
  for (const role of ROLES) {
    for (const place of before.namedPlaces())
      if (isExampleOfHosts(place, role, now) && !isExampleOfHosts(place, role, before))
        services.set(keyOf(before.route(place.host, role, place.path).name, role), new Set());
    if (services.size === 0) continue;
    for (const place of now.namedPlaces()) {
      if (isExampleOfHosts(place, role, now)) continue;
      const { host, path, sentKeys } = place;
      const former = before.route(host, role, path, sentKeys).name;
      services.get(keyOf(former, role))?.add(now.route(host, role, path, sentKeys).name);
    }
  }
  return services;
}

/** The budget that counted the requests of a host's budget by earlier limits; undefined for another budget. */
export function formerName(name: string, role: Role, before: LimitPolicies): string | undefined {
  const { host } = budgetUnitOf(name);
  if (host === undefined || !isHostName(name)) return undefined;
  return routeAt({ host, path: undefined }, role, name.slice(commonName(name).length), before).name;
}

/** Whether it is the name of a host's budget, without keys, or of one of its partitions. */
function isHostName(name: string): boolean {
  const { host, service, tiers } = budgetUnitOf(name);
  return host !== undefined && service === undefined && tiers.length === 0;
}

/** One key for the budgets of a host or service, whatever keys their requests carry. */
export function keyOf(name: string, role: Role): string {
  return `${role} ${withoutTier(commonName(name))}`;
}

/** The name of a budget, or of its partition, without the keys that its requests carry. */
export function withoutKeys(name: string): string {
  const common = commonName(name);
  return `${withoutTier(common)}${name.slice(common.length)}`;
}
