import assert from "node:assert/strict";
import { test } from "node:test";
import { explainPolicy, explainResolver, explainSettings, explainTarget } from "./explanation.ts";
import { loadPolicy } from "./load.ts";

const alone = { extends: "none" } as const;

test("explain lists built-in values, a service's, its total, and a host's role, weakest first", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      ...alone,
      groups: { pair: { members: ["a.example"], metadata: { max_delay_ms: 7 }, total: { rates: "3/s" } } },
    },
    breakers: {
      ...alone,
      hosts: { "a.example": { fail_max: 2, roles: { artifact: { fail_max: 1 } } } },
    },
  });
  const values = Object.fromEntries(
    explainPolicy(policy, "a.example", "metadata").map(({ field, value }) => [field, value]),
  );
  assert.deepEqual(values, {
    mode: "enforce",
    per: "all",
    rates: ["10/SECOND", "5000/HOUR"],
    max_delay_ms: 7,
    count_head: false,
    guard_ms: 25,
    shape: "burst",
    "service pair total.rates": "3/s",
    "breaker.mode": "enforce",
    "breaker.fail_max": 2,
    "breaker.reset_timeout_s": 45,
    "breaker.retry_after_cap_s": 900,
    "breaker.per": "all",
    "breaker.trial_calls": 1,
  });
  const artifact = explainPolicy(policy, "a.example", "artifact").find(({ field }) => field === "breaker.fail_max");
  assert.deepEqual(
    artifact?.sources.map(({ value }) => value),
    [3, 2, 1],
  );
});

test("explain names the source of every setting that holds for all hosts", async () => {
  const policy = await loadPolicy({
    ratelimits: { ...alone, backend: { kind: "redis", dsn: "redis://user:secret@b.example:6379" } },
    breakers: {
      ...alone,
      defaults: { half_open: { jitter_ms: 9 }, classify: { failure_statuses: [500] } },
      advanced: { adaptive_reset: { enabled: false }, cooldown_store: { backend: "sqlite", dsn: "x.db" } },
    },
    env: { DOCSTOKG_AIMD: "enabled:true" },
    overrides: { breakerRolling: "thresh:3", maxInflight: "7" },
  });
  const settings = explainSettings(policy);
  const last = (field: string) => {
    const { value, sources = [] } = settings.find(candidate => candidate.field === field) ?? {};
    return [value, sources.at(-1)?.where];
  };
  assert.deepEqual(last("backend.kind"), ["redis", "policy.ratelimits"]);
  assert.deepEqual(last("backend.dsn"), ["redis://…@b.example:6379", "policy.ratelimits"]);
  assert.deepEqual(last("global.max_inflight"), [7, "--max-inflight"]);
  assert.deepEqual(last("aimd.enabled"), [true, "DOCSTOKG_AIMD"]);
  assert.deepEqual(last("aimd.window_s"), [60, "built-in default"]);
  assert.deepEqual(last("breaker.jitter_ms"), [9, "policy.breakers"]);
  assert.deepEqual(last("breaker.success_threshold"), [1, "built-in default"]);
  assert.deepEqual(last("breaker.rolling_window.threshold_failures"), [3, "--breaker-rolling"]);
  assert.deepEqual(last("breaker.rolling_window.window_s"), [30, "built-in default"]);
  assert.deepEqual(last("breaker.adaptive_reset.enabled"), [false, "policy.breakers"]);
  assert.deepEqual(last("breaker.classify.failure_statuses"), [[500], "policy.breakers"]);
  assert.deepEqual(last("breaker.cooldown_store.backend"), ["sqlite", "policy.breakers"]);
  assert.doesNotMatch(JSON.stringify(settings), /secret/);
});

test("explain names the source of a resolver's numbers, the cap and the trial calls", async () => {
  const policy = await loadPolicy({
    breakers: {
      ...alone,
      defaults: { half_open: { trial_calls: { metadata: 4 } } },
      hosts: { "a.example": { retry_after_cap_s: 5 } },
    },
    overrides: { breakerResolver: ["lov=fail_max:4"] },
  });
  assert.deepEqual(
    explainResolver(policy, "lov").map(({ field, value, sources }) => [field, value, sources.at(-1)?.where]),
    [
      ["resolver.fail_max", 4, "--breaker-resolver"],
      ["resolver.reset_timeout_s", 60, "built-in default"],
    ],
  );
  const paths = explainPolicy(policy, "a.example", "metadata").map(({ sources }) => sources.at(-1)?.path);
  assert.ok(paths.includes("hosts.a.example.retry_after_cap_s"));
  assert.ok(paths.includes("defaults.half_open.trial_calls.metadata"));
});

test("explain names the source of each unit of costs, and a unit is inherited by itself", async () => {
  const policy = await loadPolicy({
    ratelimits: {
      ...alone,
      defaults: { metadata: { costs: { credits: "9/DAY", tokens: "5/s" }, call_costs: { credits: 2 } } },
      hosts: { "a.example": { metadata: { costs: { credits: "8/DAY" } }, total: { costs: { credits: "7/DAY" } } } },
    },
    overrides: { rate: ["a.example:metadata=costs.tokens:none,cost_headers.credits:X-Used"] },
  });
  const values = explainPolicy(policy, "a.example", "metadata").filter(({ field }) => field.includes("cost"));
  assert.deepEqual(
    values.map(({ field, value, sources }) => `${field} ${value} by ${sources.map(({ path }) => path).join(", ")}`),
    [
      "costs.credits 8/DAY by defaults.metadata.costs.credits, hosts.a.example.metadata.costs.credits",
      "costs.tokens none by defaults.metadata.costs.tokens, hosts.a.example.metadata.costs.tokens",
      "call_costs.credits 2 by defaults.metadata.call_costs.credits",
      "cost_headers.credits X-Used by hosts.a.example.metadata.cost_headers.credits",
      "total.costs.credits 7/DAY by hosts.a.example.total.costs.credits",
    ],
  );
});

test("explain of a name from a snapshot has the values with the keys in that name", async () => {
  const policy = await loadPolicy({ env: { NCBI_API_KEY: "abcdefgh" }, mailto: "you@example.org" });
  const valueAt = (name: string, field: string) =>
    explainTarget(policy, name, "metadata").find(value => value.field === field)?.value;
  const total = "service ncbi total.rates";
  assert.equal(valueAt("service ncbi with NCBI_API_KEY", total), "10/SECOND");
  assert.equal(valueAt("service ncbi with NCBI_API_KEY#0123456789abcdef", total), "10/SECOND");
  assert.equal(valueAt("service ncbi", total), "3/SECOND");
  assert.equal(valueAt("eutils.ncbi.nlm.nih.gov", total), "10/SECOND");
  const { roleBudget } = policy.ratelimits.resolved.route("api.crossref.org", "metadata");
  assert.equal([valueAt("api.crossref.org with mailto", "rates")].flat().join(), roleBudget.labels.join());
});

test("the rules that recognise throttles are explained for each entry, because all of them apply", async () => {
  const breakers = {
    extends: "none",
    defaults: { throttles: [{ status: [403, 503], header: "x-blocked: yes" }, { body: "slow down" }] },
    services: { s: { throttles: [{ header: "x-limit", retry_after_s: 5 }] } },
    hosts: { "b.example": { fail_max: 2 } },
  } as const;
  const ratelimits = { extends: "none", services: { s: { members: ["a.example"] } } } as const;
  const policy = await loadPolicy({ env: {}, ratelimits, breakers });
  const throttlesOf = (host: string) =>
    explainPolicy(policy, host, "metadata")
      .filter(({ field }) => field.endsWith("breaker.throttles"))
      .map(({ field, value }) => [field, value]);
  const ofDefaults = ["breaker.throttles", ["status 403, 503; header x-blocked: yes", "body slow down"]];
  assert.deepEqual(throttlesOf("a.example"), [
    ofDefaults,
    ["service s breaker.throttles", ["header x-limit; retry_after_s 5"]],
  ]);
  assert.deepEqual(throttlesOf("b.example"), [ofDefaults]);
});
