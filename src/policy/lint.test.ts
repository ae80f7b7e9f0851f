import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { BreakersOptions } from "./breaker-options.ts";
import { lintPolicy } from "./lint.ts";
import { loadPolicy, type PolicySources } from "./load.ts";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "docstokg-lint-"));
});
after(() => rm(folder, { recursive: true }));

const NOW_MS = Date.UTC(2026, 10, 16);

async function found(sources: PolicySources, rule: string): Promise<readonly string[]> {
  return lintPolicy(await loadPolicy(sources), NOW_MS)
    .filter(finding => finding.rule === rule)
    .map(({ message }) => message);
}

async function yaml(text: string): Promise<string> {
  const file = join(folder, "mine.yaml");
  await writeFile(file, text);
  return file;
}

describe("limits that are looser than shipped are reported with the documented number", () => {
  test("a raised role and total", async () => {
    const overrides = { rate: ["api.crossref.org:metadata=rates:50/SECOND", "api.crossref.org:total=rates:50/SECOND"] };
    const [first = ""] = await found({ overrides }, "looser-than-shipped");
    assert.match(
      first,
      /^api\.crossref\.org \(metadata\): looser than the shipped limit 4\/SECOND \(a fifth below the public 5\/s; .*\) of api\.crossref\.org metadata; the limits of api\.crossref\.org apply: 50\/SECOND/,
    );
  });

  test("a path that is taken out of a shipped service", async () => {
    const services = { mine: { members: ["web.archive.org/cdx/search"] } };
    const [first = ""] = await found({ ratelimits: { services } }, "looser-than-shipped");
    assert.match(first, /^web\.archive\.org\/cdx\/search \(metadata\): looser than the shipped limit 1\/3SECOND /);
  });

  test("a lower guard, a higher cap, looser defaults", async () => {
    for (const rate of [
      "service:arxiv:total=guard_ms:0",
      "service:doi:total=max_concurrent:9",
      "defaults:metadata=rates:11/SECOND",
    ])
      assert.ok((await found({ overrides: { rate: [rate] } }, "looser-than-shipped")).length > 0, rate);
  });

  test("slots that processes no longer share", async () => {
    const hosts = { "api.crossref.org": { total: { shared: false } } };
    const [first = "", ...others] = await found({ ratelimits: { hosts } }, "looser-than-shipped");
    assert.match(
      first,
      /^api\.crossref\.org \(metadata\): looser than the shipped limit max_concurrent 1 over all processes \(public pool .*; 5\/SECOND \+ max_concurrent 1$/,
    );
    assert.deepEqual(others, []);
  });

  test("a guard that makes the limit looser is named, because the rates are the same", async () => {
    const defaults = { metadata: { guard_ms: 5 } };
    const [first = ""] = await found({ ratelimits: { defaults } }, "looser-than-shipped");
    assert.match(first, /: looser than the shipped limit 10\/SECOND with guard_ms 25 \(.*\) of defaults metadata; /);
    assert.match(
      first,
      /; the limits of defaults apply: 10\/SECOND \+ 5000\/HOUR with guard_ms 5 \+ max_concurrent 100$/,
    );
  });

  test("with the source of the field and of the tier that is looser", async () => {
    const env = { NCBI_API_KEY: "0123456789" };
    const rate = ["service:ncbi:total=20/SECOND", "service:ncbi:metadata=20/SECOND"];
    const messages = await found({ env, overrides: { rate } }, "looser-than-shipped");
    const tier = messages.find(message => message.includes("of service ncbi with NCBI_API_KEY total;"));
    assert.match(tier ?? "", /the shipped limit 10\/SECOND \(10\/s with a key/);
    const cap = ["api.openalex.org:total=max_concurrent:20"];
    const [first = ""] = await found(
      { env: { OPENALEX_API_KEY: "x" }, overrides: { rate: cap } },
      "looser-than-shipped",
    );
    assert.match(first, /the shipped limit max_concurrent 8 \(our choice, 2026-11\) of api\.openalex\.org with /);
  });

  test("HEAD requests that no longer count, and a budget for each partition", async () => {
    for (const [rate, expected] of [
      [
        "api.crossref.org:metadata=count_head:false",
        /^api\.crossref\.org metadata: looser than the shipped count_head true \(.*HEAD/,
      ],
      ["zenodo.org:landing=per:partition", /^zenodo\.org \(landing\): .* 1\/5SECOND .* for each partition; /],
    ] as const) {
      const [first = "", ...others] = await found({ overrides: { rate: [rate] } }, "looser-than-shipped");
      assert.match(first, expected);
      assert.deepEqual(others, []);
    }
  });

  test("more requests in flight", async () => {
    assert.deepEqual(await found({ env: { DOCSTOKG_MAX_INFLIGHT: "501" } }, "looser-than-shipped"), [
      "DOCSTOKG_MAX_INFLIGHT: global.max_inflight is 501; the shipped global.max_inflight is 500 (our choice; the original plan, 2026-11)",
    ]);
    assert.deepEqual(await found({ env: { DOCSTOKG_MAX_INFLIGHT: "499" } }, "looser-than-shipped"), []);
  });

  test("a shorter penalty than the provider documents, of a service, a host, a member or the defaults", async () => {
    for (const [breaker, expected] of [
      [
        "api.osf.io=retry_after_cap:10",
        /hosts\.api\.osf\.io\.retry_after_cap_s is 10; the shipped .* is 3600 \(.*developer\.osf\.io/,
      ],
      ["service:wayback-cdx=retry_after_cap:10", /the shipped services\.wayback-cdx\.retry_after_cap_s is 3600 /],
      ["web.archive.org=retry_after_cap:10", /the shipped services\.wayback-replay\.retry_after_cap_s is 3600 /],
      ["defaults=retry_after_cap:899", /the shipped defaults\.retry_after_cap_s is 900 /],
    ] as const) {
      const [first = "", ...others] = await found({ overrides: { breaker: [breaker] } }, "looser-than-shipped");
      assert.match(first, expected);
      assert.deepEqual(others, []);
    }
    const stricter = ["api.osf.io=retry_after_cap:7200", "mine.example=retry_after_cap:1"];
    assert.deepEqual(await found({ overrides: { breaker: stricter } }, "looser-than-shipped"), []);
  });

  test("circuits that open later or close earlier, and failures that no longer count", async () => {
    const defaults: readonly BreakersOptions["defaults"][] = [
      { roles: { metadata: { fail_max: 6 } } },
      { roles: { artifact: { reset_timeout_s: 119 } } },
      { classify: { failure_statuses: [500] } },
      { classify: { neutral_statuses: [404, 503] } },
      { half_open: { trial_calls: { artifact: 3 } } },
      { throttles: [] },
      { per: "partition" },
    ];
    const advanced: readonly BreakersOptions["advanced"][] = [
      { rolling_window: { enabled: false } },
      { rolling_window: { threshold_failures: 7 } },
      { rolling_window: { cooldown_s: 59 } },
      { adaptive_reset: { enabled: false } },
      { ramp_up: { enabled: false } },
    ];
    for (const breakers of [
      ...defaults.map(each => ({ defaults: each })),
      ...advanced.map(each => ({ advanced: each })),
    ])
      assert.equal((await found({ breakers }, "looser-than-shipped")).length, 1, JSON.stringify(breakers));
    for (const breakers of [
      { defaults: { roles: { metadata: { fail_max: 4, reset_timeout_s: 46 } } } },
      { services: { arxiv: { fail_max: 2 } }, hosts: { "mine.example": { fail_max: 99, per: "partition" as const } } },
      { advanced: { rolling_window: { threshold_failures: 5, cooldown_s: 61 } } },
    ])
      assert.deepEqual(await found({ breakers }, "looser-than-shipped"), []);
  });

  test("a member or a port that gets a budget of its own is counted apart", async () => {
    const hosts = { "europepmc.org": { metadata: { max_delay_ms: 5000 } } };
    const [apart = ""] = await found({ ratelimits: { hosts } }, "counted-apart");
    assert.match(apart, /^service europepmc metadata: requests that share the shipped 5\/SECOND .* counted apart: /);
    assert.equal(
      (await found({ overrides: { rate: ["zenodo.org:80:metadata=rates:2/5SECOND"] } }, "counted-apart")).length,
      1,
    );
  });

  test("but not stricter limits, new hosts and members, or a host that nothing is shipped for", async () => {
    const ratelimits = {
      hosts: { "mine.example": { metadata: { rates: "500/s" } } },
      services: { arxiv: { members: ["mirror.example"], total: { rates: "1/9SECOND+1000/DAY" } } },
    };
    for (const rule of ["looser-than-shipped", "counted-apart", "orphaned-member"])
      assert.deepEqual(await found({ ratelimits }, rule), []);
  });
});

test("members that lose their service by !replace are reported, each with the limits that it has now", async () => {
  const ratelimits = await yaml("services:\n  doi: { members: !replace [doi.org] }\n");
  assert.deepEqual(await found({ ratelimits }, "orphaned-member"), [
    "dx.doi.org is no longer a member of service doi: the limits of the defaults apply to it",
    "www.doi.org is no longer a member of service doi: the limits of the defaults apply to it",
  ]);
  const suffixes = await yaml("services:\n  hal: { members: !replace [hal.science] }\n");
  assert.deepEqual(await found({ ratelimits: suffixes }, "orphaned-member"), [
    "*.hal.science is no longer a member of service hal: the limits of the defaults apply to it",
    "*.archives-ouvertes.fr is no longer a member of service hal: the limits of the defaults apply to it",
  ]);
});

test("overrides without effect are reported: repeated values, paths that a host's entry does not reach, unused breakers", async () => {
  const rate = ["web.archive.org:metadata=rates:1/9SECOND", "api.crossref.org:metadata=max_delay_ms:1000"];
  const [dead = "", ...others] = await found({ overrides: { rate } }, "dead-override");
  assert.match(
    dead,
    /^--rate: hosts\.api\.crossref\.org\.metadata\.max_delay_ms has no effect: ratelimits\.yaml \(shipped\):\d+ sets the same value$/,
  );
  assert.deepEqual(others, []);
  assert.deepEqual(await found({ overrides: { rate } }, "partial-override"), [
    "--rate: hosts.web.archive.org does not change web.archive.org/cdx, web.archive.org/web/timemap (service:wayback-cdx)",
  ]);
  assert.deepEqual(await found({ overrides: { breaker: ["defaults=fail_max:3"] } }, "dead-override"), []);
  const five = { fail_max: 5 };
  const roles = { metadata: five, landing: five, artifact: five };
  const [masked = ""] = await found({ breakers: { defaults: { fail_max: 3, roles } } }, "dead-override");
  assert.match(
    masked,
    /^policy\.breakers: defaults\.fail_max has no effect on hosts: defaults\.roles\.<role>\.fail_max decides /,
  );
  assert.deepEqual(await found({ overrides: { breaker: ["defaults:metadata=fail_max:3"] } }, "dead-override"), []);
  const breakers = { services: { nothing: { fail_max: 3 } } };
  assert.deepEqual(await found({ breakers }, "unused-breaker"), [
    "policy.breakers: services.nothing has no effect: ratelimits.yaml has no service of that name",
  ]);
});

test("services that differ only in case, shadow mode, a file that stands alone and tiers that nothing sends are reported", async () => {
  const services = { Arxiv: { members: ["a.example"] } };
  assert.deepEqual(await found({ ratelimits: { services } }, "duplicate-service"), [
    "services arxiv and Arxiv differ only in case: are they one service?",
  ]);
  assert.deepEqual(await found({ breakers: { mode: "shadow" } }, "shadow-mode"), [
    "policy.breakers: breakers: breakers of all hosts only report, because mode is shadow; set mode: enforce to apply them",
  ]);
  assert.equal((await found({ ratelimits: { extends: "none" } }, "extends-none")).length, 1);
  assert.deepEqual(await found({ ratelimits: { extends: "none" } }, "unused-breaker"), []);
  assert.deepEqual(await found({ breakers: { extends: "none" } }, "extends-none"), [
    "extends: none: the shipped breakers of hosts and services do not apply",
  ]);
  const hosts = { "a.example": { with: { MY_KEY: { metadata: { rates: "9/s" } } } } };
  assert.equal((await found({ ratelimits: { hosts } }, "unused-tier")).length, 1);
  const identities = { hosts: { "a.example": { headers: { "x-key": "{MY_KEY}" } } } };
  assert.deepEqual(await found({ ratelimits: { hosts }, identities }, "unused-tier"), []);
});

test("a number whose comment is older than 180 days is reported, with its line", async () => {
  const ratelimits = await yaml(
    "hosts:\n  a.example:\n    metadata: { rates: 1/s } # their page, 2026-05-01\n    landing: { rates: 1/s } # read 2026-06\n",
  );
  assert.deepEqual(
    (await found({ ratelimits }, "stale-number")).filter(message => message.includes("a.example")),
    [
      `${ratelimits}:3: hosts.a.example.metadata.rates: the source of this number is older than 180 days (their page, 2026-05-01); check the number, and update the date in its comment`,
    ],
  );
});

test("a shadow mode that a stronger layer replaces is not reported", async () => {
  const ratelimits = { hosts: { "a.example": { metadata: { mode: "shadow" } } } } as const;
  const overrides = { rate: ["a.example:metadata=mode:enforce"] };
  assert.deepEqual(await found({ ratelimits, overrides }, "shadow-mode"), []);
});

test("an old number and a breaker per partition that a stronger layer replaces are not reported", async () => {
  const ratelimits = await yaml("hosts:\n  a.example:\n    metadata: { rates: 1/s } # their page, 2026-05-01\n");
  const rate = ["a.example:metadata=rates:2/s"];
  const stale = await found({ ratelimits, overrides: { rate } }, "stale-number");
  assert.deepEqual(
    stale.filter(message => message.includes("a.example")),
    [],
  );
  const breakers = { hosts: { "arxiv.org": { per: "partition" } } } as const;
  const breaker = ["host:arxiv.org=per:all"];
  assert.deepEqual(await found({ breakers, overrides: { breaker } }, "looser-than-shipped"), []);
});

test("a key that is set selects its tier, and is no longer offered", async () => {
  const gains = await found({}, "key-gain");
  assert.ok(
    gains.some(message => message.startsWith("service ncbi: NCBI_API_KEY is not set; with it total 10/SECOND")),
  );
  const env = { NCBI_API_KEY: "0123456789", DOCSTOKG_MAILTO: "me@example.org" };
  const left = await found({ env }, "key-gain");
  assert.deepEqual(
    left.filter(message => /ncbi|MAILTO/.test(message)),
    [],
  );
  const { ratelimits } = await loadPolicy({ env });
  const keyOf = (host: string, path?: string) => ratelimits.resolved.route(host, "metadata", path).name;
  assert.equal(keyOf("eutils.ncbi.nlm.nih.gov"), "service ncbi with NCBI_API_KEY");
  assert.equal(keyOf("pubmed.ncbi.nlm.nih.gov"), "service ncbi");
  assert.equal(keyOf("pmc.ncbi.nlm.nih.gov", "/tools/idconv/x"), "service ncbi");
  assert.equal(keyOf("api.crossref.org"), "api.crossref.org with mailto");
});

test("a repeated value is reported as such only if it changes nothing", async () => {
  assert.deepEqual(await found({ ratelimits: { version: 1 }, breakers: { version: 1 } }, "dead-override"), []);
  const rate = ["api.crossref.org:total=5/SECOND"];
  assert.deepEqual(await found({ overrides: { rate } }, "dead-override"), []);
  const [repeated = "", ...others] = await found(
    { env: { DOCSTOKG_RLIMITS: "api.crossref.org:total=5/SECOND" }, overrides: { rate } },
    "dead-override",
  );
  assert.match(repeated, /^--rate: hosts\.api\.crossref\.org\.total\.rates .*: DOCSTOKG_RLIMITS sets the same value$/);
  assert.deepEqual(others, []);
});

test("a list that repeats a weaker layer is reported", async () => {
  const withRates = (...rates: readonly string[]) =>
    found({ ratelimits: { defaults: { metadata: { rates } } } }, "dead-override");
  const [repeated = ""] = await withRates("10/SECOND", "5000/HOUR");
  assert.match(repeated, /^policy\.ratelimits: defaults\.metadata\.rates has no effect: ratelimits\.yaml \(shipped\):/);
  assert.deepEqual(await withRates("10/SECOND", "4000/HOUR"), []);
});

test("the paths that the entry of a host does not change are named, also those of a suffix or of the host without its port", async () => {
  const ratelimits = {
    hosts: {
      "a.example.org": { metadata: { rates: "1/s" } },
      "b.example:8080": { metadata: { rates: "1/s" } },
    },
    services: {
      below: { members: ["*.example.org/api"] },
      part: { members: ["b.example/x", "b.example/y"] },
    },
  };
  assert.deepEqual(await found({ ratelimits }, "partial-override"), [
    "policy.ratelimits: hosts.a.example.org does not change *.example.org/api (service:below)",
    "policy.ratelimits: hosts.b.example:8080 does not change b.example/x, b.example/y (service:part)",
  ]);
});

test("findings name the defaults and suffixes, and no invented host", async () => {
  const [first = ""] = await found({ overrides: { rate: ["defaults:metadata=11/SECOND"] } }, "looser-than-shipped");
  assert.match(
    first,
    /^hosts that are not listed \(metadata\): .* of defaults metadata; the limits of defaults apply: 11/,
  );
  const ratelimits = { services: { hal: { members: { replace: ["hal.science"] } } } };
  const [apart = ""] = await found({ ratelimits }, "counted-apart");
  assert.match(apart, / are counted apart: service hal, \*\.hal\.science, \*\.archives-ouvertes\.fr$/);
  const [looser = ""] = await found({ ratelimits }, "looser-than-shipped");
  assert.match(looser, /^\*\.hal\.science \(metadata\): .*; the limits of \*\.hal\.science apply: /);
});

test("the address of a store without a backend that needs it is reported", async () => {
  const env = { DOCSTOKG_RLIMIT_DSN: "x.db", DOCSTOKG_BREAKER_COOLDOWN_DSN: "redis://u:secret@a.example" };
  assert.deepEqual(await found({ env }, "dead-override"), [
    "DOCSTOKG_RLIMIT_DSN: backend.dsn has no effect: backend.kind is memory, which needs no address",
    "DOCSTOKG_BREAKER_COOLDOWN_DSN: advanced.cooldown_store.dsn has no effect: advanced.cooldown_store.backend is none, which needs no address",
  ]);
  const backends = { DOCSTOKG_RLIMIT_BACKEND: "sqlite", DOCSTOKG_BREAKER_COOLDOWN_BACKEND: "redis" };
  assert.deepEqual(await found({ env: { ...env, ...backends } }, "dead-override"), []);
});

test("the key of a service that has only suffixes counts as sent", async () => {
  const ratelimits = {
    services: { portals: { members: ["*.a.example"], with: { MY_KEY: { metadata: { rates: "none" } } } } },
  };
  const identities = { services: { portals: { headers: { "x-key": "{MY_KEY}" } } } };
  assert.deepEqual(await found({ ratelimits, identities, env: { MY_KEY: "secret" } }, "unused-tier"), []);
  assert.deepEqual(await found({ ratelimits, identities }, "unused-tier"), []);
  assert.equal((await found({ ratelimits }, "unused-tier")).length, 1);
  const gains = await found({ ratelimits, identities }, "key-gain");
  assert.ok(
    gains.includes("service portals: MY_KEY is not set; with it metadata no limit instead of 10/SECOND + 5000/HOUR"),
    gains.join("\n"),
  );
});

test("a stricter breaker of a service that shipped roles keep without effect is reported for each role", async () => {
  const messages = await found({ overrides: { breaker: ["service:wayback-cdx=fail_max:1"] } }, "dead-override");
  assert.deepEqual(
    messages.map(message => message.replace(/breakers\.yaml \(shipped\):\d+/, "shipped")),
    ["metadata", "artifact"].map(
      (role, index) =>
        `--breaker: services.wayback-cdx.fail_max has no effect on ${role}: services.wayback-cdx.roles.${role}.fail_max decides (${3 - index}, shipped); set it too, for example with --breaker service:wayback-cdx:${role}=fail_max:1`,
    ),
  );
  for (const breaker of [
    "service:wayback-cdx=fail_max:9",
    "mine.example=fail_max:1",
    "service:wayback-cdx:metadata=fail_max:1",
  ])
    assert.deepEqual(await found({ overrides: { breaker: [breaker] } }, "dead-override"), [], breaker);
});
