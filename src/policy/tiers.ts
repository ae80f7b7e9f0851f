import type { Identities, OwningService } from "./identity.ts";
import { type LimitScope, type ScopePlace, scopePlaces, valueAt } from "./precedence.ts";

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
  of(scope: LimitScope, request: OwningService & { readonly host: string }, path = ""): readonly string[] {
    if (this.#identities === undefined) return [];
    const names = this.#namesIn(scope);
    return names.length === 0 ? [] : names.filter(name => this.#identities?.sends(request.host, path, request, name));
  }

  /** Each set of tiers that can apply to requests to these hosts, the empty one first. */
  possibleSets(scope: LimitScope, hosts: readonly string[]): readonly (readonly string[])[] {
    const names = this.#namesIn(scope);
    const sets = new Map<string, readonly string[]>([["", []]]);
    if (names.length > 0) {
      for (const host of hosts) {
        const sent = this.#identities?.sentTo(host, scope.service) ?? new Set();
        const applied = names.filter(name => sent.has(name));
        sets.set(applied.join(" "), applied);
      }
    }
    return [...sets.values()];
  }

  /** The tiers of a scope that are set in this entry. */
  ofEntry(place: ScopePlace, { tiers = [] }: LimitScope): readonly string[] {
    const names = this.#namesAt(place);
    return tiers.filter(tier => names.includes(tier));
  }

  /** True when the identification, and with it the tier, depends on the path. */
  hasPaths(host: string): boolean {
    return this.#identities?.isSplit(host) ?? false;
  }

  /** True when the tier depends on the path within one member. */
  dependOnPath(request: OwningService & { readonly host: string }): boolean {
    return this.hasPaths(request.host) || (this.#identities?.isSplitService(request) ?? false);
  }

  #namesIn(scope: LimitScope): readonly string[] {
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
