import type { LimitPolicies } from "./limit-policies.ts";
import { commonName } from "./partition-name.ts";
import { serviceOfName, tiersOfName, withoutTier } from "./service-name.ts";

/** The host or service of a role budget; both for a service with `per_host`. */
export type BudgetUnit = {
  /** The keys that its requests carry. */
  readonly tiers: readonly string[];
  /** The path of the member, in the name of a service with `per_host`. */
  readonly path?: string | undefined;
} & (
  | { readonly host: string; readonly service?: string | undefined }
  | { readonly service: string; readonly host?: undefined }
);

/**
 * The parts of the name of a role budget, without its partition. A service with `per_host` has one for each host,
 * `service <name>:<host>`.
 */
export function budgetUnitOf(name: string): BudgetUnit {
  const common = commonName(name);
  const tiers = tiersOfName(common);
  const unit = withoutTier(common);
  const service = serviceOfName(unit);
  if (service === undefined) return { host: unit, tiers };
  const colon = service.indexOf(":");
  if (colon < 0) return { service, tiers };
  const place = service.slice(colon + 1);
  const slash = place.indexOf("/");
  const [host, path] = slash < 0 ? [place, undefined] : [place.slice(0, slash), place.slice(slash)];
  return { service: service.slice(0, colon), host, path, tiers };
}

/** Whether only the defaults apply to the host of a role budget. Cheaper than its route. */
export function isOfUnnamedHost(name: string, limits: Pick<LimitPolicies, "isNamed">): boolean {
  // The names of services, of keys and of partitions have these characters.
  return !/[ #/]/.test(name) && !limits.isNamed(name);
}
