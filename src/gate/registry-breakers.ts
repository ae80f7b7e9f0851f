import type { Breakers } from "../breaker/breakers.ts";
import type { BreakerRegistry } from "./breaker-registry.ts";

/**
 * The breakers behind each registry: the gate and sharing need more of them than `docstokg/breaker` makes public.
 * This file imports types only, so that a program that uses the limiter alone loads no breaker.
 */
const breakersByRegistry = new WeakMap<BreakerRegistry, Breakers>();

export function linkBreakers(registry: BreakerRegistry, breakers: Breakers): void {
  breakersByRegistry.set(registry, breakers);
}

export function breakersOf(registry: BreakerRegistry): Breakers {
  const breakers = breakersByRegistry.get(registry);
  if (breakers === undefined) throw new TypeError("breakers must be a BreakerRegistry of this copy of docstokg");
  return breakers;
}
