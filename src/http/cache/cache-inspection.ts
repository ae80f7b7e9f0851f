import { requestControl } from "../../core/cache/cache-control.ts";
import { ageMs, entryFacts } from "../../core/cache/freshness.ts";
import { decideReuse } from "../../core/cache/reuse.ts";
import { varyKeyOf } from "../../core/cache/stored-fields.ts";
import { type CacheStore, type FoundResponse, isVariant } from "./cache-store.ts";

/** A stored answer, as a request that asks for nothing special would find it. */
export interface CacheInspection {
  readonly status: number;
  readonly verdict: "fresh" | "stale-while-revalidate" | "revalidate";
  readonly ageMs: number;
  /** How long it stays fresh; below 0, how long it has been stale. */
  readonly freshMs: number;
  /** Should the server fail, it may be served all the same. */
  readonly mayServeOnError: boolean;
  /** It depends on these fields of a request whether this is its answer; none where that needs no fields at all. */
  readonly varies: readonly string[];
}

const ANY_REQUEST = requestControl(undefined, undefined);

/** All that is stored for a URL, most recently stored first. */
export function inspectCache(store: Pick<CacheStore, "find">, url: URL, nowMs: number): readonly CacheInspection[] {
  return store.find(`${url.origin}${url.pathname}${url.search}`).map(found => {
    const facts = entryFacts(found);
    const verdict = decideReuse(facts, ANY_REQUEST, nowMs);
    const age = ageMs(nowMs, facts);
    return {
      status: found.status,
      // Only a request that says so takes what is merely stale, and this one does not.
      verdict: verdict.kind === "stale" ? "revalidate" : verdict.kind,
      ageMs: age,
      freshMs: facts.lifetimeMs - age,
      mayServeOnError: verdict.kind === "revalidate" && verdict.mayServeOnError,
      varies: isPlain(found) ? [] : found.varyNames,
    };
  });
}

/** The answer to a request without credentials, whatever else it says. */
function isPlain(found: FoundResponse): boolean {
  return isVariant(
    found,
    varyKeyOf(found.varyNames, () => undefined),
  );
}
