import assert from "node:assert/strict";
import { test } from "node:test";
import { RunCounts } from "./run-counts.ts";

const learned = (key: string, old: string, announced: string, source = "X-RateLimit") =>
  ({ event_type: "limit_learned", key, role: "metadata", what: "rate", old, new: announced, source }) as const;

test("a limit that a server announces several times is one, from the policy's to the last announced", () => {
  const counts = new RunCounts();
  counts.listener(learned("api.example.org", "10/SECOND", "5/SECOND"));
  counts.listener(learned("api.example.org", "5/SECOND", "3/SECOND"));
  counts.listener(learned("api.example.org", "3/SECOND", "10/SECOND", "lapsed"));
  assert.deepEqual(counts.learnedLimits, [
    { key: "api.example.org", role: "metadata", old: "10/SECOND", new: "3/SECOND", source: "X-RateLimit" },
  ]);
});

test("at most 100 announced limits are kept", () => {
  const counts = new RunCounts();
  for (let host = 0; host < 150; host += 1) counts.listener(learned(`host-${host}.example`, "10/SECOND", "1/SECOND"));
  assert.equal(counts.learnedLimits.length, 100);
});
