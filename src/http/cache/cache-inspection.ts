import { requestControl } from "../../core/cache/cache-control.ts";
import { ageMs, entryFacts } from "../../core/cache/freshness.ts";
import { decideReuse } from "../../core/cache/reuse.ts";
import { varyKeyOf } from "../../core/cache/vary.ts";
import { type CacheStore, type FoundResponse, isVariant } from "./cache-store.ts";

/** A stored response, and what a request without Cache-Control would get. */
export interface CacheInspection {
  readonly status: number;
  readonly verdict: "fresh" | "stale-while-revalidate" | "revalidate";
  readonly ageMs: number;
  /** Time until it becomes stale, in ms; negative when it is stale. */
  readonly freshMs: number;
  /** True when it may be served if the server fails (`stale-if-error`). */
  readonly mayServeOnError: boolean;
  /** The request headers that select this variant; empty when a request without these headers gets it. A part has `range`. */
  readonly varies: readonly string[];
}

const NO_CACHE_CONTROL = requestControl(undefined, undefined);

/** All stored variants of a URL, most recently stored first. */
export function inspectCache(store: Pick<CacheStore, "find">, url: URL, nowMs: number): readonly CacheInspection[] {
  return store.find(`${url.origin}${url.pathname}${url.search}`).map(found => {
    const facts = entryFacts(found);
    const verdict = decideReuse(facts, NO_CACHE_CONTROL, nowMs);
    const age = ageMs(nowMs, facts);
    return {
      status: found.status,
      // `stale` does not occur here: only a request with `max-stale` gets it.
      verdict: verdict.kind === "stale" ? "revalidate" : verdict.kind,
      ageMs: age,
      freshMs: facts.lifetimeMs - age,
      mayServeOnError: verdict.kind === "revalidate" && verdict.mayServeOnError,
      varies: [...(isPlain(found) ? [] : found.varyNames), ...(found.status === 206 ? ["range"] : [])],
    };
  });
}

/** True when a request without any of the selecting headers gets this variant. */
function isPlain(found: FoundResponse): boolean {
  return isVariant(
    found,
    varyKeyOf(found.varyNames, () => undefined),
  );
}
