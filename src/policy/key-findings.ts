import { notice, type PolicyFinding, warning } from "./finding.ts";
import type { Route, ScopeEntry } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { type LimitScope, scopePlaces, valueAt } from "./precedence.ts";
import { probeOf } from "./probed-url.ts";
import { ROLES } from "./roles.ts";

/** Limits of a service that would apply if a key or an email address were set. */
export interface KeyGain {
  /** The host, or `service <name>`. */
  readonly name: string;
  /** The environment variable that has the key or the address. */
  readonly variable: string;
  /** `total 10/SECOND instead of 3/SECOND`. */
  readonly gain: string;
}

/** Warnings of tiers whose key is sent to no host, and notices of keys and email addresses that would raise limits. */
export function keyFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  return [
    ...unsentTiers(policy)
      .filter(({ isWanted }) => !isWanted)
      .map(({ name, tier }) =>
        warning(
          "unused-tier",
          `${name}: the limits with ${tier} never apply, because identities.yaml sends ${tier} to none of its hosts`,
        ),
      ),
    ...keyGains(policy).map(({ name, variable, gain }) =>
      notice("key-gain", `${name}: ${variable} is not set; with it ${gain}`),
    ),
  ];
}

/** The limits that would apply if a missing key or email address were set. */
export function keyGains(policy: LoadedPolicy): readonly KeyGain[] {
  return unsentTiers(policy).flatMap(({ name, entry, tier, isWanted }) => {
    const gain = isWanted ? gainText(policy, entry, tier) : "";
    return gain === "" ? [] : [{ name, variable: tier === "mailto" ? "DOCSTOKG_MAILTO" : tier, gain }];
  });
}

/** A tier of limits that does not apply, because no request to its hosts has the key. */
interface UnsentTier {
  readonly name: string;
  readonly entry: ScopeEntry;
  readonly tier: string;
  /** Whether identities.yaml would send the key if it were set. */
  readonly isWanted: boolean;
}

function unsentTiers(policy: LoadedPolicy): readonly UnsentTier[] {
  return policy.ratelimits.resolved.entries.flatMap(entry => {
    const { name, scope } = entry;
    if (name === undefined || (scope.tiers ?? []).length > 0) return [];
    const tiers = tierNames(policy, scope);
    const hosts = hostsOf(entry);
    const { identities } = policy;
    const unsent = without(tiers, hosts, host => identities.sentTo(host, scope.service));
    const unwanted = new Set(without(unsent, hosts, host => identities.wantedBy(host, scope.service)));
    return unsent.map(tier => ({ name, entry, tier, isWanted: !unwanted.has(tier) }));
  });
}

/** The tiers that are among the keys of no host. Each host is looked up once at most, because it may have many keys. */
function without(
  tiers: readonly string[],
  hosts: readonly string[],
  keysOf: (host: string) => ReadonlySet<string>,
): readonly string[] {
  let left = tiers;
  for (const host of hosts) {
    if (left.length === 0) break;
    const keys = keysOf(host);
    left = left.filter(tier => !keys.has(tier));
  }
  return left;
}

function tierNames({ ratelimits }: LoadedPolicy, scope: LimitScope): readonly string[] {
  // A listed member repeats the tiers of its service.
  const [place] = scopePlaces(scope).slice(-1);
  return place === undefined ? [] : Object.keys(valueAt(ratelimits.options, [...place.path, "with"]) ?? {});
}

function hostsOf({ scope, members }: ScopeEntry): readonly string[] {
  return [...(scope.listed ?? []).slice(-1), ...members.map(member => probeOf(member).host)];
}

/** `total 10/SECOND instead of 3/SECOND, metadata 8/SECOND instead of 5/2SECOND`. */
function gainText({ ratelimits }: LoadedPolicy, entry: ScopeEntry, tier: string): string {
  const { resolved } = ratelimits;
  const keyed = { ...entry, scope: { ...entry.scope, tiers: [tier] } };
  const gains = ROLES.flatMap(role => {
    const [before, after] = [ratesOf(resolved.routeOf(entry, role)), ratesOf(resolved.routeOf(keyed, role))];
    return [
      { name: "total", before: before.total, after: after.total },
      { name: role, before: before.role, after: after.role },
    ];
  }).filter(({ before, after }) => before !== after);
  return [...new Set(gains.map(({ name, before, after }) => `${name} ${after} instead of ${before}`))].join(", ");
}

function ratesOf({ roleBudget, above: [total] }: Route): { readonly role: string; readonly total: string } {
  return { role: roleBudget.labels.join(" + ") || "no limit", total: total?.policy.labels.join(" + ") || "no limit" };
}
