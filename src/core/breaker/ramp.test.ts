import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { advanceRamp, answerRamp, beginRamp, enterRamp, failRamp, leaveRamp, type Ramp, rampAdmits } from "./ramp.ts";

const policy = { trialCalls: 1, maxCalls: 8 };

function enter(ramp: Ramp, ...ids: readonly number[]): Ramp {
  return ids.reduce((next, id) => enterRamp(next, { id, sentUs: 0, expiresUs: 1000 }), ramp);
}

function begun(from = policy): Ramp {
  const ramp = beginRamp(from);
  assert.ok(ramp !== undefined);
  return ramp;
}

function answer(ramp: Ramp, ...ids: readonly number[]): Ramp {
  return ids.reduce((next, id) => answerRamp(next, policy, id) ?? assert.fail("over"), ramp);
}

test("a ramp begins with trial_calls, and doubles when all of them were answered", () => {
  let ramp = begun();
  const limits: number[] = [];
  let id = 0;
  for (let round = 0; round < 3; round += 1) {
    limits.push(ramp.limit);
    const ids = Array.from({ length: ramp.limit }, () => ++id);
    ramp = enter(ramp, ...ids);
    assert.equal(rampAdmits(ramp), false);
    if (round < 2) ramp = answer(ramp, ...ids);
    else assert.equal(answerRamp(answer(ramp, ...ids.slice(1)), policy, ids[0] ?? 0), undefined);
  }
  assert.deepEqual(limits, [1, 2, 4]);
});

test("a failure starts again with trial_calls", () => {
  let ramp = answer(enter(begun(), 1), 1);
  assert.equal(ramp.limit, 2);
  ramp = failRamp(enter(ramp, 2, 3), policy, 2);
  assert.deepEqual(ramp, { limit: 1, answered: 0, calls: [{ id: 3, sentUs: 0, expiresUs: 1000 }] });
});

test("a call that ends without an answer frees its place and raises nothing", () => {
  const ramp = leaveRamp(enter(begun(), 1), 1);
  assert.deepEqual(ramp, begun());
});

test("the answer of a call without a place changes nothing", () => {
  const ramp = enter(begun(), 1);
  assert.equal(answerRamp(ramp, policy, 7), ramp);
  assert.equal(leaveRamp(ramp, 7), ramp);
});

test("a call that is never reported loses its place when its lease ends", () => {
  const ramp = enter(begun(), 1);
  assert.equal(advanceRamp(ramp, 999), ramp);
  assert.equal(rampAdmits(advanceRamp(ramp, 1000)), true);
});

test("there is no ramp where trial_calls reach its end", () => {
  assert.equal(beginRamp({ trialCalls: 8, maxCalls: 8 }), undefined);
});

test("the limit is always trial_calls times a power of two, and the ramp ends after a known number of answers", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 2, max: 200 }), (trialCalls, maxCalls) => {
      const own = { trialCalls, maxCalls };
      let ramp = beginRamp(own);
      let answers = 0;
      while (ramp !== undefined) {
        assert.ok(Number.isInteger(Math.log2(ramp.limit / trialCalls)));
        assert.ok(ramp.limit < maxCalls);
        answers += 1;
        ramp = answerRamp(enter(ramp, answers), own, answers);
      }
      // trial_calls * (1 + 2 + 4 + ...) while the limit is below max_calls.
      let expected = 0;
      for (let limit = trialCalls; limit < maxCalls; limit *= 2) expected += limit;
      assert.equal(answers, expected);
    }),
  );
});
