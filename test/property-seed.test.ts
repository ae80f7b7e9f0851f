import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PROPERTY_SEED_VARIABLE, propertySeed } from "./property-seed.ts";

test("without a wish the seed of the properties is always the same", () => {
  assert.equal(propertySeed(undefined), propertySeed(""));
  assert.equal(propertySeed("-7"), -7);
});

test("a wish for a random seed draws one that can be passed again", () => {
  const seed = propertySeed("random");
  assert.equal(propertySeed(String(seed)), seed);
});

test("a seed that is no integer of 32 bits is refused with what is valid", () => {
  for (const wish of ["x", "1.5", "4294967296"])
    assert.throws(
      () => propertySeed(wish),
      new RegExp(`${PROPERTY_SEED_VARIABLE} must be an integer of 32 bits or "random"`),
    );
});

test("properties that the test command runs draw from the seed of the run", () => {
  const seed = process.env[PROPERTY_SEED_VARIABLE];
  // A file that is run alone draws anew.
  assert.equal(fc.readConfigureGlobal().seed, seed === undefined ? undefined : Number(seed));
});
