import assert from "node:assert/strict";
import { test } from "node:test";
import { type AimdPolicy, nextMultiplier } from "./aimd.ts";

const policy: AimdPolicy = {
  enabled: true,
  windowUs: 60e6,
  highRatio: 0.05,
  increase: 0.05,
  decrease: 0.2,
  minMultiplier: 0.3,
  maxMultiplier: 1,
};

test("windows with too many 429s slow a key down to min_multiplier", () => {
  const steps: number[] = [1];
  for (let i = 0; i < 7; i += 1) {
    steps.push(nextMultiplier(policy, steps.at(-1) as number, { calls: 100, throttled: 5, used: 0.2 }));
  }
  assert.deepEqual(steps, [1, 0.8, 0.64, 0.512, 0.41, 0.328, 0.3, 0.3]);
});

test("one 429 below the ratio changes nothing", () => {
  assert.equal(nextMultiplier(policy, 1, { calls: 100, throttled: 4, used: 1 }), 1);
  assert.equal(nextMultiplier(policy, 0.5, { calls: 100, throttled: 4, used: 1 }), 0.5);
});

test("the ratio is compared exactly, without rounding", () => {
  const ratio = { ...policy, highRatio: 0.07 };
  assert.equal(nextMultiplier(ratio, 1, { calls: 100, throttled: 7, used: 0.2 }), 0.8);
});

test("fewer than ten calls change nothing", () => {
  assert.equal(nextMultiplier(policy, 1, { calls: 9, throttled: 9, used: 0.1 }), 1);
  assert.equal(nextMultiplier(policy, 1, { calls: 10, throttled: 1, used: 0.1 }), 0.8);
});

test("a window without 429s that used half of the limits speeds a key up to max_multiplier", () => {
  assert.equal(nextMultiplier(policy, 0.8, { calls: 300, throttled: 0, used: 0.5 }), 0.85);
  assert.equal(nextMultiplier(policy, 0.8, { calls: 299, throttled: 0, used: 0.49 }), 0.8);
  assert.equal(nextMultiplier(policy, 0.98, { calls: 600, throttled: 0, used: 1 }), 1);
});

test("a window without calls changes nothing", () => {
  assert.equal(nextMultiplier(policy, 0.8, { calls: 0, throttled: 0, used: 1 }), 0.8);
});
