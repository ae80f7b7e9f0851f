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

/** What a budget of a service had sent. A service has one budget, or one for each partition. */
interface SentByBudget {
  readonly sender: FormerBudget;
  /** The names of the budgets that count it, without those that count everything that the service had sent. */
  readonly countedBy: Set<string>;
}

/** What a service had sent when a reload removed one of its suffixes. */
interface SentByService {
  readonly role: Role;
  /** By their names without API keys, because it is not known which API keys the requests of a host carried. */
  readonly budgets: Map<string, Map<string, SentByBudget>>;
  /** The names of the budgets that count everything that the service had sent. */
  readonly countedBy: Set<string>;
  /** Everything that the service had sent, merged into one log for the windows of these limits. */
  readonly merged: WeakMap<RoleBudgetPolicy, FormerBudget>;
}

/** The services that lost suffixes in one reload. */
interface RemovedSuffixes {
  /** The limits before the reload. */
  readonly before: LimitPolicies;
  /** By role and name. */
  readonly services: ReadonlyMap<string, SentByService>;
  readonly untilUs: number;
}

/** The budgets of a service that a host has left. */
export interface FormerService {
  readonly name: string;
  /** The limits of the service when the host left it. */
  readonly before: LimitPolicies;
  readonly senders: readonly FormerBudget[];
  /** The same units, for the windows of the host's budget. */
  readonly merged: readonly FormerBudget[];
}

/**
 * Hosts that no policy names, and that belonged to a service by a suffix such as `*.example.org` until a reload removed
 * the suffix. The names of these hosts are not known. When such a host is called for the first time, its budget counts
 * all units of the service. If a later reload adds the suffix to another service, that service counts them too.
 */
export class FormerMembers {
  #reloads: readonly RemovedSuffixes[] = [];

  /** To be called after `countAgain`. */
  reloaded(senders: Iterable<FormerBudget>, before: LimitPolicies, now: LimitPolicies, nowUs: number): void {
    const countedBy = servicesLeft(before, now);
    if (countedBy.size === 0) return;
    const services = new Map<string, SentByService>();
    let untilUs = nowUs;
    for (const sender of senders) {
      const { name, role, log, holdUntilUs = 0 } = sender;
      const key = keyOf(name, role);
      const counting = countedBy.get(key);
      if (counting === undefined || (log.written === 0 && holdUntilUs <= nowUs)) continue;
      const service = services.get(key) ?? { role, budgets: new Map(), countedBy: counting, merged: new WeakMap() };
      services.set(key, service);
      const unit = withoutKeys(name);
      const ofUnit = service.budgets.get(unit) ?? new Map<string, SentByBudget>();
      // A budget whose limits were divided into partitions since has the same name as the budget of the service.
      ofUnit.set(`${name} ${sender.isDivided ?? false}`, { sender: copyOf(sender), countedBy: new Set() });
      service.budgets.set(unit, ofUnit);
      untilUs = Math.max(untilUs, keptUntilUs(sender));
    }
    if (services.size > 0) this.#reloads = [...this.#reloads, { before, services, untilUs }];
  }

  /** A later reload may add the hosts to other services. Those services count the units too, each unit once. */
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

  /**
   * The services that the host of a new budget belonged to. Each of their budgets is returned once for the same budget.
   */
  formerServicesOf({ name, role, policy }: RoleBudget, nowUs: number): readonly FormerService[] {
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

/** The budgets of the service that the budget `name` does not count yet. They are recorded as counted. */
function sendersFor(name: string, former: string, { budgets, countedBy }: SentByService): readonly FormerBudget[] {
  const isCommon = name === commonName(name);
  if (isCommon) countedBy.add(name);
  const candidates = isCommon ? allOf(budgets) : [...(budgets.get(withoutKeys(former))?.values() ?? [])];
  return candidates.flatMap(budget => {
    if (budget.countedBy.has(name)) return [];
    if (!isCommon) budget.countedBy.add(name);
    return budget.sender;
  });
}

function allOf(budgets: SentByService["budgets"]): readonly SentByBudget[] {
  return Array.from(budgets.values(), ofUnit => [...ofUnit.values()]).flat();
}

/** Whether `senders` are all budgets of the service. Stops counting early, because there may be many partitions. */
function areAll(senders: readonly FormerBudget[], budgets: SentByService["budgets"]): boolean {
  let count = 0;
  for (const ofUnit of budgets.values()) {
    count += ofUnit.size;
    if (count > senders.length) return false;
  }
  return true;
}

/** What `senders` had sent. If they are all budgets of the service, they are merged once for hosts with these limits. */
function mergedFor(
  policy: RoleBudgetPolicy,
  senders: readonly FormerBudget[],
  { role, budgets, merged }: SentByService,
): readonly FormerBudget[] {
  if (senders.length === 1 || !areAll(senders, budgets)) return senders;
  const known = merged.get(policy);
  if (known !== undefined) return [known];
  const sum = new RoleBudget("merged", role, policy, undefined);
  sum.absorb(senders);
  merged.set(policy, sum);
  return [sum];
}

/** If a reload has moved the places of these budgets, adds the names of the budgets that count the places now. */
function addMoved(names: Set<string>, role: Role, { before, now, moved }: Reloaded): void {
  for (const name of [...names]) {
    if (moved.isUnmoved(name, role, before)) continue;
    const partition = name.slice(commonName(name).length);
    for (const place of moved.of(name, role, before)) names.add(routeAt(place, role, partition, now).name);
  }
}

/**
 * The services that a reload has removed suffixes from, by role and name, with the names of the budgets in which the
 * reload itself has counted what they had sent.
 */
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

/** The budget that counted the requests of a host by earlier limits; undefined if `name` is no budget of a host. */
export function formerName(name: string, role: Role, before: LimitPolicies): string | undefined {
  const { host } = budgetUnitOf(name);
  if (host === undefined || !isHostName(name)) return undefined;
  return routeAt({ host, path: undefined }, role, name.slice(commonName(name).length), before).name;
}

/** Whether this is the name of the budget of a host, or of one of its partitions, for requests without API keys. */
function isHostName(name: string): boolean {
  const { host, service, tiers } = budgetUnitOf(name);
  return host !== undefined && service === undefined && tiers.length === 0;
}

/** A key for maps: the same for all budgets of a host or service in one role, with and without API keys. */
export function keyOf(name: string, role: Role): string {
  return `${role} ${withoutTier(commonName(name))}`;
}

/** The name of a budget, or of its partition, without the API keys that its requests carry. */
export function withoutKeys(name: string): string {
  const common = commonName(name);
  return `${withoutTier(common)}${name.slice(common.length)}`;
}
