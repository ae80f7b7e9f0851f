import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRates } from "../core/limits/rate.ts";
import type { PolicyOverrides } from "./flag-layer.ts";
import { loadPolicy, type PolicySources } from "./load.ts";
import { readFields } from "./overrides.ts";

test("a field without a value, or without a key, is refused", () => {
  for (const field of ["dsn:", "dsn", ":5", "="])
    assert.throws(() => readFields(field, [], "test"), /has no value or no key; expected <key>:<value>/, field);
});

test("names of inherited properties are unknown keys", async () => {
  for (const overrides of [
    { rate: ["a.example:metadata=constructor:5"] },
    { aimd: "__proto__:1" },
    { breaker: ["a.example=constructor:5"] },
    { breaker: ["a.example=hasOwnProperty:5"] },
  ])
    await assert.rejects(loadPolicy({ overrides }), { name: "ConfigError", message: /unknown key/ });
});

test("an override of a resolver names the resolver once, with or without its prefix, and no role", async () => {
  for (const sources of [
    { overrides: { breakerResolver: ["crossref=fail_max:3"] } },
    { overrides: { breakerResolver: ["resolver:crossref=fail_max:3"] } },
    { env: { DOCSTOKG_BREAKERS: "resolver:crossref=fail_max:3" } },
    { env: { DOCSTOKG_BREAKER_RESOLVER__crossref: "fail_max:3" } },
  ])
    assert.equal((await loadPolicy(sources)).breakers.resolved.resolver("crossref").failMax, 3);
  for (const sources of [
    { overrides: { breakerResolver: ["crossref:metadata=fail_max:3"] } },
    { overrides: { breakerRole: ["resolver:crossref:metadata=fail_max:3"] } },
    { env: { DOCSTOKG_BREAKERS: "resolver:crossref:metadata=fail_max:3" } },
  ])
    await assert.rejects(loadPolicy(sources), {
      name: "ConfigError",
      message: /"(?:resolver:)?crossref:metadata": a resolver has one circuit for all roles; leave out ":metadata"$/,
    });
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

test("a value of --rate without a key is the rates", async () => {
  const ratesOf = async (sources: PolicySources) => {
    const { roleBudget } = (await loadPolicy(sources)).ratelimits.resolved.route("a.example", "metadata");
    return [formatRates(roleBudget.rates), roleBudget.maxDelayMs];
  };
  const rate = (text: string) => ratesOf({ overrides: { rate: [`a.example:metadata=${text}`] } });
  const [, delay] = await rate("9/SECOND");
  assert.deepEqual(await rate("9/SECOND+ 90/MINUTE"), ["9/SECOND+90/MINUTE", delay]);
  assert.deepEqual(await rate(" 9/s , max_delay_ms:7"), ["9/SECOND", 7]);
  assert.deepEqual(await rate("none"), ["", delay]);
  assert.deepEqual(await rate("NONE,max_delay_ms:7"), ["", 7]);
  assert.deepEqual(await ratesOf({ env: { DOCSTOKG_RLIMITS: "a.example:metadata=9/SECOND" } }), ["9/SECOND", delay]);
  assert.deepEqual(await ratesOf({ env: { "DOCSTOKG_RLIMIT__a.example__metadata": "9/SECOND" } }), ["9/SECOND", delay]);
  await assert.rejects(rate("9/PARSEC"), /--rate: hosts\.a\.example\.metadata\.rates: .*9\/PARSEC/);
  await assert.rejects(rate("max_delay_ms:7,9/SECOND"), /"9\/SECOND" has no value or no key/);
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

test("service:<name> and host:<host> address exactly that entry, for limits and breakers, in flags and environment", async () => {
  const rate = "service:arxiv:total=rates:1/9SECOND";
  const breaker = "service:arxiv=fail_max:2";
  for (const sources of [
    { overrides: { rate: [rate], breaker: [breaker] } },
    { env: { DOCSTOKG_RLIMITS: rate, DOCSTOKG_BREAKERS: breaker } },
    {
      env: {
        "DOCSTOKG_RLIMIT__service:arxiv__total": "rates:1/9SECOND",
        "DOCSTOKG_BREAKER__service:arxiv": "fail_max:2",
      },
    },
  ]) {
    const { ratelimits, breakers } = await loadPolicy(sources);
    assert.equal(ratelimits.options.services?.["arxiv"]?.total?.rates, "1/9SECOND");
    assert.equal(breakers.options.services?.["arxiv"]?.fail_max, 2);
    assert.equal(breakers.options.hosts?.["arxiv"], undefined);
  }
  const { ratelimits } = await loadPolicy({ overrides: { rate: ["host:arxiv:metadata=rates:1/s"] } });
  assert.equal(ratelimits.options.hosts?.["arxiv"]?.metadata?.rates, "1/s");
});

test("a target that names nothing in the policy, and no plausible host, is an error with the right form", async () => {
  const message = async (rate: string) => {
    try {
      await loadPolicy({ overrides: { rate: [rate] } });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const fields = "rates:1/s";
  assert.match(await message(`service:arxv:total=${fields}`), /^--rate: unknown service "arxv"; did you mean arxiv\?$/);
  assert.match(
    await message(`arxv:total=${fields}`),
    /"arxv" is neither a listed host nor a service; did you mean service:arxiv\?/,
  );
  assert.match(
    await message(`groups.arxiv:total=${fields}`),
    /"groups\.arxiv" is not a listed host; did you mean service:arxiv\? \(host:groups\.arxiv adds a host of that name\)$/,
  );
  assert.match(await message(`Services.arxv:total=${fields}`), /did you mean service:arxiv\?/);
  assert.match(await message(`HOSTS.api.crossref.org:total=${fields}`), /did you mean host:api\.crossref\.org\?/);
  for (const host of ["services.nvd.nist.gov", "groups.google.com", "hosts.example.org", "defaults.example.org"])
    assert.equal(await message(`${host}:metadata=${fields}`), "", host);
  assert.match(await message(`defaults.x:metadata=${fields}`), /did you mean defaults\?/);
  assert.match(
    await message(`api_crossref_org:metadata=${fields}`),
    /"api_crossref_org" is not a listed host; did you mean api\.crossref\.org\? A name with dots can be written in the lists DOCSTOKG_RLIMITS and DOCSTOKG_BREAKERS \(host:api_crossref_org adds a host of that name\)$/,
  );
  assert.equal(await message(`host:api_crossref_org:metadata=${fields}`), "");
  assert.equal(await message(`localhost:metadata=${fields}`), "");
});

test("a limit that the user sets for an entry also holds for requests with a key", async () => {
  const env = { NCBI_API_KEY: "0123456789" };
  const rateOf = async (overrides: PolicyOverrides) => {
    const { ratelimits } = await loadPolicy({ env, overrides });
    const { name, roleBudget } = ratelimits.resolved.route("eutils.ncbi.nlm.nih.gov", "metadata");
    return [name, formatRates(roleBudget.rates)];
  };
  const name = "service ncbi with NCBI_API_KEY";
  assert.deepEqual(await rateOf({}), [name, "8/SECOND"]);
  assert.deepEqual(await rateOf({ rate: ["service:ncbi:metadata=rates:1/s"] }), [name, "1/SECOND"]);
});

test("a cost that the user lowers for an entry also holds for requests with a key", async () => {
  const metadata = { costs: { credits: "100/DAY", tokens: "5/DAY" } };
  const policy = await loadPolicy({
    ratelimits: { services: { ncbi: { with: { NCBI_API_KEY: { metadata } } } } },
    env: { NCBI_API_KEY: "0123456789" },
    overrides: { rate: ["service:ncbi:metadata=costs.credits:10/DAY"] },
  });
  const { roleBudget } = policy.ratelimits.resolved.route("eutils.ncbi.nlm.nih.gov", "metadata");
  assert.deepEqual(
    roleBudget.costs.flatMap(({ labels }) => labels),
    ["credits 10/DAY", "tokens 5/DAY"],
  );
});
