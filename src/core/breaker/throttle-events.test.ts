import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ThrottleEvents } from "./throttle-events.ts";

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
