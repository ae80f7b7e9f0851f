import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { compileShippedPolicy } from "../../scripts/shipped-policy.ts";
import { breakersSchema } from "./breaker-schema.ts";
import { identitiesSchema } from "./identity-schema.ts";
import { ratelimitsSchema } from "./ratelimit-schema.ts";
import { isShippedSource, type ShippedFile, shippedValues } from "./shipped-policy.ts";
import { problemsOf } from "./validation.ts";

test("the compiled policy has every value of the shipped files", () => {
  const compiled = JSON.parse(readFileSync(new URL("./shipped-policy.json", import.meta.url), "utf8"));
  assert.deepEqual(compiled, JSON.parse(JSON.stringify(compileShippedPolicy())), "run npm run schemas");
});

test("the shipped files are valid, so that programs need not check them", () => {
  const schemas = { ratelimits: ratelimitsSchema, breakers: breakersSchema, identities: identitiesSchema };
  for (const [key, schema] of Object.entries(schemas)) {
    const values = shippedValues(key as ShippedFile);
    assert.ok(values.length > 10);
    assert.deepEqual(problemsOf(schema, values, key), []);
  }
});

test("a shipped value names its file and line", () => {
  const [{ where = "" } = {}] = shippedValues("ratelimits");
  assert.match(where, /^ratelimits\.yaml \(shipped\):\d+$/);
  assert.ok(isShippedSource(where));
  assert.ok(!isShippedSource("ratelimits.yaml:1"));
});
