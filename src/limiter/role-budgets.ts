import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { type BudgetPolicy, UNLIMITED } from "../policy/budget-policy.ts";
import type { SentKeys } from "../policy/identity.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { commonName, nameWithoutPartition, partitionName } from "../policy/partition-name.ts";
import { type LimitPart, ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import { isServiceName } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import { Budget, budgetsAbove } from "./budget.ts";
import { CarriedUse, isCountedElsewhere } from "./carried-use.ts";
import type { EntryRequest } from "./entry-request.ts";
import { KnownBudgets } from "./known-budgets.ts";
import type { LimiterEmitter } from "./limiter-emitter.ts";
import { LimitsInForce } from "./limits-in-force.ts";
import { changedTotals, type OrderedChange } from "./ordered-change.ts";
import { hasSameOrders, type OrderedKey } from "./ordered-limits.ts";
import { Pace } from "./pace.ts";
import { hasTotal, ReloadHolds } from "./reload-holds.ts";
import { RoleBudget, type StoreState } from "./role-budget.ts";
import { knownUse } from "./shared-use.ts";
import { TotalBudgets } from "./total-budgets.ts";

/** The role budgets of a process, the shared budgets above them, and the global ceiling. */
export class RoleBudgets implements Iterable<RoleBudget> {
  /** The global ceiling on requests in flight, above every other budget. */
  readonly root: Budget;
  readonly store: StoreState = { isBlocking: false };
  readonly #inForce: LimitsInForce;
  /** When the limits last changed. Units that were charged before may be counted in other budgets now. */
  reloadedUs = Number.NEGATIVE_INFINITY;
  readonly #holds = new ReloadHolds();
  /** When the store was lost, while the limits are divided. */
  #lostUs: number | undefined = undefined;
  readonly #time: Time;
  readonly #byRole: Readonly<Record<Role, KnownBudgets>>;
  readonly #totals: TotalBudgets;
  /** Hosts and roles whose budgets are never evicted, and these budgets. */
  readonly #pins: { readonly host: string; readonly role: Role }[] = [];
  readonly #pinned = new Set<RoleBudget>();
  readonly #emitter: LimiterEmitter;
  readonly carried = new CarriedUse(() => this.isShared);
  /** Nothing is evicted and no event is emitted while no budget counts the requests in flight. */
  #isReloading = false;
  /** Whether the budgets are shared through a store. */
  isShared = false;

  /** @param keptKeys of each role: up to this many nothing is evicted, so that the counts in snapshots go on */
  constructor(limits: LimitPolicies, time: Time, emitter: LimiterEmitter, keptKeys = 0) {
    this.root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    this.#inForce = new LimitsInForce(limits);
    this.#time = time;
    this.#emitter = emitter;
    this.#totals = new TotalBudgets(time, (total, route) => {
      this.#countUnknown(total);
      if (this.isShared) this.#holds.holdTotal(total, route, this.#limits, time.monotonicUs());
    });
    const make = (role: Role) =>
      new KnownBudgets(role, {
        time,
        store: this.store,
        keptKeys,
        // With a store, leases and reports refer to the object itself.
        mayPack: () => !this.isShared,
        isKept: roleBudget => this.#isReloading || this.#pinned.has(roleBudget),
        onEvict: roleBudget => {
          this.#totals.left(roleBudget);
          this.carried.history.add(roleBudget, true);
        },
      });
    this.#byRole = { metadata: make("metadata"), landing: make("landing"), artifact: make("artifact") };
  }

  /** The budget of a request, created on first use. Throws a RangeError for an invalid host or an unknown service. */
  of({ service, host, role, path, sentKeys, partition }: EntryRequest): RoleBudget {
    const common =
      service === undefined
        ? this.forHost(host, role, path, sentKeys)
        : this.forService(service, role, host, path, sentKeys);
    return partition === undefined || !common.policy.isPerPartition ? common : this.#forPartition(common, partition);
  }

  /** The budget of a host, created on first use. Throws a RangeError for an invalid host. */
  forHost(host: string, role: Role, path?: string, sentKeys?: SentKeys): RoleBudget {
    const roleBudgets = this.#ofRole(role);
    // Budgets have canonical names, so a host that is found here needs no parsing, unless keys or paths decide.
    const known = path === undefined || !this.#limits.hasPaths(host) ? roleBudgets.get(host) : undefined;
    if (known !== undefined && !known.policy.hasTiers && !isServiceName(host))
      return known.learned === undefined ? known : this.#withoutLapsed(known);
    return this.#atRoute(this.#limits.route(host, role, path, sentKeys), role);
  }

  /**
   * The budget of a request that names a service: one for all hosts, or one for each host if the service has `per_host`.
   * Throws a RangeError for an unknown service.
   */
  forService(service: string, role: Role, host: string, path?: string, sentKeys?: SentKeys): RoleBudget {
    this.#ofRole(role);
    const route = this.#limits.serviceRoute(service, host, role, path, sentKeys);
    if (route === undefined)
      throw new RangeError(`unknown service ${JSON.stringify(service)}: the policy has no service of that name`);
    return this.#atRoute(route, role);
  }

  #forPartition(common: RoleBudget, partition: string): RoleBudget {
    const { role } = common;
    const name = partitionName(common.name, partition);
    const known = this.#byRole[role].get(name);
    if (known !== undefined) return this.#withoutLapsed(known);
    const route = this.#limits.routeByName(name, role);
    return route === undefined ? common : this.#atRoute(route, role);
  }

  /** The budget with this key, as refusals name it (`RejectedError.host`); undefined if it does not exist. */
  known(key: string, role: Role): RoleBudget | undefined {
    return this.#ofRole(role).get(key);
  }

  /** The budget itself, or the one that replaced it if it is detached; undefined if its name is no longer routed. */
  current(roleBudget: RoleBudget): RoleBudget | undefined {
    if (!roleBudget.isDetached) return roleBudget;
    const route = this.#limits.routeByName(roleBudget.name, roleBudget.role);
    return route && this.#atRoute(route, roleBudget.role);
  }

  get #limits(): LimitPolicies {
    return this.#inForce.current;
  }

  get aimd(): AimdPolicy {
    return this.#limits.aimd;
  }

  #ofRole(role: Role): KnownBudgets {
    const roleBudgets = this.#byRole[role];
    // `role` may be any text here. Every object has a member "toString", so a check for undefined does not suffice.
    if (!(roleBudgets instanceof KnownBudgets)) throw new RangeError(unknownRoleMessage(role));
    return roleBudgets;
  }

  #atRoute(route: Route, role: Role): RoleBudget {
    const roleBudgets = this.#byRole[role];
    const existing = roleBudgets.get(route.name);
    if (existing !== undefined) return this.#withoutLapsed(existing);
    const roleBudget = new RoleBudget(
      route.name,
      role,
      route.roleBudget,
      this.#totals.of(route, this.aimd),
      this.store,
    );
    this.#totals.joined(roleBudget);
    this.#countUnknown(roleBudget);
    this.carried.created(roleBudget, this.#time.monotonicUs());
    this.#holdMoved(roleBudget);
    this.#startPace(roleBudget);
    roleBudgets.add(roleBudget);
    return roleBudget;
  }

  #holdMoved(roleBudget: RoleBudget): void {
    if (this.isShared) this.#holds.holdRoleBudget(roleBudget, this.#limits, this.#time.monotonicUs());
  }

  /** With max_multiplier below 1 the windows are stretched from the first request on. */
  #startPace(roleBudget: RoleBudget): void {
    const { policy, pace } = roleBudget;
    if (pace === undefined && Pace.isSlowFromStart(policy, this.aimd))
      roleBudget.pace = new Pace(policy, this.aimd, this.#time.monotonicUs());
  }

  /** A budget that may be evicted must behave like a new one (law L11), so its learned limits lapse. */
  #withoutLapsed(roleBudget: RoleBudget): RoleBudget {
    const { learned } = roleBudget;
    // A listener of the event may call the gate, which must not happen while no budget counts the requests in flight.
    if (learned === undefined || this.#isReloading || !roleBudget.isEvictable(this.#time.monotonicUs()))
      return roleBudget;
    roleBudget.unlearn(this.aimd);
    this.#emitter.learned(roleBudget, learned.lapseChanges());
    // A listener of the event may have made a call that evicted the budget.
    return this.current(roleBudget) ?? roleBudget;
  }

  /**
   * Applies new limits; budgets keep what they counted. A budget whose requests are now routed elsewhere is detached
   * and only serves requests that are still in flight.
   */
  reload(limits: LimitPolicies): void {
    this.#inForce.configure(limits);
    this.root.policy = { ...this.root.policy, maxConcurrent: limits.maxInFlight };
    const before = this.#limits;
    this.#inForce.divide(this.#inForce.shareCount);
    this.#reapply(before);
  }

  /**
   * Divides the configured limits by `count`; 1 restores them. With `lostUs`, the store was lost at that instant: units
   * that other processes may have used since its last reply count as used.
   */
  share(count: number, lostUs?: number): void {
    if (lostUs !== undefined && this.#inForce.shareCount > 1) this.share(1);
    const unknown = new Map<Budget, number>();
    if (lostUs !== undefined && count > 1) {
      for (const roleBudget of this)
        for (const budget of [roleBudget, ...budgetsAbove(roleBudget)])
          unknown.set(budget, budget.unknownUnits(count, lostUs));
    }
    this.#divide(count);
    for (const [budget, units] of unknown) budget.countUnknown(units, lostUs ?? 0);
    // A reload keeps the instant: budgets that are created later count from it.
    if (lostUs !== undefined || count === 1) this.#lostUs = count === 1 ? undefined : lostUs;
  }

  /** Changes numbers only: every request keeps its route, so that no budget takes over the requests of another one. */
  #divide(count: number): void {
    this.#inForce.divide(count);
    const limits = this.#limits;
    this.reloadedUs = this.#time.monotonicUs();
    for (const roleBudget of this.#all()) {
      const route = limits.routeByName(roleBudget.name, roleBudget.role);
      if (route !== undefined) this.#apply(route, roleBudget);
    }
  }

  /** Applies limits that may route requests to other budgets. */
  #reapply(before: LimitPolicies): void {
    const limits = this.#limits;
    const nowUs = this.#time.monotonicUs();
    this.reloadedUs = nowUs;
    this.#holds.reloaded(before, nowUs);
    const all = this.#all();
    this.#isReloading = true;
    this.carried.takeOut(all, before);
    for (const roleBudget of all) {
      const route = limits.routeByName(roleBudget.name, roleBudget.role);
      if (route?.name !== roleBudget.name) {
        this.#byRole[roleBudget.role].delete(roleBudget.name);
        roleBudget.isDetached = true;
        this.#totals.left(roleBudget);
        // The units that it sent count again if the service comes back.
        if (!isCountedElsewhere(before, roleBudget.name, roleBudget.role)) this.carried.history.add(roleBudget, false);
        continue;
      }
      this.#apply(route, roleBudget);
      this.#holdMoved(roleBudget);
    }
    this.carried.countAgain(all, {
      ...{ before, now: limits, nowUs },
      budgetAt: (route, role) => this.#atRoute(route, role),
      partitions: () => this.#partitions(),
    });
    this.#isReloading = false;
    this.#dropRemovedTotals(nowUs);
    // The new limits may route a pinned host to another budget.
    this.#pinned.clear();
    for (const { host, role } of this.#pins) this.#pinned.add(this.forHost(host, role));
  }

  #all(): readonly RoleBudget[] {
    return ROLES.flatMap(role => this.#byRole[role].named(() => true));
  }

  #apply(route: Route, roleBudget: RoleBudget): void {
    const { aimd } = this.#limits;
    roleBudget.reload(route.roleBudget, aimd);
    this.#startPace(roleBudget);
    this.#totals.move(roleBudget, this.#totals.of(route, aimd));
    roleBudget.trackCosts();
  }

  #partitions(): readonly RoleBudget[] {
    return ROLES.flatMap(role => this.#byRole[role].named(name => nameWithoutPartition(name) !== undefined));
  }

  /**
   * Drops the totals that no route has any more: neither that of their own name nor that of a role budget. A total whose
   * role budgets were evicted is still used.
   */
  #dropRemovedTotals(nowUs: number): void {
    const suspects = [...this.#totals.names, ...this.#totals.evictedNames].filter(name =>
      ROLES.every(role => !hasTotal(this.#limits.routeByName(name, role), name)),
    );
    if (suspects.length === 0) return;
    const budgets = [...this, ...this.carried.history.all(nowUs)];
    const used = new Set(
      budgets.flatMap(({ name, role }) => this.#limits.routeByName(name, role)?.above.map(total => total.name) ?? []),
    );
    for (const name of suspects) if (!used.has(name)) this.#totals.drop(name);
  }

  /**
   * An operator has changed the limits of a host or service, in a role or in total, or has ended such a change. Units
   * that were sent still count (law L1).
   */
  setOrder(name: string, part: LimitPart, limit: OrderedLimit): readonly OrderedChange[] {
    // So that snapshots list it, even before its first call.
    const role = part === "total" ? "metadata" : part;
    const route = limit.untilUs === 0 ? undefined : this.#routeOfOrder(name, role);
    if (route !== undefined) this.#atRoute(route, role);
    return this.#withOrders(() => {
      this.#inForce.setOrder(name, part, limit);
      return [{ name, part }];
    });
  }

  /** An order for a host concerns the budget that its calls use, with the keys that they carry. */
  #routeOfOrder(name: string, role: Role): Route | undefined {
    return isServiceName(name) ? this.#limits.routeByName(name, role) : this.#limits.route(commonName(name), role);
  }

  /** When the next order ends; undefined if there is none. */
  get nextOrderEndUs(): number | undefined {
    return this.#inForce.nextOrderEndUs;
  }

  /** Ends the orders whose time is over. */
  endOrders(nowUs: number): readonly OrderedChange[] {
    return this.#withOrders(() => this.#inForce.removeEnded(nowUs));
  }

  /** An order for a total is applied as a reload is, because it may add a total, or remove it. */
  #withOrders(change: () => readonly OrderedKey[]): readonly OrderedChange[] {
    const before = this.#limits;
    const keys = change();
    const changes = keys.flatMap(({ name, part }) => (part === "total" ? [] : this.#applyOrders(name, part)));
    if (keys.every(({ part }) => part !== "total")) return changes;
    const policies = this.#totalPolicies();
    this.#reapply(before);
    return [...changes, ...changedTotals(policies, this.#totalPolicies())];
  }

  /** Only the limits of role budgets change, so that the budgets above them stay as they are. */
  #applyOrders(name: string, role: Role): readonly OrderedChange[] {
    const changes: OrderedChange[] = [];
    for (const roleBudget of this.#byRole[role].named(this.#inForce.mayConcern(name, role))) {
      const policy = this.#limits.routeByName(roleBudget.name, role)?.roleBudget;
      const { policy: old } = roleBudget;
      if (policy === undefined || hasSameOrders(policy, old)) continue;
      roleBudget.reload(policy, this.aimd);
      changes.push({ name: roleBudget.name, part: role, old, now: policy, roleBudget });
    }
    return changes;
  }

  #totalPolicies(): ReadonlyMap<string, BudgetPolicy> {
    return new Map([...this].flatMap(budgetsAbove).map(({ name, policy }) => [name, policy]));
  }

  /** Creates the budget before its first request. It is never evicted. */
  pin(host: string, role: Role): void {
    this.#pins.push({ host, role });
    this.#pinned.add(this.forHost(host, role));
  }

  /** All role budgets, to be read. Idle ones are copies. */
  *[Symbol.iterator](): IterableIterator<RoleBudget> {
    for (const role of ROLES) yield* this.#byRole[role];
  }

  /** A budget that is created while the store is away: nothing is known of its use by other processes. */
  #countUnknown(budget: Budget): void {
    if (this.#lostUs !== undefined) {
      const full = knownUse(budget.windows, undefined, this.#lostUs);
      budget.countUnknown(Math.max(0, ...full), this.#lostUs);
    }
  }
}
