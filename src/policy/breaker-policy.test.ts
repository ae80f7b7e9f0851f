import assert from "node:assert/strict";
import { test } from "node:test";
import { breakerPoliciesFrom } from "./breaker-policy.ts";

test("a resolver has its own numbers, then the defaults, then the built-in ones; growth stops at the cap", () => {
  const { resolver, circuit } = breakerPoliciesFrom(
    { defaults: { fail_max: 7 }, resolvers: { lov: { reset_timeout_s: 45 } } },
    "test",
  );
  const numbers = (name: string) => [resolver(name).failMax, resolver(name).resetUs / 1e6, resolver(name).trialCalls];
  assert.deepEqual(numbers("lov"), [7, 45, 1]);
  assert.deepEqual(numbers("other"), [7, 60, 1]);
  assert.equal(breakerPoliciesFrom({}, "test").resolver("x").failMax, 5);
  assert.equal(resolver("lov").resetCapUs, 900e6);
  assert.equal(circuit("a.example", "metadata").resetCapUs, 900e6);
});

test("the mode of a host wins over the top-level mode", () => {
  const { isShadow } = breakerPoliciesFrom({ mode: "shadow", hosts: { "a.example": { mode: "enforce" } } }, "test");
  assert.deepEqual([isShadow("a.example"), isShadow("b.example")], [false, true]);
});

test("a host with the name of an object's own method is not a listed host", () => {
  const { circuit, retryAfterCapMs, isShadow } = breakerPoliciesFrom({}, "test");
  assert.equal(circuit("constructor", "metadata").failMax, 5);
  assert.deepEqual([retryAfterCapMs("constructor"), isShadow("constructor")], [900_000, false]);
});
