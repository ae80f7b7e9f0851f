import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { BudgetPolicy, RoleBudgetPolicy } from "./budget-policy.ts";
import type { SentKeys } from "./identity.ts";
import type { Member } from "./member.ts";
import type { LimitScope } from "./precedence.ts";
import type { Role } from "./roles.ts";
import type { Routing } from "./routing.ts";

/** A budget that several roles or hosts share. */
export interface TotalBudget {
  readonly name: string;
  readonly policy: BudgetPolicy;
  /**
   * Every process knows the total before it sends the first request that the total counts. So nothing was sent that a
   * shared store has not counted. @default false
   */
  readonly isKnownFirst?: true;
}

/** The budgets that a request is charged to: the budget of its role, then the totals above it, nearest first. */
export interface Route {
  /** The host, or the service whose members share one budget for each role. */
  readonly name: string;
  readonly roleBudget: RoleBudgetPolicy;
  readonly above: readonly TotalBudget[];
}

/** A host or path that requests go to. */
export interface RequestPlace {
  readonly host: string;
  /** Undefined for requests that belong to the whole host. Paths of their own service are other places. */
  readonly path: string | undefined;
  /** The service with `per_host` that the requests name themselves, if any. */
  readonly service?: string | undefined;
  /** What the requests carry. @default what requests over https carry */
  readonly sentKeys?: SentKeys | undefined;
  /** True for an invented host below a suffix. It stands for all hosts that the policy does not name. */
  readonly isExample?: true;
}

/** The limits of every host, as the gate reads them. */
export interface LimitPolicies {
  readonly aimd: AimdPolicy;
  /** Maximum number of requests in flight over all hosts; Infinity for no maximum. */
  readonly maxInFlight: number;
  /**
   * Throws a RangeError if `host` is not a valid host name.
   * @param sentKeys what the request carries. @default what requests over https carry
   */
  route(host: string, role: Role, path?: string, sentKeys?: SentKeys): Route;
  /** The route of a request that names a service itself; undefined when the policy has no such service. */
  serviceRoute(service: string, host: string, role: Role, path?: string, sentKeys?: SentKeys): Route | undefined;
  /** True when paths of this host have budgets of their own. */
  hasPaths(host: string): boolean;
  /**
   * The route of the requests that are charged to the role budget with this name. If the policy has no such requests any
   * more: for a host, the route that it has now, which has another name; for a service, undefined.
   */
  routeByName(name: string, role: Role): Route | undefined;
  /** The hosts and paths whose requests the role budget with that name counts. Hosts of suffixes are not known. */
  placesOf(name: string, role: Role): readonly RequestPlace[];
  /** The hosts and paths that the policy names, with an example for each suffix. */
  namedPlaces(): readonly RequestPlace[];
  /** False if only the defaults apply to a canonical host. Cheaper than `route`. */
  isNamed(host: string): boolean;
}

/** A listed host, a service, or the defaults, with one set of the keys that its requests carry (tiers). */
export interface ScopeEntry {
  readonly scope: LimitScope;
  /** The host, or `service <name>`, with its tier; undefined for the defaults. */
  readonly name: string | undefined;
  /** The members of a service; empty for a service with `per_host`, a host, and the defaults. */
  readonly members: readonly Member[];
}

/** The limits of a policy document, with its entries. */
export interface ConfiguredLimits extends LimitPolicies {
  /** The defaults, then the listed hosts, then the services, each without a key and with each set of its keys. */
  readonly entries: readonly ScopeEntry[];
  /** Which hosts, suffixes and paths belong to which entry. */
  readonly routing: Routing;
  /** The entries that decide for a host and path. */
  scopeOf(host: string, path?: string, sentKeys?: SentKeys): LimitScope;
  /** The routes that requests of a host, or of the members of a service, have: one for each set of keys that they carry. */
  routesOf(unit: string, role: Role): readonly Route[];
  /** The route of an entry. Needs no host, so it also works for services and for the defaults. */
  routeOf(entry: ScopeEntry, role: Role): Route;
}
