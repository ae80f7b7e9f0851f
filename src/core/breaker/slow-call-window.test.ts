import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { SlowCallWindow } from "./slow-call-window.ts";

const policy = { slowUs: 1000, share: 0.5, minCalls: 4, windowUs: 10_000 };

test("too many slow calls are noticed when there are enough calls", () => {
  const window = new SlowCallWindow();
  assert.deepEqual(
    [1001, 1001, 1001, 1].map(tookUs => window.add(0, tookUs, policy)),
    [false, false, false, true],
  );
  // The window is cleared.
  assert.equal(window.add(1, 9999, policy), false);
});

test("a call that takes exactly slow_call_ms is not slow", () => {
  const window = new SlowCallWindow();
  for (let call = 0; call < 100; call += 1) assert.equal(window.add(call, 1000, policy), false);
});

test("exactly the share of slow calls is too many, for every share in whole percent", () => {
  for (let percent = 1; percent <= 100; percent += 1) {
    const window = new SlowCallWindow();
    const exact = { ...policy, share: percent / 100, minCalls: 100 };
    const decisions = Array.from({ length: 100 }, (_, call) => window.add(0, call < percent ? 2000 : 1, exact));
    assert.equal(decisions.at(-1), true, `${percent} of 100`);
  }
});

test("calls before the window do not count", () => {
  const window = new SlowCallWindow();
  for (let call = 0; call < 3; call += 1) window.add(0, 5000, policy);
  assert.equal(window.add(10_000, 5000, policy), false);
});

test("calls before a longer window do not count after a reload either", () => {
  const window = new SlowCallWindow();
  for (let call = 0; call < 3; call += 1) window.add(1_000_000, 5000, policy);
  const longer = { ...policy, windowUs: 60_000 };
  assert.equal(window.isEmpty(1_010_000, longer.windowUs), false);
  assert.equal(window.isEmpty(1_066_000, longer.windowUs), true);
  assert.equal(window.add(1_066_000, 5000, longer), false);
});

test("the decision is that of a plain count over the parts of the window", () => {
  const call = fc.record({ afterUs: fc.nat({ max: 3000 }), tookUs: fc.constantFrom(1, 2000) });
  fc.assert(
    fc.property(fc.array(call, { maxLength: 60 }), calls => {
      const window = new SlowCallWindow();
      let seen: { readonly part: number; readonly isSlow: boolean }[] = [];
      let nowUs = 0;
      for (const { afterUs, tookUs } of calls) {
        nowUs += afterUs;
        const part = Math.floor(nowUs / 1000);
        seen = [...seen, { part, isSlow: tookUs > 1000 }].filter(one => one.part > part - 10);
        const isTooSlow = seen.length >= 4 && seen.filter(({ isSlow }) => isSlow).length * 2 >= seen.length;
        assert.equal(window.add(nowUs, tookUs, policy), isTooSlow);
        if (isTooSlow) seen = [];
      }
    }),
  );
});
