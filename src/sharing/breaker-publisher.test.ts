import assert from "node:assert/strict";
import { test } from "node:test";
import { BREAKERS, fleetOf, HOST, REREAD_MS } from "../../test/sharing/fleet.ts";
import { breakersOf } from "../gate/registry-breakers.ts";

const ORDER = { unit: HOST } as const;
const open = (ms: number, isReplacing = false) => ({ kind: "open", ms, reason: "cli-open:test", isReplacing }) as const;

test("a process that returns from an outage applies an operator's close before it writes its own open circuit", async () => {
  const { time, a, b, operator } = fleetOf(2);
  await a.sendAll(2, "failure");
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), "failures");
  a.isAway = true;
  await time.advance(REREAD_MS);
  assert.equal(await a.send("success"), "failures", "it notices the outage");
  await operator.order(ORDER, { kind: "close" });
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), undefined);
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a process that returns from an outage does not repeat a circuit that a peer has closed by a trial call", async () => {
  const { time, a, b } = fleetOf(2);
  await a.sendAll(2, "failure");
  await time.advance(REREAD_MS);
  a.isAway = true;
  // The circuit of the separated process stays open longer: its trial call has failed.
  await time.advance(60_000);
  await a.send("failure");
  await time.advance(20_000);
  assert.equal(await b.send("success"), undefined, "the trial call of the other process closes the circuit");
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a process that returns from an outage does not repeat a cooldown that an operator has ended", async () => {
  const { time, a, b } = fleetOf(2);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), "retry-after");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send("success");
  b.breakers.close(HOST);
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

for (const first of ["the earlier", "the later"] as const) {
  test(`of two circuits that opened during an outage the later end counts for all, if ${first} one is written first`, async () => {
    const { time, a, b } = fleetOf(2);
    for (const process of [a, b]) {
      await process.send("success");
      process.isAway = true;
    }
    await time.advance(REREAD_MS);
    await a.sendAll(2, "failure");
    await time.advance(10_000);
    await b.sendAll(2, "failure");
    const inOrder = first === "the earlier" ? [a, b] : [b, a];
    for (const process of inOrder) {
      process.isAway = false;
      await time.advance(REREAD_MS);
      await process.send("success");
      await time.advance(REREAD_MS);
    }
    await time.advance(51_000);
    for (const process of [a, b]) assert.equal(await process.send("success"), "failures");
    await time.advance(10_000);
    for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
  });
}

test("a cooldown that began during an outage is written when the store is back", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send({ retryAfterMs: 600_000 });
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), "retry-after");
});

test("a Retry-After that a server sends after an operator's close holds, also where the order was not read yet", async () => {
  const { time, a, b, operator } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  await time.advance(1);
  await operator.order(ORDER, { kind: "close" });
  await time.advance(1);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

test("a close that was given during an outage does not end a Retry-After that a server has sent since", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send("success");
  a.breakers.close(HOST);
  await time.advance(1000);
  await b.send({ retryAfterMs: 600_000 });
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

for (const giver of ["an operator", "a peer", "the same process"] as const) {
  for (const kind of ["close", "half-open"] as const) {
    test(`a Retry-After that a process receives during an outage holds after a ${kind} by ${giver}`, async () => {
      const { time, a, b, operator } = fleetOf(2);
      for (const process of [a, b]) await process.send("success");
      a.isAway = true;
      await time.advance(REREAD_MS);
      await a.send("success");
      if (giver === "an operator") await operator.order(ORDER, { kind });
      else breakersOf((giver === "a peer" ? b : a).breakers).giveOrder(ORDER, { kind });
      await time.advance(1);
      await a.send({ retryAfterMs: 600_000 });
      await time.advance(1000);
      a.isAway = false;
      await time.advance(REREAD_MS);
      assert.equal(await a.send("success"), "retry-after");
      await time.advance(REREAD_MS);
      for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
      // A later order ends it everywhere.
      await operator.order(ORDER, { kind: "close" });
      await time.advance(REREAD_MS);
      for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
    });
  }
}

test("of a Retry-After that was received in an outage and a shorter one that came later, the later end counts", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(1);
  await b.send({ retryAfterMs: 8000 });
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(9000);
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

test("a Retry-After that a process has received before the close ends with it, also after an outage", async () => {
  const { time, a, b, operator } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(1);
  await operator.order(ORDER, { kind: "close" });
  await time.advance(1000);
  a.isAway = false;
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("an order that was given during an outage is written when the store is back, unless a newer one exists", async () => {
  for (const isNewer of [false, true]) {
    const { time, a, b, operator } = fleetOf(2);
    for (const process of [a, b]) await process.send("success");
    a.isAway = true;
    await time.advance(REREAD_MS);
    await a.send("success");
    a.breakers.open(HOST, 300, "here");
    await time.advance(1000);
    if (isNewer) await operator.order(ORDER, { kind: "close" });
    a.isAway = false;
    await time.advance(REREAD_MS);
    await a.send("success");
    await time.advance(REREAD_MS);
    for (const process of [a, b])
      assert.equal(await process.send("success"), isNewer ? undefined : "cli-open:here", String(isNewer));
  }
});

test("a shorter order replaces a longer one only if asked, and a Retry-After stays", async () => {
  const { time, a, b, operator } = fleetOf(2);
  await a.send("success");
  await operator.order(ORDER, open(300_000));
  await operator.order(ORDER, open(10_000));
  await time.advance(11_000);
  assert.equal(await a.send("success"), "cli-open:test");
  await operator.order(ORDER, open(10_000, true));
  await time.advance(11_000);
  assert.equal(await a.send({ retryAfterMs: 100_000 }), undefined);
  await time.advance(REREAD_MS);
  await operator.order(ORDER, open(5000, true));
  await time.advance(6000);
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

test("an order for one role leaves the others, and an order for a resolver applies to all its hosts", async () => {
  const { time, a, b, operator } = fleetOf(2);
  await a.send("success");
  await operator.order({ unit: HOST, role: "landing" }, open(300_000));
  await operator.order({ resolver: "crossref" }, open(300_000));
  await time.advance(REREAD_MS);
  for (const process of [a, b]) {
    assert.equal(await process.send("success"), undefined);
    assert.equal(await process.send("success", { role: "landing" }), "cli-open:test");
    assert.equal(await process.send("success", { host: "other.example", resolver: "crossref" }), "cli-open:test");
    assert.equal(process.breakers.state(HOST).reason, "cli-open:test");
  }
  await operator.order({ unit: HOST, role: "landing" }, { kind: "close" });
  await operator.order({ resolver: "crossref" }, { kind: "close" });
  await time.advance(REREAD_MS);
  for (const process of [a, b]) {
    assert.equal(await process.send("success", { role: "landing" }), undefined);
    assert.equal(await process.send("success", { host: "other.example", resolver: "crossref" }), undefined);
  }
});

test("a circuit that an operator half-opens admits trial calls only, in all processes", async () => {
  const { time, a, b, operator } = fleetOf(2);
  await a.sendAll(2, "failure");
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), "failures");
  await operator.order(ORDER, { kind: "half-open" });
  await time.advance(REREAD_MS);
  const trial = await b.gate.enter({ host: HOST, role: "metadata" });
  assert.equal(await a.send("success"), "failures", "the trial call of the other process is in flight");
  trial.written();
  trial.report({ outcome: { kind: "success" }, status: 200 });
  trial.release();
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("an order that the store has lost is written again by a process that knows it", async () => {
  const { time, a, b, operator, shared } = fleetOf(2);
  await a.sendAll(2, "failure");
  await time.advance(REREAD_MS);
  b.isAway = true;
  await time.advance(REREAD_MS);
  await b.send("success");
  await operator.order(ORDER, { kind: "close" });
  await time.advance(REREAD_MS);
  assert.equal(await a.send("success"), undefined);
  shared.records.clear();
  b.isAway = false;
  await time.advance(REREAD_MS);
  // This process writes its open circuit to the empty store.
  await b.send("success");
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a Retry-After is shared also while a longer cooldown by calls without a connection is for this process alone", async () => {
  const rolling_window = { enabled: true, threshold_failures: 3, window_s: 30, cooldown_s: 60 };
  const defaults = { ...BREAKERS.defaults, fail_max: 50, roles: { metadata: { fail_max: 50 } } };
  const { time, a, b } = fleetOf(2, { ...BREAKERS, defaults, advanced: { ...BREAKERS.advanced, rolling_window } });
  const early = await a.gate.enter({ host: HOST, role: "metadata" });
  await a.sendAll(3, "unreached");
  assert.equal(await a.send("success"), "rolling-window");
  early.written();
  early.report({ outcome: { kind: "failure", cause: "status", throttled: true }, status: 429, retryAfterMs: 30_000 });
  early.release();
  await time.advance(REREAD_MS);
  assert.equal(await b.send("success"), "retry-after");
});

for (const [what, target] of [
  ["a host", ORDER],
  ["one role", { unit: HOST, role: "metadata" }],
] as const) {
  test(`a circuit that opens while an order to close ${what} is being written stays open for all`, async () => {
    const { time, a, b } = fleetOf(2);
    for (const process of [a, b]) await process.send("success");
    a.changeMs = 200;
    breakersOf(a.breakers).giveOrder(target, { kind: "close" });
    await time.advance(1);
    await a.sendAll(2, "failure");
    await time.advance(5 * REREAD_MS);
    a.changeMs = 0;
    for (const process of [a, b]) assert.equal(await process.send("success"), "failures");
    // A later order ends it everywhere.
    breakersOf(a.breakers).giveOrder(target, { kind: "close" });
    await time.advance(REREAD_MS);
    for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
  });
}

test("a Retry-After that a process receives while its order to close is being written holds for all", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.changeMs = 200;
  a.breakers.close(HOST);
  await time.advance(1);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(5 * REREAD_MS);
  a.changeMs = 0;
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

test("a circuit that opens during an outage stays open after an older order of the same process", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send("success");
  a.breakers.close(HOST);
  await time.advance(1000);
  await a.sendAll(2, "failure");
  a.isAway = false;
  await time.advance(REREAD_MS);
  assert.equal(await a.send("success"), "failures");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), "failures");
});

for (const target of [ORDER, { unit: HOST, role: "metadata" } as const]) {
  test(`an older order to close ${"role" in target ? "one role" : "a host"} leaves a circuit that is open for one process alone`, async () => {
    const { time, a, b } = fleetOf(2);
    for (const process of [a, b]) await process.send("success");
    a.isAway = true;
    await time.advance(REREAD_MS);
    await a.send("success");
    breakersOf(a.breakers).giveOrder(target, { kind: "close" });
    await time.advance(1000);
    // A newer order of a peer, after which the circuit opens by calls that never reached the host.
    breakersOf(b.breakers).giveOrder({ unit: HOST, role: "metadata" }, { kind: "close" });
    await time.advance(1);
    await b.sendAll(2, "unreached");
    a.isAway = false;
    await time.advance(REREAD_MS);
    await a.send("success");
    await time.advance(REREAD_MS);
    assert.equal(await b.send("success"), "failures");
    assert.equal(await a.send("success"), undefined);
    // A newer one closes it.
    breakersOf(a.breakers).giveOrder(target, { kind: "close" });
    await time.advance(REREAD_MS);
    assert.equal(await b.send("success"), undefined);
  });
}

test("an order from an outage ends a circuit that was opened before it, also if that is written first", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) {
    await process.send("success");
    process.isAway = true;
  }
  await time.advance(REREAD_MS);
  await a.sendAll(2, "failure");
  await b.send("success");
  await time.advance(1000);
  b.breakers.close(HOST);
  for (const process of [a, b]) {
    process.isAway = false;
    await time.advance(REREAD_MS);
    await process.send("success");
    await time.advance(REREAD_MS);
  }
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a process whose trial call succeeded after its order to half-open writes no older circuit of a peer over that order", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) process.isAway = true;
  await a.sendAll(2, "failure");
  await time.advance(1000);
  breakersOf(b.breakers).giveOrder(ORDER, { kind: "half-open" });
  await time.advance(1);
  assert.equal(await b.send("success"), undefined);
  for (const process of [a, b]) {
    process.isAway = false;
    await time.advance(REREAD_MS);
    await process.send("neutral");
  }
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a circuit that opens after an order holds for all, also if an earlier trial call could not be written either", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  breakersOf(a.breakers).giveOrder(ORDER, { kind: "half-open" });
  await time.advance(1000);
  assert.equal(await a.send("success"), undefined);
  await time.advance(1000);
  a.breakers.close(HOST);
  await time.advance(1000);
  await a.sendAll(2, "failure");
  a.isAway = false;
  await time.advance(REREAD_MS);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), "failures");
});

test("a trial call that succeeds when the store is back closes its circuit, also if an earlier one could not be written", async () => {
  const { time, a, b } = fleetOf(2);
  a.isAway = true;
  breakersOf(a.breakers).giveOrder(ORDER, { kind: "half-open" });
  await time.advance(1);
  assert.equal(await a.send("success"), undefined);
  await time.advance(REREAD_MS);
  breakersOf(a.breakers).giveOrder(ORDER, { kind: "half-open" });
  await time.advance(1);
  a.isAway = false;
  assert.equal(await a.send("success"), undefined);
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

test("a Retry-After from an outage holds for all, also if a shorter one that a peer has received since is over", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(1000);
  await b.send({ retryAfterMs: 6000 });
  await time.advance(60_000);
  a.isAway = false;
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), "retry-after");
});

test("a Retry-After from an outage ends for all if an operator closes the host after a peer has received another one", async () => {
  const { time, a, b } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.send({ retryAfterMs: 600_000 });
  await time.advance(1000);
  await b.send({ retryAfterMs: 6000 });
  await time.advance(1000);
  b.breakers.close(HOST);
  a.isAway = false;
  await time.advance(60_000);
  await a.send("success");
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});

for (const target of [ORDER, { unit: HOST, role: "metadata" } as const]) {
  test(`an order from an outage to close ${"role" in target ? "one role" : "a host"} ends what is older, also if a newer order to open exists`, async () => {
    const { time, a, b, operator } = fleetOf(2);
    await b.sendAll(2, "failure");
    await a.send("success");
    a.isAway = true;
    await time.advance(REREAD_MS);
    breakersOf(a.breakers).giveOrder(target, { kind: "close" });
    await time.advance(1);
    await operator.order(target, open(10_000));
    await time.advance(REREAD_MS);
    a.isAway = false;
    for (const process of [b, a]) await process.send("success");
    await time.advance(REREAD_MS);
    for (const process of [a, b]) assert.equal(await process.send("success"), "cli-open:test");
    await time.advance(10_000);
    for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
  });
}

test("a circuit that was opened before an order does not come back when the store has lost that order", async () => {
  const { time, a, b, operator, shared } = fleetOf(2);
  for (const process of [a, b]) await process.send("success");
  a.isAway = true;
  await time.advance(REREAD_MS);
  await a.sendAll(2, "failure");
  await time.advance(1);
  await operator.order(ORDER, { kind: "close" });
  await time.advance(REREAD_MS);
  await b.send("success");
  shared.records.clear();
  a.isAway = false;
  for (const process of [a, b, a]) {
    await time.advance(REREAD_MS);
    await process.send("success");
  }
  await time.advance(REREAD_MS);
  for (const process of [a, b]) assert.equal(await process.send("success"), undefined);
});
