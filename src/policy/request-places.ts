import type { Identities } from "./identity.ts";
import type { Member } from "./member.ts";
import type { RoutedRequest, Routing } from "./routing.ts";

/** A request as the policy routes it, and its path. */
export interface PlacedRequest {
  /** Its host is empty for a member that is a suffix, because the hosts below it are not known. */
  readonly routed: RoutedRequest;
  readonly path: string;
}

/**
 * Examples of the requests of a host or service: one for each host that the policy knows, and one for each path at which
 * it gets other keys.
 */
export class RequestPlaces {
  readonly #routing: Routing;
  readonly #members: ReadonlyMap<string, readonly Member[]>;
  readonly #identities: Identities | undefined;
  readonly #ofServices = new Map<string, readonly PlacedRequest[]>();
  #identityHosts: ReadonlyMap<string, readonly string[]> | undefined;

  constructor(routing: Routing, members: ReadonlyMap<string, readonly Member[]>, identities: Identities | undefined) {
    this.#routing = routing;
    this.#members = members;
    this.#identities = identities;
  }

  /** Throws a RangeError when the text is not a host. */
  ofHost(host: string, path?: string): readonly PlacedRequest[] {
    return this.#at(this.#routing.find(host, path));
  }

  ofService(service: string): readonly PlacedRequest[] {
    const known = this.#ofServices.get(service);
    if (known !== undefined) return known;
    const places = (this.#members.get(service) ?? [])
      .flatMap(member => this.#ofMember(member, service))
      .filter(routed => routed.service === service)
      .flatMap(routed => this.#at(routed));
    this.#ofServices.set(service, places);
    return places;
  }

  #ofMember({ host, isSuffix, path, writtenPath }: Member, service: string): readonly RoutedRequest[] {
    if (!isSuffix) return [this.#routing.find(host, path)];
    this.#identityHosts ??= bySuffix(this.#identities?.hosts ?? []);
    const named = this.#identityHosts.get(host) ?? [];
    return [
      { host: "", names: [], listed: [], service, memberPath: path, writtenPath },
      ...named.map(each => this.#routing.find(each, path)),
    ];
  }

  #at(routed: RoutedRequest): readonly PlacedRequest[] {
    const { host, service, memberPath, writtenPath } = routed;
    const others = (this.#identities?.otherPaths(routed) ?? []).filter(path => {
      if (host === "") return true;
      const found = this.#routing.find(host, path);
      return found.service === service && found.memberPath === memberPath;
    });
    return [writtenPath, ...others].map(path => ({ routed, path }));
  }
}

/** The hosts below each suffix. */
function bySuffix(hosts: readonly string[]): ReadonlyMap<string, readonly string[]> {
  const below = new Map<string, string[]>();
  for (const host of hosts) {
    for (let dot = host.indexOf("."); dot >= 0; dot = host.indexOf(".", dot + 1)) {
      const suffix = host.slice(dot + 1);
      const known = below.get(suffix);
      if (known === undefined) below.set(suffix, [host]);
      else known.push(host);
    }
  }
  return below;
}
