import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates, type Rate } from "../../core/limits/rate.ts";
import type { LimitPolicies } from "../../policy/limits.ts";
import { loadPolicy } from "../../policy/load.ts";
import type { EnforcedLimit } from "./limit-counter.ts";
import { LIMITS } from "./limits.ts";

const { ratelimits } = await loadPolicy({ env: {} });
const shipped: LimitPolicies = ratelimits.resolved;
const ROLES = ["metadata", "landing", "artifact"] as const;

/** The most that can go in any window of `windowUs` by these rates. */
function mostIn(rates: readonly Rate[], windowUs: number): number {
  return Math.min(...rates.map(rate => rate.limit * Math.ceil(windowUs / rate.windowUs)));
}

/** Over all roles of one place, as far as a total above them allows. */
function routesAt(place: string, roles: readonly (typeof ROLES)[number][]) {
  const [host = "", ...path] = place.split("/");
  return roles.map(role => shipped.route(host, role, `/${path.join("/")}`));
}

function worstCase({ at, name }: EnforcedLimit, windowUs: number): number {
  // A search is a question for metadata; files and pages on that path are none.
  const roles = name === "zenodo, search" ? (["metadata"] as const) : ROLES;
  const byOwner = new Map<string, number>();
  for (const place of at) {
    const routes = routesAt(place, roles);
    const lanes = routes.reduce((sum, { roleBudget }) => sum + mostIn(roleBudget.rates, windowUs), 0);
    const totals = routes.flatMap(({ above }) => above.map(({ policy }) => mostIn(policy.rates, windowUs)));
    byOwner.set(routes[0]?.name ?? place, Math.min(lanes, ...totals));
  }
  return [...byOwner.values()].reduce((sum, count) => sum + count, 0);
}

for (const limit of LIMITS) {
  // Lists share their host with single records, and no path tells the two apart: their limit is learned from what
  // Crossref announces with the first answer.
  if (limit.name.endsWith("-array")) continue;
  test(`what we ship keeps within the limit of ${limit.name}`, () => {
    for (const { limit: most, windowUs } of parseRates(limit.rates)) {
      const worst = worstCase(limit, windowUs);
      assert.ok(worst <= most, `${worst} may go where ${most} are allowed in ${windowUs / 1e6} s`);
    }
    const { maxConcurrent = Number.POSITIVE_INFINITY } = limit;
    for (const place of limit.at) {
      for (const { roleBudget, above } of routesAt(place, ROLES)) {
        const ours = Math.min(roleBudget.maxConcurrent, ...above.map(({ policy }) => policy.maxConcurrent));
        assert.ok(ours <= maxConcurrent, `${place}: ${ours} at a time`);
      }
    }
  });
}

test("the limits that are enforced name hosts that there are, each once", () => {
  const names = LIMITS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});
