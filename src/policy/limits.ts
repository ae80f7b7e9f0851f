import type { AimdPolicy } from "../core/limits/aimd.ts";
import { parseRates } from "../core/limits/rate.ts";
import {
  type BudgetPolicy,
  budgetPolicy,
  type RoleBudgetPolicy,
  roleBudgetPolicy,
  strictestPolicy,
} from "./budget-policy.ts";
import { budgetUnitOf, isOfUnnamedHost } from "./budget-unit.ts";
import { DEFAULT_AIMD, DEFAULT_LIMITS } from "./defaults.ts";
import type { Identities, SentKeys } from "./identity.ts";
import { KnownRoutes } from "./known-routes.ts";
import type { ConfiguredLimits, RequestPlace, Route, ScopeEntry, TotalBudget } from "./limit-policies.ts";
import type { Member } from "./member.ts";
import { commonName, nameWithoutPartition } from "./partition-name.ts";
import {
  adaptsPaths,
  effectiveMap,
  effectiveValue,
  type LimitScope,
  ROLE_COST_FIELDS,
  ROLE_LIMIT_FIELDS,
  type RoleLimitField,
  roleLimitPaths,
  TOTAL_FIELDS,
  totalPaths,
  totalPlaces,
} from "./precedence.ts";
import {
  type ParsedAimd,
  type ParsedRatelimits,
  type ParsedRoleLimits,
  parseRatelimits,
  type RatelimitsOptions,
} from "./ratelimit-schema.ts";
import { type PlacedRequest, RequestPlaces } from "./request-places.ts";
import { ROLES, type Role } from "./roles.ts";
import { type RoutedRequest, Routing } from "./routing.ts";
import { serviceMembers } from "./service-members.ts";
import { serviceName, tierName } from "./service-name.ts";
import { Tiers } from "./tiers.ts";

export const NO_AIMD: AimdPolicy = aimdPolicy(DEFAULT_AIMD);

const BUILT_IN = Object.fromEntries(
  ROLES.map(role => [role, { ...DEFAULT_LIMITS[role], rates: parseRates(DEFAULT_LIMITS[role].rates) }]),
) as Record<Role, ParsedRoleLimits>;

/** The budgets of one scope, by role. */
interface ScopeBudgets {
  /** Undefined for the defaults, whose budgets have the names of their hosts. */
  readonly name: string | undefined;
  readonly rolePolicies: Readonly<Record<Role, RoleBudgetPolicy>>;
  readonly above: readonly TotalBudget[];
}

/**
 * Limits from options in the shape of `ratelimits.yaml`.
 * Members of a service that are not listed under `hosts` share the service's budgets. A member that is listed has budgets
 * of its own, which inherit from the service, and shares the service's `total`.
 * @param identities decide which tiers (`with`) apply; without them no request carries a key
 */
export function limitPoliciesFrom(
  options: RatelimitsOptions,
  where: string,
  identities?: Identities | undefined,
): ConfiguredLimits {
  return new PolicyLimits(parseRatelimits(options, where, identities !== undefined), where, identities);
}

class PolicyLimits implements ConfiguredLimits {
  readonly aimd: AimdPolicy;
  readonly maxInFlight: number;
  readonly routing: Routing;
  readonly #document: ParsedRatelimits;
  readonly #tiers: Tiers;
  readonly #budgets = new Map<string, ScopeBudgets>();
  readonly #routes = new KnownRoutes(routed => ({
    hasTiers: this.#tiers.namesIn(routed).length > 0,
    dependsOnPath: this.#tiers.dependOnPath(routed),
  }));
  /** One policy for each total, so that all scopes below it share the same object. */
  readonly #totals = new Map<string, BudgetPolicy>();
  /** The budgets of services with `per_host`, by the service's own budget and that of the host. */
  readonly #combined = new WeakMap<RoleBudgetPolicy, WeakMap<RoleBudgetPolicy, RoleBudgetPolicy>>();
  readonly #members: ReadonlyMap<string, readonly Member[]>;
  readonly #places: RequestPlaces;
  #entries: readonly ScopeEntry[] | undefined;

  constructor(document: ParsedRatelimits, where: string, identities: Identities | undefined) {
    this.#document = document;
    this.aimd = aimdPolicy(document.aimd);
    this.maxInFlight = document.global.max_inflight ?? Number.POSITIVE_INFINITY;
    this.#members = serviceMembers(document, where);
    this.routing = new Routing(Object.keys(document.hosts), this.#members);
    this.#tiers = new Tiers(document, identities);
    this.#places = new RequestPlaces(this.routing, this.#members, identities);
  }

  get entries(): readonly ScopeEntry[] {
    this.#entries ??= this.#listEntries();
    return this.#entries;
  }

  scopeOf(host: string, path?: string, sentKeys?: SentKeys): LimitScope {
    return this.#scopeOf(this.routing.find(host, path), path, sentKeys);
  }

  route(host: string, role: Role, path?: string, sentKeys?: SentKeys): Route {
    const routed = this.routing.find(host, path);
    const known = this.#routes.of(routed, sentKeys);
    const found = known?.get(role);
    if (found !== undefined) return found;
    const route = this.#hostRoute(routed, this.#scopeOf(routed, path, sentKeys), role);
    known?.set(role, route);
    return route;
  }

  serviceRoute(service: string, host: string, role: Role, path?: string, sentKeys?: SentKeys): Route | undefined {
    const routed = this.routing.find(host, path);
    return this.#namedServiceRoute(service, routed, this.#scopeOf(routed, path, sentKeys), role);
  }

  hasPaths(host: string): boolean {
    return this.routing.hasPaths(host) || this.#tiers.hasPaths(host);
  }

  routeByName(name: string, role: Role): Route | undefined {
    if (isOfUnnamedHost(name, this)) return routeIn(this.#budgetsOf(DEFAULTS), role, name);
    const common = nameWithoutPartition(name);
    if (common !== undefined) {
      const route = this.routeByName(common, role);
      return route?.roleBudget.isPerPartition ? { ...route, name } : undefined;
    }
    const { service, host, path, tiers } = budgetUnitOf(name);
    if (host !== undefined) {
      const routed = this.routing.find(host, path);
      const scope = this.#scopeOf(routed, path);
      const named = this.#tiers.has(tiers, scope) ? { ...scope, tiers } : scope;
      return service === undefined
        ? this.#hostRoute(routed, named, role)
        : this.#namedServiceRoute(service, routed, named, role);
    }
    const scope = { service, tiers };
    const isUsed = this.#tiers.has(tiers, scope) && this.#members.get(service)?.length;
    return isUsed ? routeIn(this.#budgetsOf(scope), role, name) : undefined;
  }

  placesOf(nameOrPartition: string, role: Role): readonly RequestPlace[] {
    const name = commonName(nameOrPartition);
    const { service, host, path, tiers } = budgetUnitOf(name);
    const placed = host === undefined ? this.#placesOfService(service) : this.#placesOfHost(host, path, service);
    const isCounted = (place: RequestPlace) => this.#routeAt(place, role)?.name === name;
    const found = placed.filter(isCounted);
    if (found.length > 0) return found;
    // Requests with other keys than those that are sent now: callers set fields themselves, and reloads stop sending keys.
    return placed.map(place => ({ ...place, sentKeys: new Set(tiers) })).filter(isCounted);
  }

  #placesOfHost(host: string, path?: string, service?: string): readonly RequestPlace[] {
    return this.#places.ofHost(host, path).flatMap(place => this.#withKeySets({ ...place, host, service }));
  }

  #placesOfService(service: string): readonly RequestPlace[] {
    return this.#places
      .ofService(service)
      .filter(({ routed }) => routed.host !== "")
      .flatMap(place => this.#withKeySets({ ...place, host: place.routed.host }));
  }

  /** The place once for each set of keys that its requests may carry. */
  #withKeySets({ host, service, routed, path }: PlacedRequest & Omit<RequestPlace, "path">): readonly RequestPlace[] {
    const place = { host, path: path || undefined, service };
    return this.#tiers
      .keySets(routed, routed, path)
      .map(sentKeys => (sentKeys === undefined ? place : { ...place, sentKeys }));
  }

  namedPlaces(): readonly RequestPlace[] {
    const ofHosts = Object.keys(this.#document.hosts).flatMap(host => this.#placesOfHost(host));
    const ofServices = [...this.#members].flatMap(([service, members]) => [
      ...this.#placesOfService(service),
      ...members.filter(({ isSuffix }) => isSuffix).flatMap(member => this.#examplesOf(member)),
    ]);
    return [...ofHosts, ...ofServices];
  }

  #examplesOf({ host: suffix, writtenPath: path }: Member): readonly RequestPlace[] {
    const host = `${EXAMPLE_LABEL}.${suffix}`;
    const routed = this.routing.find(host, path);
    return this.#withKeySets({ host, routed, path }).map(place => ({ ...place, isExample: true }));
  }

  isNamed(host: string): boolean {
    return this.routing.mayName(host);
  }

  #routeAt({ service, host, path, sentKeys }: RequestPlace, role: Role): Route | undefined {
    return service === undefined
      ? this.route(host, role, path, sentKeys)
      : this.serviceRoute(service, host, role, path, sentKeys);
  }

  #hostRoute(routed: RoutedRequest, scope: LimitScope, role: Role): Route {
    return routeIn(this.#budgetsOf(this.#roleScope(scope, role)), role, routed.host);
  }

  /**
   * With `per_host`, the limits of the service hold in addition to those of the host: the rates of the host's role are
   * added to the service's own budget, and the totals of the host are above it. Without `per_host`, the service replaces
   * the defaults; a host that the policy lists keeps its own limits.
   */
  #namedServiceRoute(service: string, routed: RoutedRequest, scope: LimitScope, role: Role): Route | undefined {
    const entry = this.#serviceOptions(service);
    if (entry === undefined) return undefined;
    const isUnlisted = routed.service === undefined && routed.listed.length === 0;
    const ofHost = this.#budgetsOf(this.#roleScope(scope, role));
    const own = this.#budgetsOf({ service });
    if (!entry.per_host) return routeIn(isUnlisted ? own : ofHost, role, routed.host);
    const name = tierName(`${serviceName(service)}:${routed.host}${routed.memberPath}`, scope.tiers ?? []);
    return {
      name,
      roleBudget: this.#combine(own.rolePolicies[role], ofHost.rolePolicies[role]),
      above: [...own.above.map(({ policy }) => ({ name, policy })), ...ofHost.above],
    };
  }

  routesOf(unit: string, role: Role): readonly Route[] {
    const { host, service } = budgetUnitOf(unit);
    const places = host === undefined ? this.#places.ofService(service) : this.#places.ofHost(host);
    const routes = places.flatMap(({ routed, path }) =>
      this.#tiers
        .keySets(routed, routed, path)
        .map(sentKeys => this.#hostRoute(routed, this.#scopeOf(routed, path, sentKeys), role)),
    );
    return [...new Map(routes.map(route => [route.name, route])).values()];
  }

  routeOf({ scope, name = "" }: ScopeEntry, role: Role): Route {
    return routeIn(this.#budgetsOf(this.#roleScope(scope, role)), role, name);
  }

  #combine(own: RoleBudgetPolicy, ofHost: RoleBudgetPolicy): RoleBudgetPolicy {
    const known = this.#combined.get(own) ?? new WeakMap<RoleBudgetPolicy, RoleBudgetPolicy>();
    const combined = known.get(ofHost) ?? strictestPolicy(own, ofHost);
    this.#combined.set(own, known.set(ofHost, combined));
    return combined;
  }

  #serviceOptions(service: string) {
    return Object.hasOwn(this.#document.services, service) ? this.#document.services[service] : undefined;
  }

  #scopeOf(routed: RoutedRequest, path: string | undefined, sentKeys?: SentKeys): LimitScope {
    const { service, listed } = routed;
    if (service === undefined && listed.length === 0) return DEFAULTS;
    return { service, listed, tiers: this.#tiers.of({ service, listed }, routed, path, sentKeys) };
  }

  /**
   * The scope without the listed hosts that have no budget of their own for this role, because their entries set nothing
   * for it and have neither `total` nor `aimd`. Such a host shares the role budget of the entry that it inherits from. With
   * a budget of its own, an entry that changes one role would double the rates of the other roles.
   */
  #roleScope(scope: LimitScope, role: Role): LimitScope {
    const { service, listed = [] } = scope;
    const hasBudget = (host: string, index: number) => {
      if (index === 0 && service === undefined) return true;
      const entry = this.#document.hosts[host];
      if (entry?.aimd !== undefined) return true;
      const tiers = Object.values(entry?.with ?? {});
      return [entry, ...tiers].some(limits => hasKeys(limits?.[role]) || hasKeys(limits?.total));
    };
    const kept = listed.filter(hasBudget);
    if (kept.length === listed.length) return scope;
    const names = this.#tiers.namesIn({ service, listed: kept });
    return { service, listed: kept, tiers: scope.tiers?.filter(tier => names.includes(tier)) };
  }

  #budgetsOf(scope: LimitScope): ScopeBudgets {
    const { service = "", listed = [], tiers = [] } = scope;
    const key = `${service} ${listed.join(" ")} ${tiers.join(" ")}`;
    const known = this.#budgets.get(key);
    if (known !== undefined) return known;
    const budgets = this.#makeBudgets(scope);
    this.#budgets.set(key, budgets);
    return budgets;
  }

  #makeBudgets(scope: LimitScope): ScopeBudgets {
    const document = this.#document;
    const rolePolicies = {} as Record<Role, RoleBudgetPolicy>;
    const hasTiers = this.#tiers.namesIn(scope).length > 0;
    for (const role of ROLES) {
      const value = (field: RoleLimitField) =>
        effectiveValue<unknown>(document, roleLimitPaths(field, role, scope), BUILT_IN[role][field]);
      const limits = Object.fromEntries([
        ...ROLE_LIMIT_FIELDS.map(field => [field, value(field)]),
        ...ROLE_COST_FIELDS.map(field => [field, effectiveMap(document, roleLimitPaths(field, role, scope))]),
      ]);
      rolePolicies[role] = roleBudgetPolicy(limits, effectiveValue(document, adaptsPaths(scope), false), hasTiers);
    }
    const above = totalPlaces(scope).flatMap(place => {
      const values = TOTAL_FIELDS.map(field => [
        field,
        effectiveValue<unknown>(document, totalPaths(field, place, scope), undefined),
      ]);
      const costs = effectiveMap(document, totalPaths("costs", place, scope));
      if (values.every(([, value]) => value === undefined) && !hasKeys(costs)) return [];
      const name = tierName(place.name, this.#tiers.ofEntry(place, scope));
      const policy = this.#totals.get(name) ?? budgetPolicy({ ...Object.fromEntries(values), costs });
      this.#totals.set(name, policy);
      return [{ name, policy }];
    });
    return { name: entryName(scope), rolePolicies, above };
  }

  #listEntries(): readonly ScopeEntry[] {
    const hosts = Object.keys(this.#document.hosts).flatMap(host => {
      const { service, listed } = this.routing.find(host);
      return this.#tiers
        .possibleSets({ service, listed }, this.#places.ofHost(host))
        .map(tiers => ({ scope: { service, listed, tiers }, members: [] }));
    });
    const services = [...this.#members].flatMap(([service, ofService]) => {
      return this.#tiers
        .possibleSets({ service }, this.#places.ofService(service))
        .map(tiers => ({ scope: { service, tiers }, members: ofService }));
    });
    return [{ scope: DEFAULTS, members: [] }, ...hosts, ...services].map(entry => ({
      ...entry,
      name: entryName(entry.scope),
    }));
  }
}

const DEFAULTS: LimitScope = {};
/** Begins the name of the host that stands for all hosts below a suffix. */
const EXAMPLE_LABEL = "any-host";

function entryName({ service, listed = [], tiers = [] }: LimitScope): string | undefined {
  const name = listed.at(-1) ?? (service === undefined ? undefined : serviceName(service));
  return name === undefined ? undefined : tierName(name, tiers);
}

function routeIn({ name, rolePolicies, above }: ScopeBudgets, role: Role, host: string): Route {
  return { name: name ?? host, roleBudget: rolePolicies[role], above };
}

function hasKeys(limits: object | undefined): boolean {
  return limits !== undefined && Object.keys(limits).length > 0;
}

function aimdPolicy(options: ParsedAimd): AimdPolicy {
  return Object.freeze({
    enabled: options.enabled,
    windowUs: options.window_s * 1e6,
    highRatio: options.high_429_ratio,
    increase: options.increase_step_pct / 100,
    decrease: options.decrease_step_pct / 100,
    minMultiplier: options.min_multiplier,
    maxMultiplier: options.max_multiplier,
  });
}
