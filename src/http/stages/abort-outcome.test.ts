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
const failure = { kind: "failure", cause: "network", throttled: false };
const neutral = { kind: "neutral" };

test("a host that was silent for half of the deadline has failed", () => {
  assert.deepEqual(outcomeOfAbort(deadline, { silentMs: 500, timeoutMs: 1000 }), failure);
  assert.deepEqual(outcomeOfAbort(deadline, { silentMs: 499, timeoutMs: 1000 }), neutral);
});

test("a host that was silent for half of the AbortSignal.timeout has failed", () => {
  const { reason } = AbortSignal.abort(new DOMException("aborted due to timeout", "TimeoutError"));
  assert.deepEqual(outcomeOfAbort(reason, { silentMs: 500, timeoutMs: 1000 }), failure);
  assert.deepEqual(outcomeOfAbort(reason, { silentMs: 499, timeoutMs: 1000 }), neutral);
});

test("a request without a connection never reached the host", () => {
  const after = { silentMs: 500, timeoutMs: 1000, isUnreached: true };
  assert.deepEqual(outcomeOfAbort(deadline, after), { ...failure, unreached: true });
  assert.deepEqual(outcomeOfAbort(deadline, { ...after, silentMs: 499 }), neutral);
});

test("an abort for another reason is neutral", () => {
  for (const reason of [new Error("aborted"), "TimeoutError", undefined, AbortSignal.abort().reason])
    assert.deepEqual(outcomeOfAbort(reason, { silentMs: 5000, timeoutMs: 5000 }), neutral);
});
