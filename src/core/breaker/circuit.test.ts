import assert from "node:assert/strict";
import { test } from "node:test";
import {
  admits,
  adopt,
  advance,
  type Circuit,
  type CircuitPolicy,
  CLOSED,
  close,
  fail,
  hasFailures,
  longestOpenUs,
  nextAdmissionUs,
  oldestProbe,
  returnProbe,
  sendProbe,
  succeed,
  succeedElsewhere,
  wallDeadlineMs,
} from "./circuit.ts";

const S = 1_000_000;
const policy: CircuitPolicy = {
  failMax: 5,
  resetUs: 60 * S,
  resetCapUs: 900 * S,
  trialCalls: 1,
  successThreshold: 1,
  isAdaptive: false,
};

function failTimes(circuit: Circuit, times: number, nowUs = 0, withPolicy: CircuitPolicy = policy): Circuit {
  let at = circuit;
  for (let i = 0; i < times; i += 1) at = fail(at, withPolicy, at.generation, nowUs, 0);
  return at;
}

function halfOpen(withPolicy: CircuitPolicy = policy): Circuit {
  return advance(failTimes(CLOSED, withPolicy.failMax, 0, withPolicy), withPolicy.resetUs);
}

test("fail_max consecutive failures open a circuit for exactly its reset time", () => {
  assert.equal(failTimes(CLOSED, 4).kind, "closed");
  const open = failTimes(CLOSED, 5);
  assert.deepEqual(open, { kind: "open", generation: 1, untilUs: 60 * S, reopened: 0 });
  assert.equal(admits(advance(open, 60 * S - 1), policy), false);
  assert.equal(admits(advance(open, 60 * S), policy), true);
});

test("a success between failures resets the count", () => {
  const four = failTimes(CLOSED, 4);
  const spared = succeed(four, policy, four.generation);
  assert.equal(failTimes(spared, 4).kind, "closed");
  assert.equal(failTimes(spared, 5).kind, "open");
});

test("throttles are counted apart from failures: only fail_max of one kind open a circuit", () => {
  const throttle = (circuit: Circuit) =>
    fail(circuit, policy, circuit.generation, 0, 0, { isThrottled: true, isUnreached: false });
  let circuit = failTimes(CLOSED, 4);
  for (let event = 0; event < 4; event += 1) circuit = throttle(circuit);
  assert.deepEqual(circuit, { kind: "closed", generation: 0, failures: 4, unreached: 0, throttles: 4 });
  assert.equal(throttle(circuit).kind, "open");
  assert.equal(failTimes(circuit, 1).kind, "open");
  assert.deepEqual(succeed(circuit, policy, 0), CLOSED);
});

test("a success returns the same object for a closed circuit without failures", () => {
  assert.equal(succeed(CLOSED, policy, 0), CLOSED);
});

test("a half-open circuit admits trial_calls probes and no more", () => {
  const two = { ...policy, trialCalls: 2 };
  let circuit = halfOpen(two);
  for (const id of [1, 2]) {
    assert.equal(admits(circuit, two), true);
    circuit = sendProbe(circuit, { id, sentUs: 60 * S, expiresUs: 100 * S });
  }
  assert.equal(admits(circuit, two), false);
});

test("a successful probe closes the circuit, a failed one opens it for a full reset", () => {
  const probing = sendProbe(halfOpen(), { id: 1, sentUs: 60 * S, expiresUs: 100 * S });
  const closed = succeed(probing, policy, probing.generation, 1);
  assert.deepEqual(closed, { kind: "closed", generation: 3, failures: 0, unreached: 0, throttles: 0 });
  const open = fail(probing, policy, probing.generation, 61 * S, 0);
  assert.deepEqual(open, { kind: "open", generation: 3, untilUs: 121 * S, reopened: 1 });
});

test("a probe with a neutral outcome frees its place at once", () => {
  const probing = sendProbe(halfOpen(), { id: 7, sentUs: 60 * S, expiresUs: 100 * S });
  assert.equal(admits(probing, policy), false);
  assert.equal(admits(returnProbe(probing, probing.generation, 7), policy), true);
  assert.equal(admits(returnProbe(probing, probing.generation, 8), policy), false);
});

test("a probe that never reports loses its place when its lease ends", () => {
  const probing = sendProbe(halfOpen(), { id: 1, sentUs: 60 * S, expiresUs: 100 * S });
  assert.equal(admits(advance(probing, 100 * S - 1), policy), false);
  assert.equal(admits(advance(probing, 100 * S), policy), true);
});

test("a result from an older generation changes nothing", () => {
  const open = failTimes(CLOSED, 5);
  const probing = sendProbe(advance(open, 60 * S), { id: 1, sentUs: 60 * S, expiresUs: 100 * S });
  for (const circuit of [open, probing]) {
    assert.equal(succeed(circuit, policy, 0, 1), circuit);
    assert.equal(fail(circuit, policy, 0, 61 * S, 0), circuit);
    assert.equal(returnProbe(circuit, 0, 1), circuit);
  }
});

test("success_threshold above 1 closes only after that many successful probes", () => {
  const threeSuccesses = { ...policy, successThreshold: 2 };
  const first = sendProbe(halfOpen(threeSuccesses), { id: 1, sentUs: 60 * S, expiresUs: 100 * S });
  const once = succeed(first, threeSuccesses, first.generation, 1);
  assert.equal(once.kind, "half-open");
  assert.equal(admits(once, threeSuccesses), true);
  const second = sendProbe(once, { id: 2, sentUs: 60 * S, expiresUs: 100 * S });
  assert.equal(succeed(second, threeSuccesses, second.generation, 2).kind, "closed");
});

test("each failed probe doubles the open time up to the cap, with jitter only added", () => {
  const adaptive = { ...policy, isAdaptive: true };
  const openFor = (random: number) => {
    const times: number[] = [];
    let circuit = failTimes(CLOSED, 5, 0, adaptive);
    let nowUs = 0;
    for (let i = 0; i < 7; i += 1) {
      assert.ok(circuit.kind === "open");
      times.push((circuit.untilUs - nowUs) / S);
      nowUs = circuit.untilUs;
      const probing = advance(circuit, nowUs);
      circuit = fail(probing, adaptive, probing.generation, nowUs, random);
    }
    return times;
  };
  assert.deepEqual(openFor(0), [60, 120, 240, 480, 900, 900, 900]);
  assert.deepEqual(openFor(0.5), [60, 126, 252, 504, 945, 945, 945]);
});

test("without adaptive_reset every open time is the same", () => {
  const probing = halfOpen();
  const open = fail(probing, policy, probing.generation, 60 * S, 0.9);
  assert.ok(open.kind === "open");
  assert.equal(open.untilUs, 120 * S);
});

test("an operator closes a circuit in any state, and calls in flight no longer count", () => {
  for (const circuit of [failTimes(CLOSED, 3), failTimes(CLOSED, 5), halfOpen()]) {
    const closed = close(circuit);
    assert.deepEqual(closed, {
      kind: "closed",
      generation: circuit.generation + 1,
      failures: 0,
      unreached: 0,
      throttles: 0,
    });
    assert.equal(fail(closed, policy, circuit.generation, 0, 0), closed);
  }
  assert.equal(close(CLOSED), CLOSED);
});

const peerRecord = { isClosed: false, untilUs: 60 * S, reopened: 2, probes: [] };

test("a peer record of an open circuit starts a new generation in any state", () => {
  for (const circuit of [CLOSED, failTimes(CLOSED, 5), halfOpen()])
    assert.deepEqual(adopt(circuit, peerRecord, 60 * S - 1), {
      kind: "open",
      generation: circuit.generation + 1,
      untilUs: 60 * S,
      reopened: 2,
    });
});

test("an open circuit keeps how its last call ended when it returns as a record, and loses it with the open time", () => {
  const failure = { isThrottled: false, isUnreached: false, text: "HTTP 503" };
  const opened = fail(failTimes(CLOSED, 4), policy, 0, 0, 0, failure);
  const returned = adopt(opened, peerRecord, 0);
  assert.equal(opened.kind === "open" && opened.lastFailure, "HTTP 503");
  assert.equal(returned.kind === "open" && returned.lastFailure, "HTTP 503");
  assert.ok(!("lastFailure" in advance(returned, 60 * S)));
});

test("a peer record of a closed circuit closes it once, and keeps the failure count of a closed one", () => {
  const isClosed = { ...peerRecord, isClosed: true };
  const three = failTimes(CLOSED, 3);
  assert.equal(adopt(three, isClosed, 0), three);
  assert.deepEqual(adopt(halfOpen(), isClosed, 0), {
    kind: "closed",
    generation: 3,
    failures: 0,
    unreached: 0,
    throttles: 0,
  });
});

test("a peer record whose open time has ended makes the circuit half-open in a new generation", () => {
  const peerProbe = { id: -1, sentUs: 60 * S, expiresUs: 100 * S };
  const ended = { ...peerRecord, probes: [peerProbe] };
  assert.deepEqual(adopt(CLOSED, ended, 60 * S), {
    kind: "half-open",
    generation: 1,
    probes: [peerProbe],
    successes: 0,
    reopened: 2,
  });
});

test("a peer record with an earlier end does not shorten the local open time", () => {
  const open = failTimes(CLOSED, 5, 10 * S);
  for (const nowUs of [59 * S, 70 * S - 1]) assert.equal(adopt(open, peerRecord, nowUs), open);
  assert.deepEqual(adopt(open, peerRecord, 70 * S), {
    kind: "half-open",
    generation: 2,
    probes: [],
    successes: 0,
    reopened: 2,
  });
});

test("a peer record of a half-open circuit keeps local probes and successes and replaces those of peers", () => {
  const threeSuccesses = { ...policy, successThreshold: 3, trialCalls: 3 };
  let circuit = halfOpen(threeSuccesses);
  for (const id of [1, 2, -1, 0]) circuit = sendProbe(circuit, { id, sentUs: 60 * S, expiresUs: 100 * S });
  circuit = succeed(circuit, threeSuccesses, circuit.generation, 1);
  assert.deepEqual(adopt(circuit, { ...peerRecord, probes: [{ id: -2, sentUs: 60 * S, expiresUs: 90 * S }] }, 60 * S), {
    kind: "half-open",
    generation: circuit.generation,
    probes: [
      { id: 2, sentUs: 60 * S, expiresUs: 100 * S },
      { id: -2, sentUs: 60 * S, expiresUs: 90 * S },
    ],
    successes: 1,
    reopened: 2,
  });
});

test("the next admission is the end of the open time or of the first lease, and 0 when closed", () => {
  assert.equal(nextAdmissionUs(CLOSED), 0);
  assert.equal(nextAdmissionUs(failTimes(CLOSED, 5, 7)), 60 * S + 7);
  const probing = sendProbe(sendProbe(halfOpen(), { id: 1, sentUs: 60 * S, expiresUs: 100 * S }), {
    id: 2,
    sentUs: 60 * S,
    expiresUs: 90 * S,
  });
  assert.equal(nextAdmissionUs(probing), 90 * S);
});

test("the oldest probe is the first that was sent, and only a half-open circuit has one", () => {
  const probing = sendProbe(sendProbe(halfOpen(), { id: 4, sentUs: 60 * S, expiresUs: 100 * S }), {
    id: 5,
    sentUs: 60 * S,
    expiresUs: 90 * S,
  });
  assert.equal(oldestProbe(probing), 4);
  assert.equal(oldestProbe(halfOpen()), undefined);
  assert.equal(oldestProbe(failTimes(CLOSED, 5)), undefined);
  assert.equal(oldestProbe(undefined), undefined);
});

test("the first open time has no jitter, and a success does not change an open circuit", () => {
  const policy = {
    failMax: 1,
    resetUs: 1000,
    resetCapUs: 9000,
    trialCalls: 1,
    successThreshold: 1,
    isAdaptive: true,
  };
  const opened = fail(CLOSED, policy, 0, 0, 0.99);
  assert.deepEqual(opened, { kind: "open", generation: 1, untilUs: 1000, reopened: 0 });
  assert.equal(succeed(opened, policy, 1), opened);
});

const UNREACHED = { isThrottled: false, isUnreached: true };

function unreachedTimes(circuit: Circuit, times: number): Circuit {
  let at = circuit;
  for (let i = 0; i < times; i += 1) at = fail(at, policy, at.generation, 0, 0, UNREACHED);
  return at;
}

test("a circuit is open alone if calls that never reached the host were needed to open it", () => {
  const isLocalOnly = (circuit: Circuit) => circuit.kind === "open" && circuit.isLocalOnly === true;
  assert.ok(isLocalOnly(unreachedTimes(CLOSED, 5)));
  assert.ok(isLocalOnly(failTimes(unreachedTimes(CLOSED, 1), 4)));
  const reached = failTimes(CLOSED, 5);
  assert.ok(reached.kind === "open" && !isLocalOnly(reached));
});

test("a circuit that is open alone stays so until its own call succeeds, or the peers open it", () => {
  const halfOpen = advance(unreachedTimes(CLOSED, 5), 60 * S);
  assert.ok(halfOpen.kind === "half-open" && halfOpen.isLocalOnly);
  const closed = { isClosed: true, untilUs: 0, reopened: 0, probes: [] };
  assert.equal(adopt(halfOpen, closed, 60 * S), halfOpen);
  const again = fail(halfOpen, policy, halfOpen.generation, 60 * S, 0);
  assert.ok(again.kind === "open" && again.isLocalOnly);
  assert.equal(succeed(halfOpen, policy, halfOpen.generation).kind, "closed");
  const opened = adopt(halfOpen, { ...closed, isClosed: false, untilUs: 90 * S }, 60 * S);
  assert.ok(opened.kind === "open" && opened.isLocalOnly === undefined);
});

test("a success of another process resets all but the calls that never reached the host", () => {
  const mixed = failTimes(unreachedTimes(CLOSED, 2), 2);
  const reset = succeedElsewhere(mixed);
  assert.deepEqual(reset, { kind: "closed", generation: 0, failures: 2, unreached: 2, throttles: 0 });
  assert.equal(succeedElsewhere(reset), reset);
});

test("a monotonic deadline is converted to wall time", () => {
  assert.equal(wallDeadlineMs(150e6, { monotonicUs: 100e6, wallMs: 1_000_000 }), 1_050_000);
});

test("a deadline in wall time is rounded up, so that it is never early", () => {
  assert.equal(wallDeadlineMs(1, { monotonicUs: 0, wallMs: 5 }), 6);
});

test("the longest open time of an adaptive circuit has room for its growth, for a learned reset and for jitter", () => {
  const longest = (isAdaptive: boolean, resetCapUs: number, learnedUs: number) =>
    longestOpenUs({ ...policy, isAdaptive, resetCapUs }, learnedUs);
  const plain = longest(false, 900 * S, 5000 * S) - policy.resetUs;
  assert.ok(plain >= 0 && plain <= S, `${plain}`);
  const adaptive = { ...policy, isAdaptive: true };
  let worst = failTimes(CLOSED, policy.failMax, 0, adaptive);
  for (let failedProbes = 0; failedProbes < 6; failedProbes += 1) {
    assert.ok(worst.kind === "open");
    const halfOpened = advance(worst, worst.untilUs);
    worst = fail(halfOpened, adaptive, halfOpened.generation, 0, 1);
  }
  assert.deepEqual(worst.kind === "open" && worst.untilUs, 990 * S);
  assert.ok(longest(true, 900 * S, 0) >= 990 * S);
  assert.equal(longest(true, 5000 * S, 0), longest(true, 900 * S, 5000 * S));
  assert.ok(longest(true, 900 * S, 0) > 900 * S && longest(true, 900 * S, 0) < 1800 * S);
});

test("a closed circuit has failures from its first one or its first throttle on", () => {
  assert.equal(hasFailures(CLOSED), false);
  assert.equal(hasFailures(failTimes(CLOSED, 1)), true);
  assert.equal(hasFailures(fail(CLOSED, policy, 0, 0, 0, { isThrottled: true, isUnreached: false })), true);
  assert.equal(hasFailures(failTimes(CLOSED, 5)), false);
});
