import type { SentKeys } from "./identity.ts";
import type { Route } from "./limit-policies.ts";
import type { Role } from "./roles.ts";
import type { RoutedRequest } from "./routing.ts";

/** How the routes of requests with the same entries differ. */
interface RouteDifferences {
  /** By the keys that the requests carry. */
  readonly hasTiers: boolean;
  /** If the keys are not known: also by the path. */
  readonly dependsOnPath: boolean;
}

interface RoutesOfEntries {
  /** Of requests whose keys are not known, or make no difference; undefined if they depend on the path. */
  readonly common: Map<Role, Route> | undefined;
  /** Undefined if the keys make no difference. */
  readonly bySentKeys: WeakMap<SentKeys, Map<Role, Route>> | undefined;
}

/** The routes of earlier requests, because most requests have the same route as one of them. */
export class KnownRoutes {
  readonly #byEntries = new WeakMap<RoutedRequest, RoutesOfEntries>();
  readonly #differencesOf: (routed: RoutedRequest) => RouteDifferences;

  constructor(differencesOf: (routed: RoutedRequest) => RouteDifferences) {
    this.#differencesOf = differencesOf;
  }

  /** The known routes of a request by its role, which the caller adds to; undefined if the route must be computed. */
  of(routed: RoutedRequest, sentKeys: SentKeys | undefined): Map<Role, Route> | undefined {
    const { common, bySentKeys } = this.#byEntries.get(routed) ?? this.#add(routed);
    if (bySentKeys === undefined || sentKeys === undefined) return common;
    const known = bySentKeys.get(sentKeys);
    if (known !== undefined) return known;
    const added = new Map<Role, Route>();
    bySentKeys.set(sentKeys, added);
    return added;
  }

  #add(routed: RoutedRequest): RoutesOfEntries {
    const { hasTiers, dependsOnPath } = this.#differencesOf(routed);
    const added: RoutesOfEntries = {
      common: hasTiers && dependsOnPath ? undefined : new Map(),
      bySentKeys: hasTiers ? new WeakMap() : undefined,
    };
    this.#byEntries.set(routed, added);
    return added;
  }
}
