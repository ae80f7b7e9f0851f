import { EvictingMap } from "../core/evicting-map.ts";
import type { AimdPolicy } from "../core/limits/aimd.ts";
import { groupName, isGroupName } from "../policy/group-name.ts";
import type { LimitPolicies, Route } from "../policy/limits.ts";
import { ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { Budget, RoleBudget } from "./budget.ts";
import type { LearnedChange } from "./learned-limits.ts";
import { Pace } from "./pace.ts";

/** The lanes of a process, and the budgets above them. */
export class RoleBudgets implements Iterable<RoleBudget> {
  #limits: LimitPolicies;
  readonly #time: Time;
  readonly #byRole: Readonly<Record<Role, EvictingMap<RoleBudget>>>;
  /** As many as the policies of this run have named, by their names. */
  readonly #parents = new Map<string, Budget>();
  readonly #pinned = new Set<RoleBudget>();
  readonly #isForgettable: (roleBudget: RoleBudget) => boolean;
  readonly #onLapsed: (roleBudget: RoleBudget, changes: readonly LearnedChange[]) => void;

  /** `lapsed` hears of lanes that go by their policy again. */
  constructor(
    limits: LimitPolicies,
    time: Time,
    isForgettable: (roleBudget: RoleBudget) => boolean,
    onLapsed: (roleBudget: RoleBudget, changes: readonly LearnedChange[]) => void,
  ) {
    this.#limits = limits;
    this.#time = time;
    this.#isForgettable = isForgettable;
    this.#onLapsed = onLapsed;
    const make = () =>
      new EvictingMap<RoleBudget>(roleBudget => {
        // Answers to what it sent may still come; they find who took its place.
        roleBudget.isDetached = !this.#pinned.has(roleBudget) && isForgettable(roleBudget);
        return roleBudget.isDetached;
      });
    this.#byRole = { metadata: make(), landing: make(), artifact: make() };
  }

  /** The lane of a request, made on its first use. Throws a RangeError for what is not a host. */
  forHost(host: string, role: Role, path?: string): RoleBudget {
    const roleBudgets = this.#ofRole(role);
    // Known lanes carry canonical names, so that a host found here needs no more parsing.
    const known = path === undefined || !this.#limits.hasPaths(host) ? roleBudgets.get(host) : undefined;
    if (known !== undefined && !isGroupName(host))
      return known.learned === undefined ? known : this.#withoutLapsed(known);
    return this.#atRoute(this.#limits.route(host, role, path), role);
  }

  /**
   * The lane of a group of the policy: one whatever the host, or one for each where the group says so. Throws a
   * RangeError when there is no such group.
   */
  forService(service: string, role: Role, host: string): RoleBudget {
    const name = groupName(service);
    const roleBudget = this.#byName(name, role) ?? this.#byName(`${name}:${host}`, role);
    if (roleBudget === undefined) throw new RangeError(`${JSON.stringify(service)} is no group of the policy`);
    return roleBudget;
  }

  #byName(name: string, role: Role): RoleBudget | undefined {
    const known = this.#ofRole(role).get(name);
    if (known !== undefined) return this.#withoutLapsed(known);
    const route = this.#limits.routeByName(name, role);
    return route && this.#atRoute(route, role);
  }

  /** The lane itself; or which one serves its name by now, if it is gone. */
  current(roleBudget: RoleBudget): RoleBudget | undefined {
    if (!roleBudget.isDetached) return roleBudget;
    const route = this.#limits.routeByName(roleBudget.name, roleBudget.role);
    return route && this.#atRoute(route, roleBudget.role);
  }

  get aimd(): AimdPolicy {
    return this.#limits.aimd;
  }

  #ofRole(role: Role): EvictingMap<RoleBudget> {
    const roleBudgets = this.#byRole[role];
    if (roleBudgets === undefined) throw new RangeError(unknownRoleMessage(role));
    return roleBudgets;
  }

  #atRoute(route: Route, role: Role): RoleBudget {
    const roleBudgets = this.#byRole[role];
    const existing = roleBudgets.get(route.name);
    if (existing !== undefined) return this.#withoutLapsed(existing);
    const roleBudget = new RoleBudget(route.name, role, route.roleBudget, this.#chain(route));
    const { aimd } = this.#limits;
    // A pace that is slower from the start must be there from the start.
    if (aimd.enabled && aimd.maxMultiplier !== 1)
      roleBudget.pace = new Pace(roleBudget.policy, aimd, this.#time.monotonicUs());
    roleBudgets.add(route.name, roleBudget);
    return roleBudget;
  }

  /** One that might have been forgotten is as one that was: what its server said has lapsed. */
  #withoutLapsed(roleBudget: RoleBudget): RoleBudget {
    const { learned } = roleBudget;
    if (learned === undefined || !this.#isForgettable(roleBudget)) return roleBudget;
    roleBudget.unlearn(this.aimd);
    this.#onLapsed(roleBudget, learned.lapse());
    // Whoever was told may have come in here, and made it forgotten.
    return this.current(roleBudget) ?? roleBudget;
  }

  /**
   * Goes on under other limits: budgets keep what they counted. A lane whose requests now belong elsewhere is no longer
   * found, and lives on only for what is still in flight.
   */
  reload(limits: LimitPolicies): void {
    this.#limits = limits;
    const chains = new Map([...this].map(roleBudget => [roleBudget, chainOf(roleBudget)]));
    for (const [roleBudget, old] of chains) {
      const route = limits.routeByName(roleBudget.name, roleBudget.role);
      if (route?.name !== roleBudget.name) {
        this.#byRole[roleBudget.role].delete(roleBudget.name);
        roleBudget.isDetached = true;
        continue;
      }
      roleBudget.reload(route.roleBudget, limits.aimd);
      roleBudget.above = this.#chain(route);
      transfer(roleBudget, old, chainOf(roleBudget));
    }
  }

  /** A lane that is there before its first request, and is never forgotten. */
  pin(host: string, role: Role): void {
    this.#pinned.add(this.forHost(host, role));
  }

  *[Symbol.iterator](): IterableIterator<RoleBudget> {
    for (const role of ROLES) yield* this.#byRole[role].values();
  }

  #chain(route: Route): Budget | undefined {
    return route.above.reduceRight<Budget | undefined>((outer, { name, policy }) => {
      const budget = this.#parents.get(name) ?? new Budget(name, policy, outer);
      // One that nobody used when the limits changed still has its old numbers.
      if (budget.policy !== policy) budget.reload(policy, this.#limits.aimd);
      budget.above = outer;
      this.#parents.set(name, budget);
      return budget;
    }, undefined);
  }
}

function chainOf(roleBudget: RoleBudget): readonly Budget[] {
  const chain: Budget[] = [];
  for (let at = roleBudget.above; at; at = at.above) chain.push(at);
  return chain;
}

/** What a lane has out is counted in every budget above it, and only there. */
function transfer(roleBudget: RoleBudget, from: readonly Budget[], to: readonly Budget[]): void {
  for (const [budgets, others, sign] of [
    [from, to, -1],
    [to, from, 1],
  ] as const) {
    for (const budget of budgets) {
      if (others.includes(budget)) continue;
      budget.inFlight += sign * roleBudget.inFlight;
      budget.log.reserve(sign * roleBudget.log.pending);
    }
  }
}
