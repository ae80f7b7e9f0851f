import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { RateLimiter } from "../gate/rate-limiter.ts";
import { ConfigError, createHub } from "../index.ts";
import { loadPolicy, type PolicySources } from "./load.ts";

async function problemsOf(load: () => unknown): Promise<readonly string[]> {
  try {
    await load();
    return [];
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error));
    return error.problems.map(({ where, path, message }) => `${where} ${path} ${message}`);
  }
}

describe("what a program passes is checked as strictly as a file", () => {
  const cases: readonly [string, unknown, RegExp][] = [
    [
      "an unknown override",
      { overrides: { rates: ["a.example:metadata=rates:1/s"] } },
      /^overrides rates unknown option: did you mean rate\?$/,
    ],
    [
      "an override that is no list",
      { overrides: { rate: "a.example:metadata=rates:1/s" } },
      /^overrides rate expected a list of texts, found a string$/,
    ],
    ["overrides that are a list", { overrides: [] }, /^overrides {2}expected an object, found a list$/],
    ["an unknown source", { rateLimits: {} }, /^loadPolicy rateLimits unknown option: did you mean ratelimits\?$/],
    ["limits that are a list", { ratelimits: [] }, /^policy\.ratelimits {2}expected a map .*, found a list$/],
    ["limits that are a number", { ratelimits: 3 }, /found a number$/],
    ["limits that are a Map", { ratelimits: new Map([["hosts", {}]]) }, /found a Map$/],
    [
      "a file without a name",
      { breakers: "" },
      /^loadPolicy breakers expected the path of a YAML file, or an object, found an empty text$/,
    ],
    ["limits that are null", { ratelimits: null }, /found null$/],
    ["breakers that are a list", { breakers: [] }, /^policy\.breakers .* found a list$/],
    ["a Map inside", { ratelimits: { hosts: new Map() } }, /^policy\.ratelimits hosts /],
    [
      "an environment that is a text",
      { env: "PATH" },
      /^env {2}expected an object such as process\.env, found a string$/,
    ],
  ];
  for (const [what, sources, expected] of cases) {
    test(what, async () => {
      const [first = "", ...others] = await problemsOf(() => loadPolicy(sources as PolicySources));
      assert.match(first, expected);
      assert.deepEqual(others, []);
    });
  }

  test("by createHub too", async () => {
    const overrides = { rates: ["a.example:metadata=rates:1/s"] } as object;
    assert.match((await problemsOf(() => createHub({ overrides })))[0] ?? "", /^overrides rates unknown option/);
    const policy = { ratelimits: [] as object };
    assert.match((await problemsOf(() => createHub({ policy })))[0] ?? "", /^policy\.ratelimits .* found a list$/);
  });

  test("by RateLimiter too", async () => {
    for (const limits of [[], 3, null, "x"])
      assert.match(
        (await problemsOf(() => new RateLimiter(limits as object)))[0] ?? "",
        /^RateLimiter {2}expected a map/,
      );
  });
});

describe("large and deep configuration", () => {
  const many = 30_000;
  const entries = <Value>(entryOf: (index: number) => readonly [string, Value]) =>
    Object.fromEntries(Array.from({ length: many }, (_, index) => entryOf(index)));

  test("reports the first 20 problems of each source and their number, whatever is wrong", async () => {
    const range = <Item>(make: (index: number) => Item) => Array.from({ length: 30 }, (_, index) => make(index));
    const mapOf = <Value>(make: (index: number) => readonly [string, Value]) => Object.fromEntries(range(make));
    const hosts = Object.fromEntries(
      range(index => [`a${index}.example`, `A${index}.example`])
        .flat()
        .map(h => [h, {}]),
    );
    const cases: readonly PolicySources[] = [
      { env: { DOCSTOKG_RLIMITS: range(index => `bad${index}`).join(";") } },
      { env: mapOf(index => [`DOCSTOKG_RLIMIT__host${index}`, "1/SECOND"]) },
      { overrides: { rate: range(index => `bad${index}`) } },
      { ratelimits: { hosts } },
      { identities: { services: mapOf(index => [`s${index}`, { query: { a: "b" } }]) } },
      { identities: { hosts: mapOf(index => [`h${index}.example`, { headers: { "X-A": "b", "x-a": "c" } }]) } },
    ];
    for (const sources of cases) {
      const problems = await problemsOf(() => loadPolicy({ env: {}, ...sources }));
      assert.equal(problems.length, 21, JSON.stringify(sources).slice(0, 80));
      assert.match(problems.at(-1) ?? "", /and 10 more problems \(30 in all\)$/);
    }
  });

  test("reports the first 20 problems and the count", async () => {
    const unknown = entries(index => [`metdata${index}`, 1]) as object;
    const problems = await problemsOf(() => loadPolicy({ ratelimits: unknown }));
    assert.equal(problems.length, 21);
    assert.equal(problems.at(-1), "policy.ratelimits  and 29980 more problems (30000 in all)");
  });

  test("of valid entries and paths loads", async () => {
    const members = Array.from({ length: many }, (_, index) => `x.example/p${index}`);
    const hosts = entries(index => [`h${index}.example`, { metadata: { rates: "1/s" } }] as const);
    const { ratelimits } = await loadPolicy({ ratelimits: { hosts, services: { big: { members } } } });
    assert.equal(ratelimits.resolved.route("x.example", "metadata", "/p29999/x").name, "service big");
    assert.equal(ratelimits.resolved.route("h29999.example", "metadata").name, "h29999.example");
  });

  test("that is nested without end is one problem, not a stack overflow", async () => {
    const deep = { hosts: {} as Record<string, unknown> };
    deep.hosts["a.example"] = deep;
    const problems = await problemsOf(() => loadPolicy({ ratelimits: deep as object }));
    assert.match(problems[0] ?? "", /nested more than 12 levels deep$/);
  });
});
