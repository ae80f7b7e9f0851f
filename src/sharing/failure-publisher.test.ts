import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKERS, type FleetProcess, fleetOf, HOST, REREAD_MS } from "../../test/sharing/fleet.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";

const CIRCUIT = { fail_max: 5, reset_timeout_s: 60 };
const FIVE: BreakersOptions = {
  ...BREAKERS,
  defaults: { ...BREAKERS.defaults, ...CIRCUIT, roles: { metadata: CIRCUIT, landing: CIRCUIT, artifact: CIRCUIT } },
};
const WINDOW: BreakersOptions = {
  ...FIVE,
  advanced: {
    adaptive_reset: { enabled: false },
    rolling_window: { enabled: true, window_s: 60, threshold_failures: 4, cooldown_s: 30 },
  },
};

function fleet(options: BreakersOptions = FIVE) {
  const { processes, time, shared, operator } = fleetOf(3, options);
  const [a, b, c] = processes as [FleetProcess, FleetProcess, FleetProcess];
  /** Why each process refuses its next request; the requests that are sent change nothing. */
  const refusals = async () => {
    await time.advance(REREAD_MS);
    return Promise.all(processes.map(process => process.send("neutral")));
  };
  /** One request after the other, each after the results of the former ones are known to all. */
  const inTurn = async (...steps: readonly (readonly [FleetProcess, Parameters<FleetProcess["send"]>[0]])[]) => {
    for (const [process, result] of steps) {
      await process.send(result);
      await time.advance(REREAD_MS);
    }
  };
  return { a, b, c, processes, time, shared, operator, refusals, inTurn };
}

const NONE = [undefined, undefined, undefined];
const OPEN = ["failures", "failures", "failures"];

test("fail_max failures of all processes together open the circuit for all", async () => {
  const { a, b, c, refusals, inTurn } = fleet();
  await inTurn([a, "failure"], [b, "failure"], [c, "failure"], [a, "failure"]);
  assert.deepEqual(await refusals(), NONE);
  await inTurn([b, "failure"]);
  assert.deepEqual(await refusals(), OPEN);
});

test("failures that end at the same instant in several processes are all counted", async () => {
  const { a, b, c, refusals } = fleet();
  await Promise.all([a, b, c, a, b].map(process => process.send("failure")));
  assert.deepEqual(await refusals(), OPEN);
});

test("a circuit that failures of all processes open has one opening that was not read from a peer", async () => {
  const { a, b, c, processes, refusals, inTurn } = fleet();
  const openings: (true | undefined)[] = [];
  for (const { breakers } of processes)
    breakers.listen(event => {
      if (event.event_type === "breaker_state_change" && event.new === "open") openings.push(event.from_peer);
    });
  await inTurn([a, "failure"], [b, "failure"], [c, "failure"], [a, "failure"], [b, "failure"]);
  assert.deepEqual(await refusals(), OPEN);
  assert.deepEqual(openings, [undefined, true, true]);
});

test("a success of any process resets the count of all", async () => {
  const { a, b, c, refusals, inTurn } = fleet();
  await inTurn([a, "failure"], [a, "failure"], [b, "failure"], [b, "failure"], [c, "success"]);
  await inTurn([a, "failure"], [a, "failure"], [a, "failure"], [b, "failure"]);
  assert.deepEqual(await refusals(), NONE);
  await inTurn([a, "failure"]);
  assert.deepEqual(await refusals(), OPEN);
});

test("a success is written only if failures are counted", async () => {
  const { a, b, time, shared, inTurn } = fleet();
  await inTurn([a, "success"], [b, "success"]);
  const record = () => JSON.stringify(shared.records.list(""));
  const empty = record();
  for (let call = 0; call < 50; call += 1) await a.send("success");
  await time.advance(REREAD_MS);
  assert.equal(record(), empty);
  await inTurn([a, "failure"]);
  const counted = record();
  assert.notEqual(counted, empty);
  await inTurn([b, "success"]);
  const reset = record();
  assert.notEqual(reset, counted);
  await inTurn([b, "success"], [a, "success"]);
  assert.equal(record(), reset);
});

test("failures that never reached the host open it for no other process while that one succeeds", async () => {
  const { a, b, c, refusals, inTurn } = fleet();
  for (let call = 0; call < 5; call += 1) await inTurn([a, "unreached"], [b, "success"]);
  assert.deepEqual(await refusals(), ["failures", undefined, undefined]);
  await inTurn([b, "failure"], [c, "failure"]);
  assert.deepEqual(await refusals(), ["failures", undefined, undefined], "nor do they count with failures of others");
});

test("a burst of failures that never reached the host opens the circuit of its own process alone", async () => {
  const { a, time, refusals } = fleet();
  await a.sendAll(5, "unreached");
  assert.deepEqual(await refusals(), ["failures", undefined, undefined]);
  await time.advance(60_000);
  assert.equal(await a.send("success"), undefined, "its trial call needs no permission of the peers");
  assert.deepEqual(await refusals(), NONE);
});

test("failures that never reached the host count for all when a second process has them", async () => {
  const { a, b, refusals, inTurn } = fleet();
  await inTurn([a, "unreached"], [a, "unreached"], [a, "unreached"], [a, "unreached"]);
  assert.deepEqual(await refusals(), NONE);
  await inTurn([b, "unreached"]);
  assert.deepEqual(await refusals(), OPEN);
});

test("a process that alone had lost the store joins the circuit that is open for all", async () => {
  const { a, b, c, time, refusals, inTurn } = fleet();
  await a.sendAll(5, "unreached");
  await inTurn([b, "unreached"]);
  assert.deepEqual(await refusals(), OPEN);
  await time.advance(60_000);
  const sent = await Promise.all([a, b, c].map(process => process.send("failure")));
  assert.equal(sent.filter(refused => refused === undefined).length, 1, "one trial call for all");
});

test("after a trial call that never reached the host another process may send one at once", async () => {
  const { a, b, c, time, refusals } = fleet();
  await a.sendAll(5, "failure");
  assert.deepEqual(await refusals(), OPEN);
  await time.advance(60_000);
  assert.equal(await a.send("unreached"), undefined);
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), undefined, "the circuit is not open again for all");
  await time.advance(REREAD_MS);
  assert.equal(await c.send("success"), undefined);
  assert.deepEqual(await refusals(), ["failures", undefined, undefined]);
  await time.advance(60_000);
  assert.equal(await a.send("success"), undefined);
  assert.deepEqual(await refusals(), NONE);
});

test("trial calls of two processes that never reached the host open the circuit again for all", async () => {
  const { a, b, time, refusals, inTurn } = fleet();
  await a.sendAll(5, "failure");
  assert.deepEqual(await refusals(), OPEN);
  await time.advance(60_000);
  await inTurn([a, "unreached"], [b, "unreached"]);
  assert.deepEqual(await refusals(), OPEN);
  await time.advance(50_000);
  assert.deepEqual(await refusals(), OPEN, "for the whole reset timeout");
  await time.advance(10_000);
  assert.equal(await b.send("success"), undefined);
  assert.deepEqual(await refusals(), NONE);
});

test("throttles of requests that were in flight together in several processes are one event", async () => {
  const { a, b, c, time, refusals } = fleet();
  for (let burst = 0; burst < 4; burst += 1) {
    await Promise.all([a, b, c, a, b, c].map(process => process.send("throttle")));
    await time.advance(REREAD_MS);
  }
  assert.deepEqual(await refusals(), NONE);
  await c.send("throttle");
  assert.deepEqual(await refusals(), OPEN);
});

test("the rolling window counts the failures of all processes, also with successes between them", async () => {
  const { a, b, c, time, refusals, inTurn } = fleet(WINDOW);
  await inTurn([a, "failure"], [b, "success"], [b, "failure"], [c, "failure"]);
  assert.deepEqual(await refusals(), NONE);
  await inTurn([a, "failure"]);
  assert.deepEqual(await refusals(), ["rolling-window", "rolling-window", "rolling-window"]);
  await time.advance(30_000);
  await inTurn([a, "success"], [b, "success"], [c, "success"], [b, "failure"], [c, "failure"], [a, "failure"]);
  assert.deepEqual(await refusals(), NONE, "the failures are cleared with the cooldown");
});

test("failures that never reached the host start a cooldown of the rolling window for their process alone", async () => {
  const { a, b, refusals, inTurn } = fleet(WINDOW);
  for (let call = 0; call < 4; call += 1) await inTurn([a, "unreached"], [b, "success"]);
  assert.deepEqual(await refusals(), ["rolling-window", undefined, undefined]);
});

test("an order to close clears what all processes have counted", async () => {
  const { a, b, operator, refusals, inTurn } = fleet();
  await inTurn([a, "failure"], [a, "failure"], [b, "failure"], [b, "failure"]);
  await operator.order({ unit: HOST }, { kind: "close" });
  await refusals();
  await inTurn([a, "failure"], [b, "failure"], [a, "failure"], [b, "failure"]);
  assert.deepEqual(await refusals(), NONE);
});

test("a process without the store counts for itself, and its failures of that time are not added later", async () => {
  const { a, b, time, refusals, inTurn } = fleet();
  await inTurn([a, "success"], [b, "success"]);
  a.isAway = true;
  await inTurn([a, "failure"], [a, "failure"], [a, "failure"]);
  a.isAway = false;
  await time.advance(REREAD_MS);
  await inTurn([b, "failure"], [b, "failure"]);
  assert.deepEqual(await refusals(), NONE);
});

test("failures that reach the store late open the circuit from the time when they happened", async () => {
  const { a, b, c, time, inTurn } = fleet();
  await inTurn([b, "failure"], [b, "failure"], [a, "neutral"]);
  a.changeMs = 20_000;
  const [first, ...others] = await Promise.all([1, 2, 3].map(() => a.gate.enter({ host: HOST, role: "metadata" })));
  const failure = { outcome: { kind: "failure", cause: "status", throttled: false }, status: 503 } as const;
  first?.report(failure);
  await time.advance(30_000);
  // The change before has not ended: these reach the store 60 s after the first failure.
  for (const grant of others) grant.report(failure);
  await time.advance(31_000);
  assert.equal(await c.send("neutral"), "failures");
  await time.advance(50_000);
  assert.equal(await c.send("success"), undefined, "the reset timeout and the way to the store have passed");
});

test("a circuit whose open time is over when the store applies its opening is not opened again", async () => {
  const { a, b, time, inTurn } = fleet();
  const states: string[] = [];
  a.breakers.listen(event => event.event_type === "breaker_state_change" && states.push(event.new));
  await inTurn([a, "neutral"], [b, "failure"]);
  a.changeMs = 20_000;
  await a.sendAll(5, "failure");
  await time.advance(100_000);
  assert.equal(a.breakers.state(HOST).state, "half_open");
  assert.deepEqual(states, ["open", "half_open"]);
});

test("however many failures of a role wait for a slow store, the results of another role are written too", async () => {
  const tolerant = { ...CIRCUIT, fail_max: 500 };
  const roles = { metadata: CIRCUIT, landing: tolerant, artifact: CIRCUIT };
  const { a, b, time, refusals, inTurn } = fleet({ ...FIVE, defaults: { ...FIVE.defaults, roles } });
  await inTurn([b, "failure"], [b, "failure"], [b, "failure"], [b, "failure"], [a, "neutral"]);
  a.changeMs = 500;
  await a.sendAll(150, "failure", { role: "landing" });
  await a.send("success");
  await time.advance(5000);
  a.changeMs = 0;
  await inTurn([b, "failure"]);
  assert.deepEqual(await refusals(), NONE, "the success was written");
  a.changeMs = 500;
  await a.sendAll(150, "failure", { role: "landing" });
  await a.sendAll(4, "failure");
  await time.advance(5000);
  assert.equal(await b.send("neutral"), "failures", "the failures were written");
});

test("the circuit of a resolver counts the failures of all processes too", async () => {
  const { a, b, c, time } = fleet();
  for (const [index, process] of [a, b, c, a, b].entries()) {
    await process.send("failure", { host: `host-${index}.example`, resolver: "index" });
    await time.advance(REREAD_MS);
  }
  for (const [index, process] of [a, b, c].entries())
    assert.equal(await process.send("success", { host: `other-${index}.example`, resolver: "index" }), "failures");
});
