import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { formatRates } from "../core/limits/rate.ts";
import { ConfigError, type ConfigProblem } from "../errors.ts";
import { lintPolicy } from "./lint.ts";
import { type LoadedPolicy, loadPolicy, type PolicySources } from "./load.ts";
import type { Role } from "./roles.ts";

const crossref = "api.crossref.org";
let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-policy-"));
});
after(() => rm(folder, { recursive: true }));

async function file(name: string, text: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, text);
  return path;
}

async function problems(sources: PolicySources): Promise<readonly ConfigProblem[]> {
  const error = await loadPolicy(sources).then(
    () => undefined,
    reason => reason,
  );
  assert.ok(error instanceof ConfigError, String(error));
  return error.problems.map(problem => ({ ...problem, where: problem.where.replace(`${folder}/`, "") }));
}

function roleBudgetOf(policy: LoadedPolicy, host: string, role: Role = "metadata", path?: string) {
  const { name, roleBudget: found, above } = policy.ratelimits.resolved.route(host, role, path);
  const { rates, maxDelayMs, countsHead, maxConcurrent } = found;
  return {
    name,
    rates: formatRates(rates),
    maxDelayMs,
    countsHead,
    maxConcurrent,
    above: above.map(({ name: total }) => total),
  };
}

describe("layers", () => {
  test("an override changes the fields it names and keeps their siblings", async () => {
    const shipped = roleBudgetOf(await loadPolicy(), crossref);
    const env = { [`DOCSTOKG_RLIMIT__${crossref}__metadata`]: "rates:3/SECOND+100/HOUR,count_head:false" };
    const changed = roleBudgetOf(await loadPolicy({ env }), crossref);
    assert.deepEqual(changed, { ...shipped, rates: "3/SECOND+100/HOUR", countsHead: false });
  });

  test("every variable is read, with both separators and short names", async () => {
    const { ratelimits, breakers } = await loadPolicy({
      env: {
        DOCSTOKG_RLIMITS: "a.example:metadata=rates=1/s,max_delay_ms:5; B.example:artifact=max_concurrent:2 ;",
        DOCSTOKG_RLIMIT_BACKEND: "sqlite",
        DOCSTOKG_RLIMIT_DSN: "limits.db",
        DOCSTOKG_MAX_INFLIGHT: "7",
        DOCSTOKG_AIMD: "enabled:true,decrease:10,increase=2,window:30",
        "DOCSTOKG_BREAKER__a.example": "fail_max:2,reset=30,retry_after_cap:60",
        "DOCSTOKG_BREAKER_ROLE__a.example__artifact": "fail_max:1",
        DOCSTOKG_BREAKER_RESOLVER__crossref: "fail_max:9",
        DOCSTOKG_BREAKER_ADV__ROLLING: "thresh:3,window:10,cooldown:20,enabled:false",
        DOCSTOKG_BREAKERS: "b.example=fail_max:4;b.example:landing=reset:7;resolver:lov=fail_max:8",
        DOCSTOKG_BREAKER_COOLDOWN_BACKEND: "redis",
        DOCSTOKG_BREAKER_COOLDOWN_DSN: "redis://127.0.0.1",
        DOCSTOKG_RLIMIT__empty: "",
      },
    });
    const { resolved, options } = ratelimits;
    const a = resolved.route("a.example", "metadata").roleBudget;
    assert.deepEqual([formatRates(a.rates), a.maxDelayMs], ["1/SECOND", 5]);
    assert.equal(resolved.route("b.example", "artifact").roleBudget.maxConcurrent, 2);
    assert.deepEqual({ ...options.backend }, { kind: "sqlite", dsn: "limits.db" });
    assert.equal(resolved.maxInFlight, 7);
    const { enabled, decrease, increase, windowUs } = resolved.aimd;
    assert.deepEqual([enabled, decrease, increase, windowUs], [true, 0.1, 0.02, 30e6]);
    const circuit = (host: string, role: Role) => {
      const { failMax, resetUs } = breakers.resolved.circuit(host, role);
      return [failMax, resetUs / 1e6];
    };
    assert.deepEqual(circuit("a.example", "metadata"), [2, 30]);
    assert.deepEqual(circuit("a.example", "artifact"), [1, 30]);
    assert.deepEqual(circuit("b.example", "landing"), [4, 7]);
    assert.equal(breakers.resolved.retryAfterCapMs("a.example"), 60_000);
    assert.equal(breakers.resolved.resolver("crossref").failMax, 9);
    assert.equal(breakers.resolved.resolver("lov").failMax, 8);
    assert.deepEqual(breakers.resolved.rollingWindow, {
      enabled: false,
      windowUs: 10e6,
      threshold: 3,
      cooldownMs: 20_000,
      slowCalls: undefined,
    });
    assert.deepEqual({ ...breakers.options.advanced?.cooldown_store }, { backend: "redis", dsn: "redis://127.0.0.1" });
  });

  test("flags set the same values as the environment", async () => {
    const { ratelimits, breakers } = await loadPolicy({
      overrides: {
        rate: ["a.example:total=rates:1/s"],
        rateBackend: "redis",
        rateDsn: "redis://127.0.0.1",
        maxInflight: "9",
        aimd: "enabled:true",
        breaker: ["a.example=fail_max:2"],
        breakerRole: ["a.example:landing=fail_max:3"],
        breakerResolver: ["lov=fail_max:4"],
        breakerRolling: "thresh:5",
      },
    });
    assert.equal(ratelimits.resolved.route("a.example", "landing").above[0]?.name, "a.example");
    assert.equal(ratelimits.options.backend?.kind, "redis");
    assert.equal(ratelimits.resolved.maxInFlight, 9);
    assert.equal(ratelimits.resolved.aimd.enabled, true);
    assert.equal(breakers.resolved.circuit("a.example", "metadata").failMax, 2);
    assert.equal(breakers.resolved.circuit("a.example", "landing").failMax, 3);
    assert.equal(breakers.resolved.resolver("lov").failMax, 4);
    assert.equal(breakers.resolved.rollingWindow.threshold, 5);
  });

  test("a user's file extends the shipped one, or replaces it with extends: none", async () => {
    const own = 'hosts: { own.example: { metadata: { rates: "1/s" } } }\n';
    const extended = await loadPolicy({ env: { DOCSTOKG_RLIMITS_YAML: await file("own.yaml", own) } });
    assert.notEqual(extended.ratelimits.options.hosts?.[crossref], undefined);
    assert.equal(roleBudgetOf(extended, "own.example").rates, "1/SECOND");
    const alone = await loadPolicy({ ratelimits: await file("alone.yaml", `extends: none\n${own}`) });
    assert.deepEqual(Object.keys(alone.ratelimits.options.hosts ?? {}), ["own.example"]);
    assert.equal(roleBudgetOf(alone, crossref).rates, "10/SECOND+5000/HOUR");
  });

  test("a file may change one number of a shipped group", async () => {
    const policy = await loadPolicy({
      ratelimits: { groups: { arxiv: { total: { max_concurrent: 1, rates: "1/10s" } } } },
    });
    const { above, name } = roleBudgetOf(policy, "export.arxiv.org");
    assert.deepEqual([name, above], ["service arxiv", ["service arxiv"]]);
  });

  test("spellings of one host are the same host", async () => {
    const ratelimits = await file("idn.yaml", "hosts:\n  MÜNCHEN.example.:\n    metadata: { rates: 1/s }\n");
    const policy = await loadPolicy({ ratelimits, overrides: { rate: ["münchen.EXAMPLE:metadata=max_delay_ms:9"] } });
    const { name, rates, maxDelayMs } = roleBudgetOf(policy, "xn--mnchen-3ya.example");
    assert.deepEqual({ name, rates, maxDelayMs }, { name: "xn--mnchen-3ya.example", rates: "1/SECOND", maxDelayMs: 9 });
  });
});

describe("mistakes", () => {
  test("a file with five mistakes reports five problems, with their lines", async () => {
    const ratelimits = await file(
      "five.yaml",
      [
        "version: 2",
        "hosts:",
        "  bad host: {}",
        "  a.example:",
        "    metadata:",
        "      rates: 8/fortnight",
        "      max_dely_ms: 100",
        "    artifact: { max_concurrent: none }",
        "",
      ].join("\n"),
    );
    const found = await problems({ ratelimits });
    assert.deepEqual(
      found.map(({ where, path }) => [where, path]),
      [
        ["five.yaml:1", "version"],
        ["five.yaml:3", "hosts.bad host"],
        ["five.yaml:6", "hosts.a.example.metadata.rates"],
        ["five.yaml:7", "hosts.a.example.metadata.max_dely_ms"],
        ["five.yaml:8", "hosts.a.example.artifact.max_concurrent"],
      ],
    );
    assert.match(found[2]?.message ?? "", /"8\/fortnight" is not a rate: unknown time unit "fortnight"/);
    assert.equal(found[3]?.message, "unknown key; did you mean max_delay_ms?");
    assert.equal(found[4]?.message, 'expected number, found "none"');
  });

  test("one error lists the mistakes of every layer", async () => {
    const found = await problems({
      ratelimits: { hosts: { "a.example": { metadata: { rates: "x" } } } },
      breakers: { defaults: { fail_max: 0 } },
      env: { "DOCSTOKG_RLIMIT__a.example": "rates:1/s", DOCSTOKG_AIMD: "enabled" },
      overrides: { rate: ["a.example:metadata"], breaker: ["a.example=reset:0"] },
    });
    assert.deepEqual(
      found.map(({ where }) => where).sort(),
      [
        "--breaker",
        "--rate",
        "DOCSTOKG_AIMD",
        "DOCSTOKG_RLIMIT__a.example",
        "policy.breakers",
        "policy.ratelimits",
      ].sort(),
    );
  });

  test("a host in two spellings is refused in an object too: one of its entries would be lost", async () => {
    const hosts = { "Api.example": {}, "api.example": {} };
    await assert.rejects(
      loadPolicy({ ratelimits: { hosts }, breakers: { hosts } }),
      /policy\.ratelimits: hosts\.api\.example: duplicate entry api\.example\s+policy\.breakers: hosts\.api\.example: duplicate/,
    );
  });

  test("a malformed file is refused, and never means unlimited", async () => {
    const bad: Readonly<Record<string, [string, RegExp]>> = {
      "broken.yaml": ["hosts: [unclosed\n", /broken\.yaml:\d/],
      "double.yaml": ["hosts: {}\nhosts: {}\n", /double\.yaml:2: hosts: duplicate entry hosts/],
      "twice.yaml": [
        "hosts:\n  a.example: {}\n  A.EXAMPLE: {}\n",
        /twice\.yaml:3: hosts\.A\.EXAMPLE: duplicate entry a\.example/,
      ],
      "proto.yaml": ["__proto__: { polluted: true }\n", /proto\.yaml:1: invalid key "__proto__"/],
      "scalar.yaml": ["just a text\n", /expected a map/],
      "null.yaml": [
        "hosts:\n  a.example:\n    metadata:\n",
        /null\.yaml:3: hosts\.a\.example\.metadata: expected a map, found null/,
      ],
      "norates.yaml": [
        "hosts:\n  a.example:\n    metadata: { rates: }\n",
        /norates\.yaml:3: hosts\.a\.example\.metadata\.rates/,
      ],
      "nomembers.yaml": [
        "groups:\n  mine: { total: { rates: 1/s } }\n",
        /services\.mine\.members: members is missing: list hosts, \*\.suffix, or host\/path/,
      ],
    };
    for (const [name, [text, expected]] of Object.entries(bad)) {
      const ratelimits = await file(name, text);
      await assert.rejects(loadPolicy({ ratelimits }), (error: Error) => {
        assert.ok(error instanceof ConfigError, name);
        assert.match(error.message, expected, name);
        return true;
      });
    }
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  test("a missing file is reported by the variable that names it", async () => {
    await assert.rejects(
      loadPolicy({ env: { DOCSTOKG_RLIMITS_YAML: "no-such.yaml" } }),
      /DOCSTOKG_RLIMITS_YAML=no-such\.yaml: file not found/,
    );
  });
});

describe("shipped files", () => {
  test("have no problems and no warnings", async () => {
    const policy = await loadPolicy();
    assert.deepEqual(
      lintPolicy(policy).filter(({ severity }) => severity === "warning"),
      [],
    );
  });

  test("contain the breaker numbers of every host of the design", async () => {
    const { breakers } = await loadPolicy();
    const shipped = (host: string, role: Role = "metadata") => {
      const { failMax, resetUs } = breakers.resolved.circuit(host, role);
      return `${failMax}/${resetUs / 1e6}`;
    };
    const expected: Readonly<Record<string, string>> = {
      "api.crossref.org": "5/60",
      "api.openalex.org": "5/45",
      "api.unpaywall.org": "5/120",
      "export.arxiv.org": "3/180",
      "api.semanticscholar.org": "5/60",
      "eutils.ncbi.nlm.nih.gov": "5/120",
      "europepmc.org": "5/60",
      "api.osf.io": "5/90",
      "zenodo.org": "5/90",
      "api.figshare.com": "5/90",
      "api.core.ac.uk": "5/90",
      "doaj.org": "5/90",
      "api.openaire.eu": "5/120",
      "hal.science": "4/120",
      "web.archive.org": "3/60",
    };
    for (const [host, numbers] of Object.entries(expected)) assert.equal(shipped(host), numbers, host);
    assert.equal(shipped("web.archive.org", "artifact"), "2/120");
  });

  test("share or split budgets where providers do", async () => {
    const policy = await loadPolicy();
    assert.equal(roleBudgetOf(policy, "arxiv.org", "artifact").name, roleBudgetOf(policy, "export.arxiv.org").name);
    const ols = roleBudgetOf(policy, "www.ebi.ac.uk", "metadata", "/ols4/api/ontologies/go").name;
    const europePmc = roleBudgetOf(policy, "www.ebi.ac.uk", "metadata", "/europepmc/webservices/rest/search").name;
    assert.notEqual(ols, europePmc);
    const cdx = roleBudgetOf(policy, "web.archive.org", "metadata", "/cdx/search/cdx").name;
    const replay = roleBudgetOf(policy, "web.archive.org", "artifact", "/web/2020id_/http://example.org/").name;
    assert.notEqual(cdx, replay);
    const { above } = policy.ratelimits.resolved.route(crossref, "metadata");
    assert.ok(Math.min(...above.map(({ policy: total }) => total.maxConcurrent)) <= 3);
  });
});

test("a bad unit, cost or header is an error that says what is valid", async () => {
  const metadata = {
    costs: { Credits: "1/s", requests: "1/s", tokens: "1e3/s" },
    call_costs: { credits: 1.5 },
    cost_headers: { credits: "X Used" },
  };
  await assert.rejects(loadPolicy({ ratelimits: { defaults: { metadata } } }), error => {
    assert.ok(error instanceof ConfigError);
    assert.deepEqual(
      error.problems.map(({ path, message }) => `${path}: ${message.slice(0, 38)}`),
      [
        "defaults.metadata.costs.Credits: expected a unit in lower case, such as",
        "defaults.metadata.costs.requests: expected a unit in lower case, such as",
        'defaults.metadata.costs.tokens: "1e3/s" is not a rate; write <count>/<',
        "defaults.metadata.call_costs.credits: expected a whole number, found 1.5",
        "defaults.metadata.cost_headers.credits: expected the name of a response header",
      ],
    );
    return true;
  });
});

test("the smallest and the largest factor of the adaptive rate are compared after all layers are merged", async () => {
  const overrides = { aimd: "max_multiplier:0.2" };
  const { ratelimits } = await loadPolicy({ ratelimits: { aimd: { min_multiplier: 0.1 } }, overrides });
  assert.deepEqual([ratelimits.resolved.aimd.minMultiplier, ratelimits.resolved.aimd.maxMultiplier], [0.1, 0.2]);
  await assert.rejects(loadPolicy({ overrides: { aimd: "min_multiplier:0.5,max_multiplier:0.2" } }), {
    message: "--aimd: aimd.min_multiplier: min_multiplier 0.5 must not be above max_multiplier 0.2",
  });
  await assert.rejects(loadPolicy({ ratelimits: { extends: "none" }, overrides }), {
    message: "--aimd: aimd.max_multiplier: min_multiplier 0.3 must not be above max_multiplier 0.2",
  });
});
