import { EvictingMap } from "../core/evicting-map.ts";
import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { WindowLog } from "../core/limits/window-log.ts";
import { UNLIMITED } from "../policy/budget-policy.ts";
import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { shareOf } from "../policy/limits-share.ts";
import { commonName, partitionName } from "../policy/partition-name.ts";
import { ROLES, type Role, unknownRoleMessage } from "../policy/roles.ts";
import { isServiceName } from "../policy/service-name.ts";
import type { Time } from "../time/time.ts";
import { Budget } from "./budget.ts";
import type { Costs } from "./charge.ts";
import type { CostLog } from "./cost-log.ts";
import type { EntryRequest } from "./entry-request.ts";
import type { LimiterEmitter } from "./limiter-emitter.ts";
import { hasSameOrders, mayConcern, type OrderedKey, OrderedLimits } from "./ordered-limits.ts";
import { Pace } from "./pace.ts";
import { RoleBudget, type StoreState } from "./role-budget.ts";
import { type FormerBudget, SentHistory } from "./sent-history.ts";
import { knownUse } from "./shared-use.ts";

/** After a reload that all processes make at about the same time, each has reported to the store within this. */
const REPORTED_WITHIN_US = 1_600_000;

/** What a budget has taken over from others, which have sent it before a reload. */
export interface TakenOver {
  readonly budget: Budget;
  /** One of the role budgets whose requests pass it. */
  readonly roleBudget: RoleBudget;
  /** Units that count in its windows now. */
  readonly units: number;
}

/** A budget whose orders have changed. */
export interface OrderedChange {
  readonly roleBudget: RoleBudget;
  /** Its rates before. */
  readonly old: readonly string[];
}

/** The role budgets of a process, the shared budgets above them, and the global ceiling. */
export class RoleBudgets implements Iterable<RoleBudget> {
  /** The global ceiling on requests in flight, above every other budget. */
  readonly root: Budget;
  readonly store: StoreState = { isBlocking: false };
  /** The limits of the policy, undivided and without orders. */
  #configured: LimitPolicies;
  readonly #orders = new OrderedLimits();
  #shareCount = 1;
  /** When the limits last changed. What was charged before may be counted in other budgets now. */
  reloadedUs = Number.NEGATIVE_INFINITY;
  /** When the store was lost, while the limits are divided. */
  #lostUs: number | undefined = undefined;
  /** The limits in force: those of the policy with the orders of operators; a share of them while the store is away. */
  #limits: LimitPolicies;
  readonly #time: Time;
  readonly #byRole: Readonly<Record<Role, EvictingMap<RoleBudget>>>;
  /** Shared budgets by name. Bounded by the names that the policies of this run have used, so nothing is evicted. */
  readonly #parents = new Map<string, Budget>();
  /** Hosts and roles whose budgets are never forgotten, and these budgets. */
  readonly #pins: { readonly host: string; readonly role: Role }[] = [];
  readonly #pinned = new Set<RoleBudget>();
  readonly #emitter: LimiterEmitter;
  readonly #history = new SentHistory();
  /** What budgets have taken over in the last reload. */
  #takenOver: TakenOver[] = [];
  /** Whether the budgets are shared through a store. */
  isShared = false;

  /** @param keptKeys of each role: up to this many nothing is forgotten, so that the counts in snapshots go on */
  constructor(limits: LimitPolicies, time: Time, emitter: LimiterEmitter, keptKeys = 0) {
    this.root = new Budget("global", { ...UNLIMITED, maxConcurrent: limits.maxInFlight }, undefined);
    this.#configured = limits;
    this.#limits = limits;
    this.#time = time;
    this.#emitter = emitter;
    const make = () =>
      new EvictingMap<RoleBudget>(roleBudget => {
        // Responses to its requests may still arrive; `current` finds the budget that replaced it.
        roleBudget.isDetached = !this.#pinned.has(roleBudget) && roleBudget.isForgettable(time.monotonicUs());
        if (roleBudget.isDetached) this.#history.add(roleBudget, true);
        return roleBudget.isDetached;
      }, keptKeys);
    this.#byRole = { metadata: make(), landing: make(), artifact: make() };
  }

  /** The budget of a request, created on first use. Throws a RangeError for an invalid host or an unknown service. */
  of({ service, host, role, path, partition }: EntryRequest): RoleBudget {
    const common = service === undefined ? this.forHost(host, role, path) : this.forService(service, role, host, path);
    return partition === undefined || !common.policy.isPerPartition ? common : this.#forPartition(common, partition);
  }

  /** The budget of a host, created on first use. Throws a RangeError for an invalid host. */
  forHost(host: string, role: Role, path?: string): RoleBudget {
    const roleBudgets = this.#ofRole(role);
    // Budgets have canonical names, so a host that is found here needs no parsing.
    const known = path === undefined || !this.#limits.hasPaths(host) ? roleBudgets.get(host) : undefined;
    if (known !== undefined && !isServiceName(host))
      return known.learned === undefined ? known : this.#withoutLapsed(known);
    return this.#atRoute(this.#limits.route(host, role, path), role);
  }

  /**
   * The budget of a request that names a service: one for all hosts, or one for each host if the service has `per_host`.
   * Throws a RangeError for an unknown service.
   */
  forService(service: string, role: Role, host: string, path?: string): RoleBudget {
    this.#ofRole(role);
    const route = this.#limits.serviceRoute(service, host, role, path);
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

  /** The budget itself, or the one that replaced it if it is detached; undefined if its name is no longer routed. */
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
    const roleBudget = new RoleBudget(route.name, role, route.roleBudget, this.#chain(route), this.store);
    this.#countUnknown(roleBudget);
    const former = this.#history.of(route.name, role, this.#time.monotonicUs());
    if (former !== undefined) roleBudget.absorb([former]);
    const { aimd } = this.#limits;
    // With max_multiplier below 1 the windows are stretched from the first request on.
    if (aimd.enabled && aimd.maxMultiplier !== 1)
      roleBudget.pace = new Pace(roleBudget.policy, aimd, this.#time.monotonicUs());
    roleBudgets.add(route.name, roleBudget);
    return roleBudget;
  }

  /** A budget that may be forgotten must behave like a new one (law L11), so its learned limits lapse. */
  #withoutLapsed(roleBudget: RoleBudget): RoleBudget {
    const { learned } = roleBudget;
    if (learned === undefined || !roleBudget.isForgettable(this.#time.monotonicUs())) return roleBudget;
    roleBudget.unlearn(this.aimd);
    this.#emitter.learned(roleBudget, learned.lapse());
    // A listener may have called in here and evicted it.
    return this.current(roleBudget) ?? roleBudget;
  }

  /**
   * Applies new limits; budgets keep what they counted. A budget whose requests are now routed elsewhere is detached
   * and only serves requests that are still in flight.
   */
  reload(limits: LimitPolicies): void {
    this.#configured = limits;
    this.root.policy = { ...this.root.policy, maxConcurrent: limits.maxInFlight };
    this.share(this.#shareCount);
  }

  /**
   * Divides the configured limits by `count`; 1 restores them. With `lostUs`, the store was lost at that instant: what
   * other processes may have used since its last reply counts as used.
   */
  share(count: number, lostUs?: number): void {
    if (lostUs !== undefined && this.#shareCount > 1) this.share(1);
    const unknown = new Map<Budget, number>();
    if (lostUs !== undefined && count > 1) {
      for (const roleBudget of this)
        for (const budget of [roleBudget, ...chainOf(roleBudget)])
          unknown.set(budget, budget.unknownUnits(count, lostUs));
    }
    this.#divide(count);
    for (const [budget, units] of unknown) budget.countUnknown(units, lostUs ?? 0);
    // A reload keeps the instant: budgets that are created later count from it.
    if (lostUs !== undefined || count === 1) this.#lostUs = count === 1 ? undefined : lostUs;
  }

  #divide(count: number): void {
    const limits = shareOf(this.#orders.applyTo(this.#configured), count);
    const before = this.#limits;
    const nowUs = this.#time.monotonicUs();
    this.#shareCount = count;
    this.reloadedUs = nowUs;
    this.#limits = limits;
    const chains = new Map([...this].map(roleBudget => [roleBudget, chainOf(roleBudget)]));
    for (const [roleBudget, old] of chains) {
      const route = limits.routeByName(roleBudget.name, roleBudget.role);
      if (route?.name !== roleBudget.name) {
        this.#byRole[roleBudget.role].delete(roleBudget.name);
        roleBudget.isDetached = true;
        // Requests that are not written yet count as written now; their stamps would only reach this budget.
        writePending(roleBudget, nowUs);
        // The hosts of a suffix are not known: what it sent counts again if the service comes back.
        if (before.placesOf(roleBudget.name).length === 0) this.#history.add(roleBudget, false);
        continue;
      }
      roleBudget.reload(route.roleBudget, limits.aimd);
      roleBudget.above = this.#chain(route);
      roleBudget.trackCosts();
      transfer(roleBudget, old, chainOf(roleBudget));
    }
    this.#countAgain([...chains.keys(), ...this.#history.all(nowUs)], before, nowUs);
    this.#dropRemovedTotals([...chains.values()].flat(), nowUs);
    // The new limits may route a pinned host to another budget.
    this.#pinned.clear();
    for (const { host, role } of this.#pins) this.#pinned.add(this.forHost(host, role));
  }

  /**
   * An operator has changed the rates of a host or service in this role, or has ended such a change. What was sent still
   * counts (law L1).
   */
  setOrder(name: string, role: Role, limit: OrderedLimit): readonly OrderedChange[] {
    this.#orders.set(name, role, limit);
    // So that snapshots list it, also before its first call.
    const route = limit.untilUs === 0 ? undefined : this.#limits.routeByName(name, role);
    if (route !== undefined) this.#atRoute(route, role);
    return this.#applyOrders([{ name, role }]);
  }

  /** When the next order ends; undefined if there is none. */
  get nextOrderEndUs(): number | undefined {
    return this.#orders.nextEndUs;
  }

  /** Ends the orders whose time is over. */
  endOrders(nowUs: number): readonly OrderedChange[] {
    return this.#applyOrders(this.#orders.removeEnded(nowUs));
  }

  /** Only the rates of role budgets change, so that the budgets above them stay as they are. */
  #applyOrders(keys: readonly OrderedKey[]): readonly OrderedChange[] {
    if (keys.length === 0) return [];
    this.#limits = shareOf(this.#orders.applyTo(this.#configured), this.#shareCount);
    const changes: OrderedChange[] = [];
    for (const key of keys) {
      const isConcerned = mayConcern(this.#configured, key);
      for (const roleBudget of this.#byRole[key.role].values()) {
        if (!isConcerned(roleBudget.name)) continue;
        const policy = this.#limits.routeByName(roleBudget.name, key.role)?.roleBudget;
        if (policy === undefined || hasSameOrders(policy, roleBudget.policy)) continue;
        const { labels: old } = roleBudget.policy;
        roleBudget.reload(policy, this.#limits.aimd);
        changes.push({ roleBudget, old });
      }
    }
    return changes;
  }

  /**
   * What was sent counts in every budget that applies to it now (law L1). A service does not know which of its members
   * has sent what: each member that left it counts all of it.
   */
  #countAgain(senders: readonly FormerBudget[], before: LimitPolicies, nowUs: number): void {
    this.#takenOver = [];
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
        const common = this.#limits.route(host, role, path);
        const isPartition = partition !== "" && common.roleBudget.isPerPartition;
        const route = isPartition ? { ...common, name: `${common.name}${partition}` } : common;
        const roleBudget = this.#atRoute(route, role);
        // At once: the next budget that is created may evict one without units.
        if (!absorbing.has(route.name)) {
          roleBudget.absorb([sender]);
          this.#takenOver.push({ budget: roleBudget, roleBudget, units: unitsOf(roleBudget, [sender], nowUs) });
        }
        absorbing.add(route.name);
        for (const total of chainOf(roleBudget)) {
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
        this.#takenOver.push({ budget: total, roleBudget, units: unitsOf(total, [...sources], nowUs) });
    }
    for (const [cost, sources] of inCosts) {
      cost.absorb([...sources]);
      for (const source of sources)
        if (source instanceof RoleBudget && !source.isDetached)
          cost.log.reserve(pendingCosts(source, 1).get(cost.unit) ?? 0);
    }
  }

  /**
   * A total that a reload removes starts again if it comes back, with what its role budgets have sent. Otherwise these
   * requests would count twice.
   */
  #dropRemovedTotals(totals: readonly Budget[], nowUs: number): void {
    // A total whose role budgets were forgotten is still used.
    const used = new Set(
      [...this, ...this.#history.all(nowUs)].flatMap(
        ({ name, role }) => this.#limits.routeByName(name, role)?.above.map(total => total.name) ?? [],
      ),
    );
    for (const { name } of totals) if (!used.has(name)) this.#parents.delete(name);
  }

  /** What budgets have taken over from others in the last reload, once: the store does not know it. */
  takeTakenOver(): readonly TakenOver[] {
    return this.#takenOver.splice(0);
  }

  /** Creates the budget before its first request. It is never forgotten. */
  pin(host: string, role: Role): void {
    this.#pins.push({ host, role });
    this.#pinned.add(this.forHost(host, role));
  }

  *[Symbol.iterator](): IterableIterator<RoleBudget> {
    for (const role of ROLES) yield* this.#byRole[role].values();
  }

  /** A budget that is created while the store is away: nothing is known of its use by other processes. */
  #countUnknown(budget: Budget): Budget {
    if (this.#lostUs !== undefined) {
      const full = knownUse(budget.windows, undefined, this.#lostUs);
      budget.countUnknown(Math.max(0, ...full), this.#lostUs);
    }
    return budget;
  }

  /**
   * A total that a reload adds starts empty in the store. Until all processes have reported what they had sent before,
   * nothing is sent.
   */
  #holdAdded(budget: Budget): Budget {
    const untilUs = this.reloadedUs + REPORTED_WITHIN_US;
    if (this.isShared && this.#time.monotonicUs() < untilUs) budget.holdUntilUs = untilUs;
    return budget;
  }

  #chain(route: Route): Budget | undefined {
    return route.above.reduceRight<Budget | undefined>((outer, { name, policy }) => {
      const budget = this.#parents.get(name) ?? this.#holdAdded(this.#countUnknown(new Budget(name, policy, outer)));
      // A reload visits only the chains of existing role budgets; the others still have the old policy.
      if (budget.policy !== policy) budget.reload(policy, this.#limits.aimd);
      budget.above = outer;
      this.#parents.set(name, budget);
      return budget;
    }, undefined);
  }
}

/** The most units of these senders that count in a window of the budget, those in flight included. */
function unitsOf({ windows }: Budget, senders: readonly FormerBudget[], nowUs: number): number {
  const log = WindowLog.merged(windows, senders);
  const pending = senders.reduce((sum, sender) => sum + sender.log.pending, 0);
  return pending + Math.max(0, ...windows.map((window, index) => log.usedUnits(index, window, nowUs)));
}

function addTo<Key>(map: Map<Key, Set<FormerBudget>>, key: Key, sender: FormerBudget): void {
  map.set(key, (map.get(key) ?? new Set()).add(sender));
}

function chainOf(roleBudget: RoleBudget): readonly Budget[] {
  const chain: Budget[] = [];
  for (let at = roleBudget.above; at; at = at.above) chain.push(at);
  return chain;
}

/** Moves in-flight requests and pending units of a role budget to the budgets that are above it now. */
function transfer(roleBudget: RoleBudget, from: readonly Budget[], to: readonly Budget[]): void {
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

function pendingCosts({ costLogs }: RoleBudget, sign: 1 | -1): Costs {
  return new Map(costLogs.map(({ unit, log }) => [unit, sign * log.pending]));
}

/** Counts requests that are granted and not written as written now. */
function writePending(roleBudget: RoleBudget, nowUs: number): void {
  for (const { log, windows } of [roleBudget, ...roleBudget.costLogs])
    if (log.pending > 0) log.write(windows, log.pending, nowUs);
}
