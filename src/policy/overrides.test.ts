import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRates } from "../core/limits/rate.ts";
import { loadPolicy } from "./load.ts";
import { readFields } from "./overrides.ts";

test("a field without a value, or without a key, is refused", () => {
  for (const field of ["dsn:", "dsn", ":5", "="])
    assert.throws(() => readFields(field, [], "test"), /has no value or no key; expected <key>:<value>/, field);
});

test("--rate with the name of a service changes the service, and adds no host", async () => {
  for (const sources of [
    { overrides: { rate: ["arxiv:total=rates:1/9SECOND"] } },
    { overrides: { rate: ["ArXiv:total=rates:1/9SECOND"] } },
    { env: { DOCSTOKG_RLIMITS: "arxiv:total=rates:1/9SECOND" } },
    { env: { DOCSTOKG_RLIMIT__arxiv__total: "rates:1/9SECOND" } },
  ]) {
    const { options, resolved } = (await loadPolicy(sources)).ratelimits;
    assert.equal(Object.hasOwn(options.hosts ?? {}, "arxiv"), false);
    const [total] = resolved.route("export.arxiv.org", "metadata").above;
    assert.deepEqual([total?.name, formatRates(total?.policy.rates ?? [])], ["service arxiv", "1/9SECOND"]);
  }
});

test("--rate with the name of a service changes one role of the service", async () => {
  const { resolved } = (await loadPolicy({ overrides: { rate: ["arxiv:artifact=max_delay_ms:7"] } })).ratelimits;
  assert.equal(resolved.route("arxiv.org", "artifact").roleBudget.maxDelayMs, 7);
  assert.notEqual(resolved.route("arxiv.org", "metadata").roleBudget.maxDelayMs, 7);
});

test("a listed host wins over a service of the same name", async () => {
  const ratelimits = {
    hosts: { "a.example": {} },
    groups: { "a.example": { members: ["b.example"] } },
  };
  const policy = await loadPolicy({ ratelimits, overrides: { rate: ["a.example:metadata=max_delay_ms:7"] } });
  const { resolved } = policy.ratelimits;
  assert.equal(resolved.route("a.example", "metadata").roleBudget.maxDelayMs, 7);
  assert.notEqual(resolved.route("b.example", "metadata").roleBudget.maxDelayMs, 7);
});

test("--rate and --breaker with defaults change the defaults, and add no host", async () => {
  for (const sources of [
    {
      overrides: {
        rate: ["defaults:metadata=rates:9/SECOND"],
        breaker: ["defaults=retry_after_cap:60"],
        breakerRole: ["defaults:metadata=fail_max:2"],
      },
    },
    {
      env: {
        DOCSTOKG_RLIMITS: "defaults:metadata=rates:9/SECOND",
        DOCSTOKG_BREAKERS: "defaults=retry_after_cap:60;defaults:metadata=fail_max:2",
      },
    },
  ]) {
    const { ratelimits, breakers } = await loadPolicy(sources);
    assert.equal(Object.hasOwn(ratelimits.options.hosts ?? {}, "defaults"), false);
    assert.equal(Object.hasOwn(breakers.options.hosts ?? {}, "defaults"), false);
    assert.equal(formatRates(ratelimits.resolved.route("x.example", "metadata").roleBudget.rates), "9/SECOND");
    assert.equal(breakers.resolved.retryAfterCapMs("x.example"), 60_000);
    assert.equal(breakers.resolved.circuit("x.example", "metadata").failMax, 2);
  }
});

test("the defaults have no total", async () => {
  await assert.rejects(
    loadPolicy({ overrides: { rate: ["defaults:total=rates:9/SECOND"] } }),
    /--rate: "defaults:total": the defaults have no total; name a role/,
  );
});
