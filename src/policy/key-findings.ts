import { notice, type PolicyFinding, warning } from "./finding.ts";
import type { Route, ScopeEntry } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { type LimitScope, scopePlaces, valueAt } from "./precedence.ts";
import { ROLES } from "./roles.ts";

/** What a key or an email address that is not set would gain, and tiers for names that nothing sends. */
export function keyFindings(policy: LoadedPolicy): readonly PolicyFinding[] {
  const { resolved } = policy.ratelimits;
  const plain = resolved.entries.filter(({ name, scope }) => name !== undefined && (scope.tiers ?? []).length === 0);
  return plain.flatMap(entry =>
    tierNames(policy, entry.scope).flatMap(tier => {
      const hosts = hostsOf(entry);
      if (hosts.some(host => policy.identities.sentTo(host, entry.scope.service).has(tier))) return [];
      const isWanted = hosts.some(host => policy.identities.wantedBy(host, entry.scope.service).has(tier));
      if (!isWanted)
        return [
          warning(
            "unused-tier",
            `${entry.name}: the limits with ${tier} never apply, because identities.yaml sends ${tier} to none of its hosts`,
          ),
        ];
      const gain = gainText(policy, entry, tier);
      const variable = tier === "mailto" ? "DOCSTOKG_MAILTO" : tier;
      return gain === "" ? [] : [notice("key-gain", `${entry.name}: ${variable} is not set; with it ${gain}`)];
    }),
  );
}

function tierNames({ ratelimits }: LoadedPolicy, scope: LimitScope): readonly string[] {
  // A listed member repeats the tiers of its service.
  const [place] = scopePlaces(scope).slice(-1);
  return place === undefined ? [] : Object.keys(valueAt(ratelimits.options, [...place.path, "with"]) ?? {});
}

function hostsOf({ scope, members }: ScopeEntry): readonly string[] {
  return [...(scope.listed ?? []).slice(-1), ...members.filter(({ isSuffix }) => !isSuffix).map(({ host }) => host)];
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
  return { role: roleBudget.labels.join(" + "), total: total?.policy.labels.join(" + ") || "no limit" };
}
