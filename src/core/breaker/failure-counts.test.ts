import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import {
  type BreakerRecord,
  circuitRecordOf,
  closeCircuit,
  EMPTY_BREAKER_RECORD,
  leaseProbe,
  openCircuit,
} from "./breaker-record.ts";
import { countFailure, countRecentFailure, resetFailureCounts, withoutUnreached } from "./failure-counts.ts";

const S = 1_000_000;
const POLICY = { failMax: 4, resetUs: 60 * S };
const WINDOW = { threshold: 4, windowUs: 60 * S, cooldownMs: 30_000 };
const REACHED = { isThrottled: false, isUnreached: false };
const PROBE = { id: "a 1", expiresUs: 1000 };
const processes = fc.constantFrom("a", "b", "c");

test("a circuit opens exactly when a plain count of the failures that all processes share says so", () => {
  const step = fc.record({
    processId: processes,
    kind: fc.constantFrom("reached", "reached", "unreached", "unreached", "throttled", "success"),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), steps => {
      let record: BreakerRecord = EMPTY_BREAKER_RECORD;
      let since: typeof steps = [];
      for (const [index, { processId, kind }] of steps.entries()) {
        const nowUs = (index + 1) * S;
        const isThrottled = kind === "throttled";
        if (kind === "success") record = resetFailureCounts(record, "metadata");
        else {
          const failure = { processId, isThrottled, isUnreached: kind === "unreached" };
          // Each process has read everything before: no throttle is part of an earlier event.
          record = countFailure(record, "metadata", failure, nowUs - 1, POLICY, nowUs);
        }
        since = kind === "success" ? [] : [...since, { processId, kind }];
        const unreached = since.filter(one => one.kind === "unreached");
        const isConfirmed = new Set(unreached.map(one => one.processId)).size > 1;
        const failures = since.filter(one => one.kind === "reached").length + (isConfirmed ? unreached.length : 0);
        const throttles = since.filter(one => one.kind === "throttled").length;
        const isOpen = Math.max(failures, throttles) >= POLICY.failMax;
        assert.equal(circuitRecordOf(record, "metadata").isClosed, !isOpen);
        if (isOpen) return;
      }
    }),
    { numRuns: 2000 },
  );
});

test("an opened circuit has the reset of its policy, and no failures", () => {
  let record: BreakerRecord = EMPTY_BREAKER_RECORD;
  for (let failure = 1; failure <= POLICY.failMax; failure += 1)
    record = countFailure(record, "metadata", { processId: "a", ...REACHED }, 0, POLICY, failure);
  const { isClosed, untilUs, counts } = circuitRecordOf(record, "metadata");
  assert.deepEqual({ isClosed, untilUs, counts }, { isClosed: false, untilUs: 4 + 60 * S, counts: undefined });
  assert.equal(countFailure(record, "metadata", { processId: "b", ...REACHED }, 0, POLICY, 5), record);
});

test("a circuit opens from the last of its failures on, in whatever order they are reported", () => {
  const failedUs = [10 * S, 40 * S, 30 * S, 20 * S];
  const record = failedUs.reduce(
    (at, oneUs) => countFailure(at, "metadata", { processId: "a", ...REACHED }, 0, POLICY, 50 * S, oneUs),
    EMPTY_BREAKER_RECORD,
  );
  assert.equal(circuitRecordOf(record, "metadata").untilUs, 40 * S + POLICY.resetUs);
});

test("a failure from before the circuit was closed is not counted", () => {
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 50, reopened: 0 }, 1);
  const closed = closeCircuit(leaseProbe(opened, "metadata", PROBE, 1, 60), "metadata", PROBE.id, 70);
  const failed = (nowUs: number, failedUs: number) =>
    countFailure(closed, "metadata", { processId: "a", ...REACHED }, 0, POLICY, nowUs, failedUs);
  assert.equal(failed(80, 65), closed);
  assert.equal(circuitRecordOf(failed(80, 75), "metadata").counts?.reached, 1);
  assert.equal(circuitRecordOf(failed(30, 20), "metadata").counts?.reached, 1, "the clock of the store was set back");
});

test("an instant in the future, left by a clock that was set back, does not make the open time longer", () => {
  let record: BreakerRecord = EMPTY_BREAKER_RECORD;
  for (const nowUs of [3600 * S, 1 * S, 2 * S, 3 * S])
    record = countFailure(record, "metadata", { processId: "a", ...REACHED }, 0, POLICY, nowUs);
  assert.equal(circuitRecordOf(record, "metadata").untilUs, 3 * S + POLICY.resetUs);
});

test("the rolling window counts failures at the time when they happened", () => {
  const reported = (atUs: readonly number[], nowUs: number) =>
    atUs.reduce(
      (record, failedUs) => countRecentFailure(record, { processId: "a", isUnreached: false }, WINDOW, nowUs, failedUs),
      EMPTY_BREAKER_RECORD,
    );
  assert.equal(
    reported([70 * S, 5 * S, 71 * S, 72 * S], 75 * S).serverCooldown.untilUs,
    0,
    "one is outside the window",
  );
  assert.equal(reported([70 * S, 69 * S, 72 * S, 71 * S], 75 * S).serverCooldown.untilUs, 102 * S);
  assert.deepEqual(reported([1 * S, 2 * S, 3 * S, 4 * S], 75 * S), EMPTY_BREAKER_RECORD, "its cooldown is over");
});

test("trial calls of two processes that never reached the host open a half-open circuit again, those of one do not", () => {
  const unreached = { isThrottled: false, isUnreached: true };
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "", { untilUs: 50, reopened: 2 }, 1);
  assert.equal(countFailure(opened, "", { processId: "a", ...unreached }, 0, POLICY, 49), opened);
  let record = opened;
  for (const nowUs of [60, 70, 80])
    record = countFailure(record, "", { processId: "a", ...unreached }, 0, POLICY, nowUs);
  assert.equal(circuitRecordOf(record, "").untilUs, 50);
  record = countFailure(record, "", { processId: "b", ...unreached }, 0, POLICY, 90);
  const { untilUs, reopened, counts } = circuitRecordOf(record, "");
  assert.deepEqual({ untilUs, reopened, counts }, { untilUs: 90 + POLICY.resetUs, reopened: 3, counts: undefined });
});

test("a throttle of a process that had not read the newest one is the same event, its own next one is not", () => {
  const throttle = { isThrottled: true, isUnreached: false };
  const first = countFailure(EMPTY_BREAKER_RECORD, "", { processId: "a", ...throttle }, 0, POLICY, 100);
  assert.equal(countFailure(first, "", { processId: "b", ...throttle }, 0, POLICY, 200), first);
  const known = circuitRecordOf(first, "").counts?.throttleSerial ?? 0;
  const second = countFailure(first, "", { processId: "b", ...throttle }, known, POLICY, 300);
  assert.equal(circuitRecordOf(second, "").counts?.throttles, 2);
  const third = countFailure(second, "", { processId: "b", ...throttle }, known, POLICY, 400);
  assert.equal(circuitRecordOf(third, "").counts?.throttles, 3);
});

test("failures after a success are kept apart from those before it, also at the same instant", () => {
  const failed = (record: BreakerRecord) =>
    countFailure(record, "metadata", { processId: "a", ...REACHED }, 0, POLICY, 100);
  const first = failed(EMPTY_BREAKER_RECORD);
  const reset = resetFailureCounts(first, "metadata");
  assert.equal(resetFailureCounts(reset, "metadata"), reset);
  const since = (record: BreakerRecord) => circuitRecordOf(record, "metadata").counts?.sinceSerial;
  assert.notEqual(since(failed(reset)), since(first));
});

test("the rolling window starts a cooldown exactly when a plain count of the failures that all processes share says so", () => {
  const step = fc.record({ processId: processes, isUnreached: fc.boolean(), afterS: fc.integer({ min: 0, max: 40 }) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), steps => {
      let record: BreakerRecord = EMPTY_BREAKER_RECORD;
      let seen: { readonly atUs: number; readonly processId: string; readonly isUnreached: boolean }[] = [];
      let nowUs = S;
      for (const { processId, isUnreached, afterS } of steps) {
        nowUs += afterS * S;
        seen = [...seen, { atUs: nowUs, processId, isUnreached }].filter(one => nowUs - one.atUs < WINDOW.windowUs);
        const unreached = seen.filter(one => one.isUnreached);
        const isConfirmed = new Set(unreached.map(one => one.processId)).size > 1;
        const failures = seen.length - (isConfirmed ? 0 : unreached.length);
        record = countRecentFailure(record, { processId, isUnreached }, WINDOW, nowUs);
        const isCooling = failures >= WINDOW.threshold;
        assert.equal(record.serverCooldown.untilUs, isCooling ? nowUs + 30 * S : 0);
        assert.equal(record.recentFailures === undefined, isCooling);
        if (isCooling) return;
      }
    }),
    { numRuns: 2000 },
  );
});

test("a success removes what never reached the host from the rolling window", () => {
  const failed = countFailure(
    EMPTY_BREAKER_RECORD,
    "",
    { processId: "a", ...REACHED, isUnreached: true },
    0,
    POLICY,
    1,
  );
  const counted = countRecentFailure(
    countRecentFailure(failed, { processId: "a", isUnreached: true }, WINDOW, 1),
    { processId: "b", isUnreached: false },
    WINDOW,
    2,
  );
  assert.deepEqual(resetFailureCounts(counted, "").recentFailures, [{ atUs: 2, failures: 1 }]);
});

test("a record stays small, however many processes and failures it counts", () => {
  const policy = { ...POLICY, failMax: 1e6 };
  const window = { ...WINDOW, threshold: 1e6 };
  let record: BreakerRecord = EMPTY_BREAKER_RECORD;
  for (let n = 1; n <= 5000; n += 1) {
    const failure = { processId: `process-${n % 100}`, isThrottled: n % 3 === 0, isUnreached: n % 3 === 1 };
    record = countFailure(record, "metadata", failure, 0, policy, n);
    record = countRecentFailure(record, failure, window, n);
  }
  assert.ok(JSON.stringify(record).length < 4096, `${JSON.stringify(record).length} characters`);
});

test("failures that never reached the host are counted by process, those of a ninth process with the last", () => {
  const unreached = (list: readonly string[]) => {
    let record: BreakerRecord = EMPTY_BREAKER_RECORD;
    for (const processId of list) {
      const failure = { processId, isThrottled: false, isUnreached: true };
      record = countFailure(record, "", failure, 0, { ...POLICY, failMax: 100 }, 1);
    }
    return circuitRecordOf(record, "").counts?.unreached.map(({ processId, failures }) => `${processId}${failures}`);
  };
  assert.deepEqual(unreached([..."abcab"]), ["a2", "b2", "c1"]);
  assert.deepEqual(unreached([..."abcdefghijkag"]), ["a2", "b1", "c1", "d1", "e1", "f1", "g2", "h4"]);
});

test("the oldest of 33 instants is joined with the next of the same process, or dropped if there is none", () => {
  const window = { ...WINDOW, threshold: 100 };
  const recent = (first: string, others: string, count: number) => {
    let record: BreakerRecord = EMPTY_BREAKER_RECORD;
    for (let n = 1; n <= count; n += 1)
      record = countRecentFailure(
        record,
        { processId: n === 1 ? first : others, isUnreached: true },
        window,
        40 * S,
        n * S,
      );
    return (record.recentFailures ?? []).map(({ atUs, failures }) => [atUs / S, failures]);
  };
  const single = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => [from + index, 1]);
  assert.deepEqual(recent("a", "a", 32), single(1, 32));
  assert.deepEqual(recent("a", "a", 33), [[1, 2], ...single(3, 33)]);
  assert.deepEqual(recent("a", "b", 33), single(2, 33));
});

test("the instants of the rolling window are in their order, in whatever order they are reported", () => {
  const record = [30, 10, 20].reduce(
    (at, s) => countRecentFailure(at, { processId: "a", isUnreached: false }, WINDOW, 40 * S, s * S),
    EMPTY_BREAKER_RECORD,
  );
  assert.deepEqual(
    record.recentFailures?.map(({ atUs }) => atUs / S),
    [10, 20, 30],
  );
});

test("a trial call fails at the end of the open time or later, and a circuit that was closed was never reopened", () => {
  const unreached = { isThrottled: false, isUnreached: true };
  const opened = openCircuit(EMPTY_BREAKER_RECORD, "", { untilUs: 50, reopened: 2 }, 1);
  const failed = countFailure(opened, "", { processId: "a", ...unreached }, 0, POLICY, 50);
  assert.equal(circuitRecordOf(failed, "").counts?.unreached.length, 1);
  let record: BreakerRecord = EMPTY_BREAKER_RECORD;
  for (let n = 1; n <= POLICY.failMax; n += 1)
    record = countFailure(record, "", { processId: "a", ...REACHED }, 0, POLICY, n);
  assert.equal(circuitRecordOf(record, "").reopened, 0);
});

test("a success leaves a rolling window in which every failure reached the host, and removes an empty one", () => {
  const reached = countRecentFailure(EMPTY_BREAKER_RECORD, { processId: "a", isUnreached: false }, WINDOW, 1);
  assert.equal(withoutUnreached(reached), reached);
  const unreached = countRecentFailure(EMPTY_BREAKER_RECORD, { processId: "a", isUnreached: true }, WINDOW, 1);
  assert.deepEqual(withoutUnreached(unreached), EMPTY_BREAKER_RECORD);
});

test("a cooldown of the rolling window that ends at the instant of the report only clears the failures", () => {
  const record = [1, 2, 3, 4].reduce(
    (at, s) => countRecentFailure(at, { processId: "a", isUnreached: false }, WINDOW, 34 * S, s * S),
    EMPTY_BREAKER_RECORD,
  );
  assert.deepEqual(record, EMPTY_BREAKER_RECORD);
});
