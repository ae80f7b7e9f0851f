import assert from "node:assert/strict";
import { test } from "node:test";
import { gateOf } from "../../test/limiter/kit.ts";
import type { Gate } from "../gate/gate.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";

const host = "www.example.org";
const HOUR = { rates: "4/HOUR", guard_ms: 0 };
const DEFAULTS: RatelimitsOptions = { defaults: { metadata: HOUR } };
const withSuffix: RatelimitsOptions = { services: { whole: { members: ["a.example", "*.example.org"] } } };
const without: RatelimitsOptions = { services: { whole: { members: ["a.example"] } } };

function reload(gate: Gate, limits: RatelimitsOptions): void {
  gate.reload(limitPoliciesFrom({ ...DEFAULTS, ...limits }, "test"));
}

/** How many requests are granted at once. */
function burst(gate: Gate, entry: Partial<EntryRequest> = {}): number {
  let granted = 0;
  while (gate.tryEnter({ host, role: "metadata", stamp: "granted", ...entry }) !== undefined) granted += 1;
  return granted;
}

for (const [what, after] of [
  ["that is removed", {}],
  ["that keeps other members", without],
] as const)
  test(`a host that leaves the suffix of a service ${what} counts what the service has sent`, async () => {
    const { gate, time, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
    for (let call = 0; call < 3; call += 1) enterNow({ host }).release();
    await time.advance(1000);
    reload(gate, after);
    enterNow({ host: "a.example" }).release();
    reload(gate, { ...after, global: { max_inflight: 99 } });
    assert.deepEqual(
      [burst(gate), burst(gate, { host: "other.example.org" })],
      [1, 1],
      "which host has sent is not known",
    );
    assert.equal(burst(gate, { host: "example.net" }), 4);
    await time.advance(3_599_000);
    assert.equal(burst(gate), 3);
  });

test("a host that left a service counts its units once, also after it was forgotten", async () => {
  const second = { metadata: { rates: "9/SECOND", guard_ms: 0 } };
  const { gate, time, enterNow } = gateOf({ defaults: second, ...withSuffix });
  enterNow({ host }).release();
  gate.reload(limitPoliciesFrom({ defaults: second, ...without }, "test"));
  for (let round = 0; round < 3; round += 1) {
    assert.ok(burst(gate, { weight: 8 }) <= 1);
    await time.advance(2000);
    for (let visit = 0; visit < 9; visit += 1) enterNow({ host: `h${visit}-${round}.example` }).release();
  }
  gate.reload(limitPoliciesFrom({ defaults: { metadata: { rates: "30/HOUR", guard_ms: 0 } }, ...without }, "test"));
  assert.equal(burst(gate), 30 - 1 - 24);
});

test("a host that leaves the suffix of a service counts the requests of the service in flight", async () => {
  const { gate, time, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
  const flying = [enterNow({ host }), enterNow({ host })];
  reload(gate, without);
  assert.equal(burst(gate), 2);
  await time.advance(1000);
  for (const grant of flying) grant.release();
  await time.advance(3_599_000);
  assert.equal(burst(gate), 2, "they count from their writes");
});

test("each partition of a host that leaves the suffix of a service counts what the service has sent", () => {
  const { gate, enterNow } = gateOf({ ...DEFAULTS, ...withSuffix });
  for (let call = 0; call < 3; call += 1) enterNow({ host, partition: "one" }).release();
  gate.reload(limitPoliciesFrom({ defaults: { metadata: { ...HOUR, per: "partition" } }, ...without }, "test"));
  assert.deepEqual([burst(gate, { partition: "one" }), burst(gate, { partition: "two" })], [1, 1]);
});
