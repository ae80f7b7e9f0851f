import { type Identities, NO_KEYS, type OwningService, type SentKeys } from "./identity.ts";
import { type LimitScope, type ScopePlace, scopePlaces, valueAt } from "./precedence.ts";
import type { PlacedRequest } from "./request-places.ts";

type TieredRequest = OwningService & { readonly host: string };

/**
 * Tiers: limits that depend on what a request carries (`with: { NCBI_API_KEY: … }`). A tier applies to a request that
 * carries that key or address. The stage that adds it says so; here it is only estimated where no request is known.
 */
export class Tiers {
  readonly #document: unknown;
  readonly #identities: Identities | undefined;
  /** The names under `with`, by the path of their entry. */
  readonly #names = new Map<string, ReadonlySet<string>>();
  /** The same for all entries of a scope. */
  readonly #inScopes = new Map<string, readonly string[]>();

  constructor(document: { readonly services: object; readonly hosts: object }, identities: Identities | undefined) {
    this.#document = document;
    this.#identities = identities;
  }

  /**
   * The tiers of an entry that apply to requests to the host and path, weakest first.
   * @param sentKeys what the request carries. @default what requests over https carry
   */
  of(scope: LimitScope, request: TieredRequest, path = "", sentKeys?: SentKeys): readonly string[] {
    const names = this.namesIn(scope);
    if (names.length === 0) return names;
    const sent = sentKeys ?? this.#identities?.keysAt(request.host, path, request) ?? NO_KEYS;
    return names.filter(name => sent.has(name));
  }

  /**
   * The keys that requests to the host and path may carry: those of https (undefined), those of http, and none, because a
   * request may go to a proxy or have fields of its caller.
   */
  keySets(scope: LimitScope, request: TieredRequest, path: string): readonly (SentKeys | undefined)[] {
    if (this.#identities === undefined || this.namesIn(scope).length === 0) return [undefined];
    const plain = this.#identities.plainKeysAt(request.host, path, request);
    return plain.size === 0 ? [undefined, NO_KEYS] : [undefined, plain, NO_KEYS];
  }

  /** Each set of tiers that applies to one of these requests, the empty one first. */
  possibleSets(scope: LimitScope, places: readonly PlacedRequest[]): readonly (readonly string[])[] {
    const sets = new Map<string, readonly string[]>([["", []]]);
    if (this.namesIn(scope).length > 0) {
      for (const { routed, path } of places) {
        for (const sentKeys of this.keySets(scope, routed, path)) {
          const applied = this.of(scope, routed, path, sentKeys);
          sets.set(applied.join(" "), applied);
        }
      }
    }
    return [...sets.values()];
  }

  /**
   * Whether the scope has these tiers, in their order. A request may carry any of its keys: it was identified before a
   * reload that stops sending a key, or its caller has set a field itself.
   */
  has(tiers: readonly string[], scope: LimitScope): boolean {
    const wanted = new Set(tiers);
    const found = this.namesIn(scope).filter(name => wanted.has(name));
    return found.length === tiers.length && found.every((name, index) => name === tiers[index]);
  }

  /** The tiers of a scope that are set in this entry. */
  ofEntry(place: ScopePlace, { tiers = [] }: LimitScope): readonly string[] {
    const names = this.#namesAt(place);
    return tiers.filter(tier => names.has(tier));
  }

  /** True when the identification over https, and with it the tier, depends on the path. */
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
    const places = scopePlaces(scope);
    const key = places.map(({ name }) => name).join("  ");
    const known = this.#inScopes.get(key);
    if (known !== undefined) return known;
    const names = [...new Set(places.flatMap(place => [...this.#namesAt(place)]))];
    this.#inScopes.set(key, names);
    return names;
  }

  #namesAt({ path }: ScopePlace): ReadonlySet<string> {
    const key = path.join(" ");
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const names = new Set(Object.keys(valueAt(this.#document, [...path, "with"]) ?? {}));
    this.#names.set(key, names);
    return names;
  }
}
