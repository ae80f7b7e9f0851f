import assert from "node:assert/strict";
import { test } from "node:test";
import { NO_WAIT } from "../limiter/granted-wait.ts";
import { CallRecord } from "./call-record.ts";

function waits({ waitedMs, attemptWaitMs }: CallRecord) {
  return { waitedMs, attemptWaitMs };
}

test("a leader that leaves during the jitter keeps its wait, which counts as the wait of the attempt that follows", () => {
  const [request, leader, follower] = [new CallRecord(), new CallRecord(), new CallRecord()];
  request.creditedCall = leader;
  request.queued(0);
  request.granted({ ...NO_WAIT, waitedMs: 2000 });
  request.handOver(follower, 2_050_000);
  request.tried(100);
  assert.deepEqual(
    [waits(leader), waits(follower)],
    [
      { waitedMs: 2000, attemptWaitMs: 2000 },
      { waitedMs: 100, attemptWaitMs: 100 },
    ],
  );
});

test("a wait whose grant was lost during the jitter stays a wait without an attempt when the leader leaves later", () => {
  const [request, leader, follower] = [new CallRecord(), new CallRecord(), new CallRecord()];
  request.creditedCall = leader;
  request.queued(0);
  request.granted({ ...NO_WAIT, waitedMs: 2000 });
  request.jitterLost(100);
  request.queued(2_100_000);
  request.handOver(follower, 2_400_000);
  assert.deepEqual(waits(leader), { waitedMs: 2400, attemptWaitMs: 300 });
});
