import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRates } from "../../core/limits/rate.ts";
import type { HubEvent } from "../../http/hub-options.ts";
import { limitPoliciesFrom } from "../../policy/limits.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { FastestSchedule, fastestUs } from "./fastest-schedule.ts";

test("the least time of a number of requests obeys every window", () => {
  assert.equal(fastestUs(0, parseRates("1/SECOND")), 0);
  assert.equal(fastestUs(1, parseRates("1/SECOND")), 0);
  assert.equal(fastestUs(10, parseRates("10/SECOND")), 0);
  assert.equal(fastestUs(11, parseRates("10/SECOND")), 1e6);
  assert.equal(fastestUs(13, parseRates("8/SECOND+12/MINUTE")), 60e6);
  assert.equal(fastestUs(100, []), 0);
});

test("the budget that needs longest is the bound, and a shared budget counts all its members", async () => {
  const time = new FakeTime();
  const limits = limitPoliciesFrom(
    {
      hosts: { "a.example": { metadata: { rates: "2/SECOND" } } },
      groups: { g: { members: ["b.example", "c.example"], total: { rates: "1/SECOND" } } },
    },
    "test",
  );
  const fastest = new FastestSchedule(limits, time);
  assert.equal(fastest.bound(), undefined);
  const granted = (key: string, role: "metadata" | "artifact", outcome: "granted" | "refused" = "granted") =>
    fastest.listener({
      event_type: "ratelimit.acquire",
      key,
      role,
      rates: "",
      weight: 1,
      mode: "fail",
      blocked_ms: 0,
      outcome,
    } as HubEvent);
  for (let count = 0; count < 4; count += 1) granted("a.example", "metadata");
  granted("service g", "metadata");
  granted("service g", "artifact");
  granted("service g", "artifact", "refused");
  await time.advance(2500);
  granted("service g", "artifact");
  const bound = fastest.bound();
  assert.deepEqual([bound?.budget, bound?.requests, bound?.rates], ["service g (total)", 3, "1/SECOND"]);
  assert.deepEqual([bound?.fastestMs, bound?.tookMs, bound?.runMs], [2000, 2500, 2500]);
});
