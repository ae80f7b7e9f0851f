import assert from "node:assert/strict";
import { test } from "node:test";
import { type LoadedPolicy, loadPolicy } from "./load.ts";

const limits = (rates: string) => ({ metadata: { rates } });
const role = "metadata";

async function policyOf(): Promise<LoadedPolicy> {
  const fields = { query: { mailto: "{mailto}" }, headers: { "x-key": "{A_KEY}" } };
  return loadPolicy({
    env: { A_KEY: "the-key-of-a-test" },
    mailto: "you@example.org",
    ratelimits: {
      extends: "none",
      hosts: {
        "a.example": { ...limits("1/SECOND"), with: { mailto: limits("2/SECOND"), A_KEY: limits("3/SECOND") } },
        "127.0.0.1": { ...limits("1/SECOND"), with: { A_KEY: limits("3/SECOND") } },
      },
      services: {
        s: { members: ["b.example/Api"], ...limits("4/SECOND"), with: { A_KEY: limits("5/SECOND") } },
        each: { per_host: true, ...limits("100/SECOND") },
      },
    },
    identities: {
      extends: "none",
      hosts: { "a.example": fields, "127.0.0.1": fields },
      services: { s: { headers: { "x-key": "{A_KEY}" } } },
    },
  });
}

test("the keys that a request carries select its limits; without that fact, those that https sends", async () => {
  const { resolved } = (await policyOf()).ratelimits;
  const nameOf = (sent?: readonly string[]) => resolved.route("a.example", role, undefined, sent && new Set(sent)).name;
  assert.equal(nameOf(), "a.example with mailto + A_KEY");
  assert.equal(nameOf(["A_KEY", "mailto", "ANOTHER"]), "a.example with mailto + A_KEY");
  assert.equal(nameOf(["mailto"]), "a.example with mailto");
  assert.equal(nameOf(["A_KEY"]), "a.example with A_KEY");
  assert.equal(nameOf([]), "a.example");
  for (const sent of [["mailto"], [], ["A_KEY", "mailto"]] as const) {
    const tiers = ["mailto", "A_KEY"].filter(name => new Set<string>(sent).has(name));
    const suffix = tiers.length === 0 ? "" : ` with ${tiers.join(" + ")}`;
    const route = resolved.serviceRoute("each", "a.example", role, undefined, new Set(sent));
    assert.equal(route?.name, `service each:a.example${suffix}`);
  }
});

test("what a request carries decides also where the identification depends on the path", async () => {
  const { resolved } = (await policyOf()).ratelimits;
  const nameOf = (path: string, sent?: readonly string[]) =>
    resolved.route("b.example", role, path, sent && new Set(sent)).name;
  for (const path of ["/Api/x", "/api/x"]) {
    assert.equal(nameOf(path, ["A_KEY"]), "service s with A_KEY");
    assert.equal(nameOf(path, []), "service s");
  }
  assert.equal(nameOf("/Api/x"), "service s with A_KEY");
  assert.equal(nameOf("/api/x"), "service s");
});

test("the entries of a host are those of all keys, of none, and of what http sends", async () => {
  const { resolved } = (await policyOf()).ratelimits;
  assert.deepEqual(
    resolved.entries.map(({ name }) => name),
    [
      undefined,
      "a.example",
      "a.example with mailto + A_KEY",
      "a.example with mailto",
      "127.0.0.1",
      "127.0.0.1 with A_KEY",
      "service s",
      "service s with A_KEY",
      "service each",
    ],
  );
});

test("the budget of each set of keys has a route by its name, and counts places with these keys", async () => {
  const { resolved } = (await policyOf()).ratelimits;
  for (const name of ["a.example", "a.example with mailto", "a.example with A_KEY", "a.example with mailto + A_KEY"]) {
    assert.equal(resolved.routeByName(name, role)?.name, name);
    const places = resolved.placesOf(name, role);
    assert.ok(places.length > 0, name);
    for (const { host, path, sentKeys } of places) assert.equal(resolved.route(host, role, path, sentKeys).name, name);
  }
  assert.notEqual(resolved.routeByName("a.example with ANOTHER", role)?.name, "a.example with ANOTHER");
});
