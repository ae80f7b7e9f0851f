import { budgetUnitOf, isOfUnnamedHost } from "../policy/budget-unit.ts";
import { NO_KEYS } from "../policy/identity.ts";
import type { LimitPolicies, RequestPlace } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { ROLES, type Role } from "../policy/roles.ts";

/** A host that no policy names. */
const UNNAMED = "unnamed.invalid";

/** The places of earlier limits by the role budget that counted them. */
type PlacesByBudget = ReadonlyMap<string, readonly RequestPlace[]>;

/**
 * The places that a role budget of earlier limits has counted: those that the earlier limits name, and those that only
 * the present ones name, such as a path that now has limits of its own.
 */
export class MovedPlaces {
  readonly #now: LimitPolicies;
  readonly #byLimits = new Map<LimitPolicies, PlacesByBudget>();

  constructor(now: LimitPolicies) {
    this.#now = now;
  }

  /**
   * Whether this reload changes nothing but the numbers of the limits of a budget: before and now only the defaults apply
   * to its host. Nearly all forgotten budgets of a crawler are of this kind.
   */
  isUnmoved(name: string, role: Role, before: LimitPolicies): boolean {
    return isOfUnnamedHost(name, before) && !this.#now.isNamed(name) && this.#hasSameDefaults(role, before);
  }

  /** Whether the defaults are divided by partition before and now, or neither. */
  #hasSameDefaults(role: Role, before: LimitPolicies): boolean {
    const [ours, theirs] = [this.#now, before].map(limits => limits.routeByName(UNNAMED, role)?.roleBudget);
    return ours?.isPerPartition === theirs?.isPerPartition;
  }

  of(name: string, role: Role, before: LimitPolicies): readonly RequestPlace[] {
    const known = this.#byLimits.get(before) ?? this.#named(before);
    this.#byLimits.set(before, known);
    const places = isOfUnnamedHost(name, before) ? [{ host: name, path: undefined }] : before.placesOf(name, role);
    const named = known.get(keyOf(commonName(name), role)) ?? [];
    const { service, host } = budgetUnitOf(name);
    if (service === undefined || host === undefined) return [...places, ...named];
    // Requests that name a service with `per_host` themselves.
    const ofHost = (known.get(host) ?? [])
      .map(place => ({ ...place, service }))
      .filter(
        ({ path, sentKeys }) => before.serviceRoute(service, host, role, path, sentKeys)?.name === commonName(name),
      );
    return [...places, ...ofHost];
  }

  /** The named places by role budget, and by host. */
  #named(before: LimitPolicies): PlacesByBudget {
    const places = [...before.namedPlaces(), ...this.#now.namedPlaces()];
    const byBudget = places.flatMap(place =>
      ROLES.filter(role => !isExampleOfHosts(place, role, this.#now)).flatMap(role => {
        const nameOf = ({ host, path, sentKeys }: RequestPlace) => before.route(host, role, path, sentKeys).name;
        const name = nameOf(place);
        // The present limits may not depend on keys where the earlier ones did.
        const unkeyed = { ...place, sentKeys: NO_KEYS };
        const unkeyedName = nameOf(unkeyed);
        const found = { key: keyOf(name, role), place };
        return unkeyedName === name ? [found] : [found, { key: keyOf(unkeyedName, role), place: unkeyed }];
      }),
    );
    const byHost = places.map(place => ({ key: place.host, place }));
    const grouped = Map.groupBy([...byBudget, ...byHost], ({ key }) => key);
    return new Map(Array.from(grouped, ([key, entries]) => [key, entries.map(({ place }) => place)]));
  }
}

/** Whether the place stands for hosts that have budgets of their own by these limits. */
export function isExampleOfHosts({ isExample, host, path }: RequestPlace, role: Role, limits: LimitPolicies): boolean {
  return isExample === true && limits.route(host, role, path).name === host;
}

function keyOf(name: string, role: Role): string {
  return `${role} ${name}`;
}
