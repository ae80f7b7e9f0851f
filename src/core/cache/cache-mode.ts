/** The `cache` option of WHATWG fetch, in terms of the directives of a request. */
import type { RequestControl } from "./cache-control.ts";

/** `default` follows the rules of HTTP. */
export type CacheMode = "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached";

const MODES: ReadonlySet<unknown> = new Set<CacheMode>([
  "default",
  "no-store",
  "reload",
  "no-cache",
  "force-cache",
  "only-if-cached",
]);

/** Whether fetch accepts the value. */
export function isCacheMode(value: unknown): value is CacheMode {
  return MODES.has(value);
}

/** The directives of a request that was sent with this mode. `given` are those of its headers. */
export function withCacheMode(given: RequestControl, mode: CacheMode): RequestControl {
  if (mode === "no-store") return { ...given, noStore: true };
  if (mode === "reload") return { ...given, ignoresStored: true };
  // fetch sends `max-age=0`: an immutable response is not revalidated while it is fresh (RFC 8246).
  if (mode === "no-cache") return { ...given, maxAgeS: 0 };
  if (mode === "force-cache") return { ...given, acceptsAnyAge: true };
  return mode === "only-if-cached" ? { ...given, acceptsAnyAge: true, onlyIfCached: true } : given;
}
