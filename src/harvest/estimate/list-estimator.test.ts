import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy } from "../../policy/load.ts";
import type { RatelimitsOptions } from "../../policy/ratelimit-options.ts";
import { identify } from "../identifiers/identifiers.ts";
import { orderFor, RESOLVERS } from "../resolvers/order.ts";
import type { Work } from "../work.ts";
import { TYPICAL_YIELDS } from "./call-plan.ts";
import { learnedYields } from "./learned-yields.ts";
import { ListEstimator } from "./list-estimator.ts";

const KEYLESS = RESOLVERS.filter(({ needs }) => needs.length === 0);

function workNamed(token: string): Work {
  const named = identify(token);
  assert.ok("work" in named, token);
  return named.work;
}

async function estimatorOf(
  tokens: readonly string[],
  maxBreakerWaitMs = 900_000,
  options: RatelimitsOptions = {},
): Promise<ListEstimator> {
  const { ratelimits } = await loadPolicy({ env: {}, ratelimits: options });
  const order = (work: Work) => orderFor(work, KEYLESS);
  const estimator = new ListEstimator({ limits: ratelimits.resolved, order, yields: TYPICAL_YIELDS, maxBreakerWaitMs });
  for (const token of tokens)
    estimator.add(workNamed(token), token.startsWith("24") ? "arxiv.org artifact" : "x metadata");
  return estimator;
}

const arxivIds = Array.from({ length: 101 }, (_, at) => `2401.${String(at + 1).padStart(5, "0")}`);

test("the service that takes longest decides, and works are counted by kind", async () => {
  const { ms, kinds, works, services } = (await estimatorOf([...arxivIds, "10.1371/journal.pone.1"])).total;
  assert.deepEqual([works, kinds], [102, { arxiv: 101, doi: 1 }]);
  // One request in 3 s, with a guard of half a second.
  assert.equal(ms, 350_000);
  assert.deepEqual([services[0]?.service, services[0]?.calls], ["service arxiv", 101]);
});

test("limits in shadow mode take no time, and neither do the totals above them", async () => {
  const estimator = await estimatorOf(arxivIds, 900_000, { mode: "shadow" });
  const { ms, services } = estimator.total;
  assert.equal(ms, 0);
  assert.equal(
    services.find(({ service }) => service === "service arxiv")?.limits,
    "1/3SECOND + 1000/DAY (shadow mode)",
  );
});

test("the rest of a run takes the time of the works that are left", async () => {
  const estimator = await estimatorOf(arxivIds);
  const queue = { host: "arxiv.org", role: "artifact", inFlightRequests: 1, freeInMs: 0 };
  assert.equal(estimator.leftMs([{ ...queue, waiting: 100 }]), 350_000);
  assert.equal(estimator.leftMs([{ ...queue, waiting: 10 }]), 35_000);
  assert.equal(estimator.leftMs([]), 0);
});

test("a quota beyond the patience limits the number of calls, and one within it the time", async () => {
  const many = Array.from({ length: 1500 }, (_, at) => `2401.${String(at + 1).padStart(5, "0")}`);
  const impatient = (await estimatorOf(many)).total;
  assert.deepEqual([impatient.services[0]?.unsent, impatient.ms], [500, 999 * 3500]);
  const patient = (await estimatorOf(many, 2 * 86_400_000)).total;
  assert.equal(patient.services[0]?.unsent, 0);
  assert.equal(patient.ms, 86_400_500 + 499 * 3500);
});

test("yields of a manifest replace the typical ones as it grows", () => {
  const few = learnedYields([{ resolver: "openalex", asked: 1, stored: 1 }]);
  const many = learnedYields([{ resolver: "openalex", asked: 100_000, stored: 90_000 }]);
  assert.ok(Math.abs((few["openalex"] ?? 0) - (TYPICAL_YIELDS["openalex"] ?? 0)) < 0.02);
  assert.ok(Math.abs((many["openalex"] ?? 0) - 0.9) < 0.001);
  assert.equal(many["crossref"], TYPICAL_YIELDS["crossref"]);
});
