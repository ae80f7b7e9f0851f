import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { FailureWindow, ThrottleEvents } from "./failure-window.ts";

const S = 1_000_000;

test("three failures within ten seconds reach a threshold of three, three within eleven do not", () => {
  const close = new FailureWindow();
  assert.deepEqual(
    [0, 4, 9].map(second => close.add(second * S, 3, 10 * S)),
    [false, false, true],
  );
  const apart = new FailureWindow();
  assert.deepEqual(
    [0, 5, 11].map(second => apart.add(second * S, 3, 10 * S)),
    [false, false, false],
  );
});

test("the count restarts after the threshold was reached", () => {
  const window = new FailureWindow();
  for (const us of [0, 1, 2]) window.add(us, 3, 10 * S);
  assert.equal(window.count(2, 10 * S), 0);
  assert.equal(window.add(3, 3, 10 * S), false);
});

test("a threshold that needs failures which never reached the host applies to this process alone", () => {
  const window = new FailureWindow();
  assert.deepEqual(
    [true, false, false].map(isUnreached => window.add(0, 3, 10 * S, isUnreached)),
    [false, false, "local-only"],
  );
  assert.deepEqual(
    [false, false, false].map(isUnreached => window.add(0, 3, 10 * S, isUnreached)),
    [false, false, true],
  );
});

test("a threshold of one is reached by the first failure", () => {
  assert.equal(new FailureWindow().add(5, 1, 1), true);
});

test("the threshold is reached exactly when a plain count of failures says so", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 40 }),
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 30 }),
      (gaps, threshold, windowUs) => {
        const window = new FailureWindow();
        let times: number[] = [];
        let nowUs = 0;
        for (const gap of gaps) {
          nowUs += gap;
          times.push(nowUs);
          const inside = times.filter(us => us > nowUs - windowUs).length;
          const expected = inside >= threshold;
          assert.equal(window.add(nowUs, threshold, windowUs), expected);
          if (expected) times = [];
          else assert.equal(window.count(nowUs, windowUs), inside);
        }
      },
    ),
    { numRuns: 1000 },
  );
});

test("throttles of permits issued before the newest event belong to it, and a report without a permit never does", () => {
  const events = new ThrottleEvents();
  assert.equal(events.isCounted(1), false);
  events.count(5);
  assert.deepEqual(
    [0, 1, 5, 6].map(permit => events.isCounted(permit)),
    [false, true, true, false],
  );
});

test("two throttles are counted apart exactly when the later request was sent after the earlier event", () => {
  // Each request is sent and answered at distinct instants of one line; every answer is a throttle.
  const schedule = fc
    .array(fc.nat(8), { minLength: 1, maxLength: 30 })
    .map(choices => choices.map(choice => (choice < 5 ? ("send" as const) : ("answer" as const))));
  fc.assert(
    fc.property(schedule, fc.infiniteStream(fc.nat()), (steps, picks) => {
      const events = new ThrottleEvents();
      const inFlight: { readonly permit: number; readonly sentAt: number }[] = [];
      let issued = 0;
      let lastEventAt = -1;
      for (const [at, step] of steps.entries()) {
        if (step === "send") inFlight.push({ permit: ++issued, sentAt: at });
        else if (inFlight.length > 0) {
          const [answered] = inFlight.splice((picks.next().value ?? 0) % inFlight.length, 1);
          if (answered === undefined) continue;
          assert.equal(events.isCounted(answered.permit), answered.sentAt < lastEventAt);
          if (events.isCounted(answered.permit)) continue;
          events.count(issued);
          lastEventAt = at;
        }
      }
    }),
  );
});
