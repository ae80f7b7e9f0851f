import assert from "node:assert/strict";
import { test } from "node:test";
import { DeadlineExceededError } from "../../errors.ts";
import { outcomeOfAbort } from "./abort-outcome.ts";

const deadline = new DeadlineExceededError({
  host: "a.example",
  role: "metadata",
  deadlineMs: 1000,
  attempts: 1,
  waitedMs: 0,
});

test("a host that was silent for half of the deadline has failed", () => {
  assert.deepEqual(outcomeOfAbort(deadline, 500), { kind: "failure", cause: "network", throttled: false });
  assert.deepEqual(outcomeOfAbort(deadline, 499), { kind: "neutral" });
});

test("an abort before anything was written, or for another reason, is neutral", () => {
  assert.deepEqual(outcomeOfAbort(deadline, undefined), { kind: "neutral" });
  assert.deepEqual(outcomeOfAbort(new Error("aborted"), 5000), { kind: "neutral" });
});
