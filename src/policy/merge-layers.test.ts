import assert from "node:assert/strict";
import { test } from "node:test";
import { loadPolicy, type PolicySources } from "./load.ts";
import { ROLES } from "./roles.ts";

async function failMax(sources: PolicySources, host = "unlisted.example") {
  const { resolved } = (await loadPolicy(sources)).breakers;
  return ROLES.map(role => resolved.circuit(host, role).failMax);
}

test("a number in defaults of the breakers replaces the numbers that weaker layers have for the roles", async () => {
  assert.deepEqual(await failMax({}), [5, 4, 3]);
  assert.deepEqual(await failMax({ breakers: { defaults: { fail_max: 9 } } }), [9, 9, 9]);
  assert.deepEqual(await failMax({ overrides: { breaker: ["defaults=fail_max:9"] } }), [9, 9, 9]);
  const roles = { metadata: { fail_max: 7 } };
  assert.deepEqual(await failMax({ breakers: { defaults: { roles } } }), [7, 4, 3]);
  assert.deepEqual(await failMax({ breakers: { defaults: { fail_max: 9, roles } } }), [7, 9, 9]);
  const overrides = { breaker: ["defaults:metadata=fail_max:8"] };
  assert.deepEqual(await failMax({ breakers: { defaults: { fail_max: 9 } }, overrides }), [8, 9, 9]);
});

test("a number in defaults of the breakers keeps the other numbers of the roles, and those of listed hosts", async () => {
  const sources = { breakers: { defaults: { fail_max: 9 } } };
  const { resolved } = (await loadPolicy(sources)).breakers;
  assert.deepEqual(
    ROLES.map(role => resolved.circuit("unlisted.example", role).resetUs / 1e6),
    [45, 60, 120],
  );
  assert.deepEqual(await failMax(sources, "zenodo.org"), await failMax({}, "zenodo.org"));
});
