import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates, type Rate } from "../../core/limits/rate.ts";
import type { LimitPolicies } from "../../policy/limit-policies.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { EnforcedLimit } from "./limit-counter.ts";
import { LIMITS } from "./limits.ts";

const { ratelimits } = await loadPolicy({ env: {} });
const shipped: LimitPolicies = ratelimits.resolved;
const ROLES = ["metadata", "landing", "artifact"] as const;

/** The largest number of requests that these rates permit in any window of `windowUs`. */
function mostIn(rates: readonly Rate[], windowUs: number): number {
  return Math.min(...rates.map(rate => rate.limit * Math.ceil(windowUs / rate.windowUs)));
}

/** The routes of these roles of a host or path, each with the totals above its budget. */
function routesAt(place: string, roles: readonly (typeof ROLES)[number][]) {
  const [host = "", ...path] = place.split("/");
  return roles.map(role => shipped.route(host, role, `/${path.join("/")}`));
}

function worstCase({ at, name }: EnforcedLimit, windowUs: number): number {
  // A search has the role metadata; files and pages on that path are not searches.
  const roles = name === "zenodo, search" ? (["metadata"] as const) : ROLES;
  const byOwner = new Map<string, number>();
  for (const place of at) {
    const routes = routesAt(place, roles);
    const ofRoles = routes.reduce((sum, { roleBudget }) => sum + mostIn(roleBudget.rates, windowUs), 0);
    const totals = routes.flatMap(({ above }) => above.map(({ policy }) => mostIn(policy.rates, windowUs)));
    byOwner.set(routes[0]?.name ?? place, Math.min(ofRoles, ...totals));
  }
  return [...byOwner.values()].reduce((sum, count) => sum + count, 0);
}

for (const limit of LIMITS) {
  // Lists and single records have the same host and path, so the policy cannot distinguish them. The limit of lists is
  // learned from what Crossref announces in its first response.
  if (limit.name.endsWith("-array")) continue;
  test(`the shipped policy stays within the limit of ${limit.name}`, () => {
    for (const { limit: most, windowUs } of parseRates(limit.rates)) {
      const worst = worstCase(limit, windowUs);
      assert.ok(worst <= most, `the policy permits ${worst} in ${windowUs / 1e6} s, the limit is ${most}`);
    }
    const { maxConcurrent = Number.POSITIVE_INFINITY } = limit;
    for (const place of limit.at) {
      for (const { roleBudget, above } of routesAt(place, ROLES)) {
        const ours = Math.min(roleBudget.maxConcurrent, ...above.map(({ policy }) => policy.maxConcurrent));
        assert.ok(ours <= maxConcurrent, `${place}: ${ours} concurrent requests, the limit is ${maxConcurrent}`);
      }
    }
  });
}

test("every enforced limit has a unique name", () => {
  const names = LIMITS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});
