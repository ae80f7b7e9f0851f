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
  nextAdmissionUs,
  oldestProbe,
  returnProbe,
  sendProbe,
  succeed,
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

function failTimes(circuit: Circuit, times: number, nowUs = 0, how: CircuitPolicy = policy): Circuit {
  let at = circuit;
  for (let i = 0; i < times; i += 1) at = fail(at, how, at.generation, nowUs, 0);
  return at;
}

function halfOpen(how: CircuitPolicy = policy): Circuit {
  return advance(failTimes(CLOSED, how.failMax, 0, how), how.resetUs);
}

test("so many failures in a row open a circuit for its reset time, to the microsecond", () => {
  assert.equal(failTimes(CLOSED, 4).kind, "closed");
  const open = failTimes(CLOSED, 5);
  assert.deepEqual(open, { kind: "open", generation: 1, untilUs: 60 * S, reopened: 0 });
  assert.equal(admits(advance(open, 60 * S - 1), policy), false);
  assert.equal(admits(advance(open, 60 * S), policy), true);
});

test("one success in between starts the count anew", () => {
  const four = failTimes(CLOSED, 4);
  const spared = succeed(four, policy, four.generation);
  assert.equal(failTimes(spared, 4).kind, "closed");
  assert.equal(failTimes(spared, 5).kind, "open");
});

test("a closed circuit with nothing to forget is the same object after a success", () => {
  assert.equal(succeed(CLOSED, policy, 0), CLOSED);
});

test("a half-open circuit admits as many probes as it tries, and no more", () => {
  const two = { ...policy, trialCalls: 2 };
  let circuit = halfOpen(two);
  for (const id of [1, 2]) {
    assert.equal(admits(circuit, two), true);
    circuit = sendProbe(circuit, { id, expiresUs: 100 * S });
  }
  assert.equal(admits(circuit, two), false);
});

test("a probe that succeeds closes, one that fails opens for a full reset", () => {
  const probing = sendProbe(halfOpen(), { id: 1, expiresUs: 100 * S });
  const closed = succeed(probing, policy, probing.generation, 1);
  assert.deepEqual(closed, { kind: "closed", generation: 3, failures: 0 });
  const open = fail(probing, policy, probing.generation, 61 * S, 0);
  assert.deepEqual(open, { kind: "open", generation: 3, untilUs: 121 * S, reopened: 1 });
});

test("a probe that says nothing gives its place back at once", () => {
  const probing = sendProbe(halfOpen(), { id: 7, expiresUs: 100 * S });
  assert.equal(admits(probing, policy), false);
  assert.equal(admits(returnProbe(probing, probing.generation, 7), policy), true);
  assert.equal(admits(returnProbe(probing, probing.generation, 8), policy), false);
});

test("a probe that never comes back loses its place when its lease ends", () => {
  const probing = sendProbe(halfOpen(), { id: 1, expiresUs: 100 * S });
  assert.equal(admits(advance(probing, 100 * S - 1), policy), false);
  assert.equal(admits(advance(probing, 100 * S), policy), true);
});

test("a result from an older generation changes nothing", () => {
  const open = failTimes(CLOSED, 5);
  const probing = sendProbe(advance(open, 60 * S), { id: 1, expiresUs: 100 * S });
  for (const circuit of [open, probing]) {
    assert.equal(succeed(circuit, policy, 0, 1), circuit);
    assert.equal(fail(circuit, policy, 0, 61 * S, 0), circuit);
    assert.equal(returnProbe(circuit, 0, 1), circuit);
  }
});

test("more than one success can be asked for, one probe after the other", () => {
  const careful = { ...policy, successThreshold: 2 };
  const first = sendProbe(halfOpen(careful), { id: 1, expiresUs: 100 * S });
  const once = succeed(first, careful, first.generation, 1);
  assert.equal(once.kind, "half-open");
  assert.equal(admits(once, careful), true);
  const second = sendProbe(once, { id: 2, expiresUs: 100 * S });
  assert.equal(succeed(second, careful, second.generation, 2).kind, "closed");
});

test("a host that stays down is left alone longer each time, with jitter only upward, to the cap", () => {
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

test("without adaptive reset every opening lasts the same", () => {
  const probing = halfOpen();
  const open = fail(probing, policy, probing.generation, 60 * S, 0.9);
  assert.ok(open.kind === "open");
  assert.equal(open.untilUs, 120 * S);
});

test("an operator closes a circuit in any state, and what was under way no longer counts", () => {
  for (const circuit of [failTimes(CLOSED, 3), failTimes(CLOSED, 5), halfOpen()]) {
    const closed = close(circuit);
    assert.deepEqual(closed, { kind: "closed", generation: circuit.generation + 1, failures: 0 });
    assert.equal(fail(closed, policy, circuit.generation, 0, 0), closed);
  }
  assert.equal(close(CLOSED), CLOSED);
});

const news = { isClosed: false, untilUs: 60 * S, reopened: 2, probes: [] };

test("news that a circuit is open starts a generation, whatever it was here", () => {
  for (const circuit of [CLOSED, failTimes(CLOSED, 5), halfOpen()])
    assert.deepEqual(adopt(circuit, news, 60 * S - 1), {
      kind: "open",
      generation: circuit.generation + 1,
      untilUs: 60 * S,
      reopened: 2,
    });
});

test("news that a circuit is closed closes it once, and leaves a closed one with its count", () => {
  const isClosed = { ...news, isClosed: true };
  const three = failTimes(CLOSED, 3);
  assert.equal(adopt(three, isClosed, 0), three);
  assert.deepEqual(adopt(halfOpen(), isClosed, 0), { kind: "closed", generation: 3, failures: 0 });
});

test("a circuit that others have open no longer is tried from here too, in a generation of its own", () => {
  const elsewhere = { id: -1, expiresUs: 100 * S };
  const told = { ...news, probes: [elsewhere] };
  assert.deepEqual(adopt(CLOSED, told, 60 * S), {
    kind: "half-open",
    generation: 1,
    probes: [elsewhere],
    successes: 0,
    reopened: 2,
  });
});

test("old news does not shorten an opening of our own", () => {
  const open = failTimes(CLOSED, 5, 10 * S);
  assert.equal(adopt(open, news, 70 * S - 1), open);
  assert.deepEqual(adopt(open, news, 70 * S), {
    kind: "half-open",
    generation: 2,
    probes: [],
    successes: 0,
    reopened: 2,
  });
});

test("of a half-open circuit our own probes and successes stay, and those of others are told anew", () => {
  const careful = { ...policy, successThreshold: 3, trialCalls: 3 };
  let circuit = halfOpen(careful);
  for (const id of [1, 2, -1, 0]) circuit = sendProbe(circuit, { id, expiresUs: 100 * S });
  circuit = succeed(circuit, careful, circuit.generation, 1);
  assert.deepEqual(adopt(circuit, { ...news, probes: [{ id: -2, expiresUs: 90 * S }] }, 60 * S), {
    kind: "half-open",
    generation: circuit.generation,
    probes: [
      { id: 2, expiresUs: 100 * S },
      { id: -2, expiresUs: 90 * S },
    ],
    successes: 1,
    reopened: 2,
  });
});

test("a circuit may be passed when its open time or its first lease ends, and a closed one at once", () => {
  assert.equal(nextAdmissionUs(CLOSED), 0);
  assert.equal(nextAdmissionUs(failTimes(CLOSED, 5, 7)), 60 * S + 7);
  const probing = sendProbe(sendProbe(halfOpen(), { id: 1, expiresUs: 100 * S }), { id: 2, expiresUs: 90 * S });
  assert.equal(nextAdmissionUs(probing), 90 * S);
});

test("the oldest probe is the first that went out, and only a half-open circuit has one", () => {
  const probing = sendProbe(sendProbe(halfOpen(), { id: 4, expiresUs: 100 * S }), { id: 5, expiresUs: 90 * S });
  assert.equal(oldestProbe(probing), 4);
  assert.equal(oldestProbe(halfOpen()), undefined);
  assert.equal(oldestProbe(failTimes(CLOSED, 5)), undefined);
  assert.equal(oldestProbe(undefined), undefined);
});
