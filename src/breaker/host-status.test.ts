import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import { giveOrder } from "../core/breaker/breaker-order.ts";
import {
  type BreakerRecord,
  EMPTY_BREAKER_RECORD,
  leaseProbe,
  openCircuit,
  setCooldown,
} from "../core/breaker/breaker-record.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { Role } from "../policy/roles.ts";
import { sharedStatusOf } from "./host-status.ts";
import type { OrderRequest } from "./orders.ts";

const FAILED = { outcome: { kind: "failure", cause: "status", throttled: false }, status: 500 } as const;
const THROTTLED = {
  outcome: { kind: "failure", cause: "status", throttled: true },
  status: 429,
  retryAfterMs: 10_000,
} as const;

const OPEN = { kind: "open", ms: 60_000, reason: "cli-open:repair", isReplacing: false } as const;

/** An operator's order for one role. */
function order(registry: BreakerRegistry, role: Role, what: OrderRequest): void {
  breakersOf(registry).giveOrder({ unit: host, role }, what);
}

test("a circuit under an operator's order counts no failures and no probes", async () => {
  const { time, registry } = setUp();
  const fail = () => {
    const permit = registry.tryAllow({ host, role: "metadata" });
    if (permit.isAllowed) permit.report(FAILED);
  };
  const metadata = () => registry.state(host).roles.find(({ role }) => role === "metadata");
  fail();
  assert.deepEqual([metadata()?.state, metadata()?.failures], ["closed", 1]);
  order(registry, "metadata", OPEN);
  assert.deepEqual([metadata()?.state, metadata()?.failures], ["open", 0]);
  order(registry, "metadata", { kind: "close" });
  while (metadata()?.state === "closed") fail();
  await time.advance(metadata()?.remainingMs ?? 0);
  registry.tryAllow({ host, role: "metadata" });
  assert.deepEqual([metadata()?.state, metadata()?.probes], ["half_open", 1]);
  order(registry, "metadata", OPEN);
  assert.deepEqual([metadata()?.state, metadata()?.probes], ["open", 0]);
});

test("reason and remaining time of a host are those of the cooldown or circuit that ends last", async () => {
  const { time, registry } = setUp();
  const permit = registry.tryAllow({ host, role: "metadata" });
  order(registry, "landing", OPEN);
  if (permit.isAllowed) permit.report(THROTTLED);
  const { state, reason, remainingMs } = registry.state(host);
  assert.deepEqual([state, reason, remainingMs], ["open", "cli-open:repair", 60_000]);
  order(registry, "landing", { kind: "close" });
  await time.advance(1000);
  const left = registry.state(host);
  assert.deepEqual([left.state, left.reason, left.remainingMs], ["open", "retry-after", 9000]);
});

const MS = 1000;
const open = openCircuit(EMPTY_BREAKER_RECORD, "metadata", { untilUs: 100 * MS, reopened: 0 }, 1);
const circuitAt = (record: BreakerRecord, nowUs: number) => sharedStatusOf("host a.example", record, nowUs).circuits[0];

test("a circuit in the store is open until its instant, then half-open with the probes that still run", () => {
  const openFor = (remainingMs: number) => {
    return { name: "metadata", state: "open", remainingMs, probes: 0, reason: "failures" };
  };
  assert.deepEqual(circuitAt(open, 40 * MS), openFor(60));
  assert.deepEqual(circuitAt(open, 100 * MS - 1), openFor(1));
  const probing = leaseProbe(open, "metadata", { id: "p", expiresUs: 200 * MS }, 1, 100 * MS);
  const halfOpen = { name: "metadata", state: "half_open", remainingMs: 0, probes: 1, reason: "failures" };
  assert.deepEqual(circuitAt(probing, 150 * MS), halfOpen);
  assert.deepEqual(circuitAt(probing, 200 * MS), { ...halfOpen, probes: 0 });
});

test("a circuit in the store that an operator has opened has the reason of the order until the order ends", () => {
  const order = { kind: "open", circuit: "metadata", durationUs: 50 * MS, reason: "cli-open:repair" } as const;
  const closed = { name: "metadata", state: "closed", remainingMs: 0, probes: 0, reason: undefined };
  const ordered = giveOrder(EMPTY_BREAKER_RECORD, order, 10 * MS);
  assert.deepEqual(circuitAt(ordered, 20 * MS), {
    ...closed,
    state: "open",
    remainingMs: 40,
    reason: "cli-open:repair",
  });
  assert.deepEqual(circuitAt(ordered, 60 * MS), closed);
  const both = giveOrder(open, order, 10 * MS);
  assert.deepEqual([circuitAt(both, 20 * MS)?.remainingMs, circuitAt(both, 20 * MS)?.reason], [80, "cli-open:repair"]);
  assert.deepEqual([circuitAt(both, 60 * MS)?.remainingMs, circuitAt(both, 60 * MS)?.reason], [40, "failures"]);
});

test("a host in the store has the reason of what ends last, and names its cooldown apart", () => {
  const cooled = setCooldown(open, "serverCooldown", { untilUs: 70 * MS, reason: "retry-after" }, 1);
  const { circuits: _, ...host } = sharedStatusOf("host a.example", cooled, 40 * MS);
  assert.deepEqual(host, {
    ...{ kind: "host", name: "a.example", state: "open", reason: "failures", remainingMs: 60 },
    ...{ cooldownMs: 30, cooldownReason: "retry-after" },
  });
  assert.deepEqual(sharedStatusOf("resolver Open Access", undefined, 40 * MS), {
    ...{ kind: "resolver", name: "Open Access", state: "closed", reason: undefined, remainingMs: 0 },
    ...{ cooldownMs: 0, cooldownReason: undefined, circuits: [] },
  });
});

test("the end of what blocks a host is an instant of the wall clock, and absent if nothing blocks it", () => {
  const { time, registry } = setUp();
  assert.equal(registry.state(host).openUntilWallMs, undefined);
  order(registry, "landing", OPEN);
  assert.equal(registry.state(host).openUntilWallMs, time.wallMs() + 60_000);
});
