import assert from "node:assert/strict";
import { test } from "node:test";
import { limitFindings } from "./limit-findings.ts";
import { type LoadedPolicy, loadPolicy, type PolicySources } from "./load.ts";
import type { RoleLimits } from "./ratelimit-options.ts";

const warningsOf = (policy: LoadedPolicy) => limitFindings(policy).map(({ message }) => message);

test("limits that probably do not do what their author wants give warnings", async () => {
  const warned = async (metadata: RoleLimits) => {
    const ratelimits = { extends: "none", hosts: { "a.example": { metadata } } } as const;
    return warningsOf(await loadPolicy({ ratelimits })).map(line => line.replace("a.example metadata: ", ""));
  };
  assert.deepEqual(await warned({ rates: "1/3SECOND", max_delay_ms: 150 }), [
    "max_delay_ms 150 is less than the 3000 ms between calls at 1/3SECOND: when the window is full, calls are refused instead of queued; raise max_delay_ms",
  ]);
  assert.deepEqual(await warned({ rates: "5/s+300/min", max_delay_ms: 500 }), [
    "300/MINUTE has no effect: 5/SECOND is at least as strict",
  ]);
  assert.deepEqual(await warned({ rates: "5/s+5/s", max_delay_ms: 500 }), [
    "5/SECOND has no effect: 5/SECOND is at least as strict",
  ]);
  assert.deepEqual(await warned({ rates: "10/s", max_concurrent: 1, max_delay_ms: 500 }), [
    "max_concurrent 1 limits this to about 3.3 calls/s (at 300 ms per call), below its rate of 10.0/s",
  ]);
  assert.deepEqual(await warned({ rates: "10/s+5000/h", max_concurrent: 100 }), []);
  assert.deepEqual(await warned({ rates: "none", max_concurrent: 1 }), []);
  const costs = { costs: { credits: ["5/s", "9/min"], pages: "20/s" }, call_costs: { credits: 7, pages: 20 } };
  assert.deepEqual(await warned({ rates: "none", ...costs }), [
    "call_costs.credits 7 is more than credits 5/SECOND allows: each call that does not name its costs fails; lower call_costs.credits or raise the limit",
  ]);
  assert.deepEqual(await warned({ rates: "none", mode: "shadow", ...costs }), []);
  assert.deepEqual(await warned({ rates: "1/2MINUTE", max_delay_ms: 200 }), [
    "max_delay_ms 200 is less than the 120000 ms between calls at 1/2MINUTE: when the window is full, calls are refused instead of queued; raise max_delay_ms",
  ]);
});

test("warnings cover services, paths of a host, and totals", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      extends: "none",
      hosts: { "a.example": { total: { rates: "3/s" } } },
      groups: {
        pair: { members: ["b.example", "c.example"], metadata: { rates: "1/3s" } },
        part: { members: ["d.example/x/y"], metadata: { rates: "1/2s" } },
      },
    },
  });
  const warned = warningsOf(policy).map(line => line.replace(/ is less than the| between calls .*/g, ""));
  for (const line of [
    "a.example metadata: max_delay_ms 200 334 ms",
    "service pair metadata: max_delay_ms 200 3000 ms",
    "service part metadata: max_delay_ms 200 2000 ms",
  ])
    assert.ok(warned.includes(line), `${line}\n${warned.join("\n")}`);
});

test("a raised rate below a total that is lower gives a warning that names the total and how to raise it", async () => {
  const warned = async (sources: PolicySources) =>
    warningsOf(await loadPolicy(sources)).filter(line => line.includes("the total of"));
  assert.deepEqual(await warned({ overrides: { rate: ["api.crossref.org:metadata=rates:20/SECOND"] } }), [
    "api.crossref.org metadata: 20/SECOND (--rate) has no effect: the total of api.crossref.org is 5/SECOND; raise it too, for example with --rate api.crossref.org:total=rates:20/SECOND",
  ]);
  assert.deepEqual(await warned({ env: { DOCSTOKG_RLIMITS: "arxiv:artifact=rates:1/SECOND" } }), [
    "service arxiv artifact: 1/SECOND (DOCSTOKG_RLIMITS) has no effect: the total of service arxiv is 1/3SECOND; raise it too, for example with --rate service:arxiv:total=rates:1/SECOND",
  ]);
  const hosts = { "a.example": { total: { rates: "5/s" }, metadata: { rates: "6/s" } } };
  assert.equal((await warned({ ratelimits: { extends: "none", hosts } })).length, 1);
});

test("a rate that equals its total, is inherited, or was shipped above a lowered total gives no warning", async () => {
  const warned = async (sources: PolicySources) =>
    warningsOf(await loadPolicy(sources)).filter(line => line.includes("the total of"));
  assert.deepEqual(await warned({ overrides: { rate: ["api.crossref.org:metadata=rates:5/SECOND"] } }), []);
  assert.deepEqual(await warned({ ratelimits: { defaults: { metadata: { rates: "50/s" } } } }), []);
  assert.deepEqual(await warned({ overrides: { rate: ["arxiv:total=rates:1/9SECOND"] } }), []);
});

test("a total of a host above the total of its service gives a warning", async () => {
  const ratelimits = {
    extends: "none",
    hosts: { "a.example": { total: { rates: "9/s" } } },
    groups: { pair: { members: ["a.example", "b.example"], total: { rates: "3/s" } } },
  } as const;
  const [warning] = warningsOf(await loadPolicy({ ratelimits })).filter(line => line.includes("the total of"));
  assert.match(
    warning ?? "",
    /^a\.example total: 9\/SECOND \(policy\.ratelimits\) has no effect: the total of service pair/,
  );
});

test("limits without a key give no warning if every request carries the key", async () => {
  const ratelimits = {
    extends: "none",
    hosts: {
      "a.example": {
        metadata: { rates: "1/9s", max_delay_ms: 10 },
        with: { MY_KEY: { metadata: { rates: "9/s", max_delay_ms: 1000 } } },
      },
    },
  } as const;
  const identities = (path: string) => ({ hosts: { "a.example": { path, headers: { "x-key": "{MY_KEY}" } } } });
  const warned = async (sources: PolicySources) => warningsOf(await loadPolicy({ ratelimits, ...sources })).length;
  const env = { MY_KEY: "secret" };
  assert.equal(await warned({ identities: identities("/"), env }), 0);
  assert.equal(await warned({ identities: identities("/api"), env }), 1);
  assert.equal(await warned({ identities: identities("/") }), 1);
});
