import assert from "node:assert/strict";
import { test } from "node:test";
import { type FleetProcess, fleetOf, HOST } from "../../test/sharing/fleet.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { BreakerEvent } from "./breaker-events.ts";
import type { BreakerTarget } from "./orders.ts";

const OPEN = { kind: "open", ms: 3_600_000, reason: "cli-open:test", isReplacing: false } as const;

/** Waits longer than the orders of these tests last. The result is undefined until the call is sent. */
function waitingCall(process: FleetProcess, call: Partial<EntryRequest>) {
  const sent: { waitedMs?: number } = {};
  const entering = Promise.resolve(process.gate.enter({ host: HOST, role: "metadata", maxWaitMs: 7_200_000, ...call }));
  void entering.then(({ waitedMs }) => Object.assign(sent, { waitedMs }));
  return sent;
}

for (const [name, target, call] of [
  ["role", { unit: HOST, role: "landing" }, { role: "landing" }],
  ["resolver", { resolver: "index" }, { resolver: "index" }],
] as const satisfies readonly (readonly [string, BreakerTarget, Partial<EntryRequest>])[]) {
  test(`an order to close one ${name} wakes the calls that wait for it in other processes, and all calls follow`, async () => {
    const { time, b, operator } = fleetOf(2);
    const events: BreakerEvent[] = [];
    b.breakers.listen(event => events.push(event));
    await operator.order(target, OPEN);
    const sent = waitingCall(b, call);
    await time.advance(1000);
    await operator.order(target, { kind: "close" });
    await time.advance(500);
    assert.equal(sent.waitedMs, 1500);
    for (let n = 0; n < 3; n += 1)
      assert.equal(b.breakers.tryAllow({ host: HOST, ...call }).isAllowed, true, "traffic is not limited");
    const ended = events.filter(({ event_type }) => event_type === "breaker_cooldown_ended");
    assert.equal(ended.length, 1);
  });
}
