import type { Identities, OwningService } from "./identity.ts";
import { type LimitScope, type ScopePlace, scopePlaces, valueAt } from "./precedence.ts";
import type { PlacedRequest } from "./request-places.ts";

type TieredRequest = OwningService & { readonly host: string };

/**
 * Tiers: limits that depend on what a request carries (`with: { NCBI_API_KEY: … }`). A tier applies to a request when
 * its identification sends that key or address to the host and path of the request.
 */
export class Tiers {
  readonly #document: unknown;
  readonly #identities: Identities | undefined;
  /** The names under `with`, by the path of their entry. */
  readonly #names = new Map<string, readonly string[]>();

  constructor(document: { readonly services: object; readonly hosts: object }, identities: Identities | undefined) {
    this.#document = document;
    this.#identities = identities;
  }

  /** The tiers of an entry that apply to requests to the host and path, weakest first. */
  of(scope: LimitScope, request: TieredRequest, path = ""): readonly string[] {
    return this.namesIn(scope).filter(name => this.#identities?.sends(request.host, path, request, name));
  }

  /** Each set of tiers that applies to one of these requests, the empty one first. */
  possibleSets(scope: LimitScope, places: readonly PlacedRequest[]): readonly (readonly string[])[] {
    const sets = new Map<string, readonly string[]>([["", []]]);
    if (this.namesIn(scope).length > 0) {
      for (const { routed, path } of places) {
        const applied = this.of(scope, routed, path);
        sets.set(applied.join(" "), applied);
      }
    }
    return [...sets.values()];
  }

  /**
   * Whether exactly these tiers can apply to requests of this host or member. If that depends on the path, any of the
   * keys that the host gets may be missing.
   */
  mayApply(tiers: readonly string[], scope: LimitScope, request: TieredRequest): boolean {
    const names = this.namesIn(scope);
    if (names.length === 0) return tiers.length === 0;
    if (!this.dependOnPath(request)) return isSameList(tiers, this.of(scope, request));
    const sent = this.#identities?.sentTo(request.host, request.service);
    return isSameList(
      tiers,
      names.filter(name => tiers.includes(name) && sent?.has(name)),
    );
  }

  /** The tiers of a scope that are set in this entry. */
  ofEntry(place: ScopePlace, { tiers = [] }: LimitScope): readonly string[] {
    const names = this.#namesAt(place);
    return tiers.filter(tier => names.includes(tier));
  }

  /** True when the identification, and with it the tier, depends on the path. */
  hasPaths(host: string): boolean {
    return this.#identities?.dependsOnPath(host) ?? false;
  }

  /** True when the tier depends on the path within one member. */
  dependOnPath(request: TieredRequest): boolean {
    return this.hasPaths(request.host) || (this.#identities?.dependsOnSpelling(request) ?? false);
  }

  /** The tiers that entries of the scope have, weakest first; none without identification. */
  namesIn(scope: LimitScope): readonly string[] {
    if (this.#identities === undefined) return [];
    return [...new Set(scopePlaces(scope).flatMap(place => this.#namesAt(place)))];
  }

  #namesAt({ path }: ScopePlace): readonly string[] {
    const key = path.join(" ");
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const names = Object.keys(valueAt(this.#document, [...path, "with"]) ?? {});
    this.#names.set(key, names);
    return names;
  }
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}
