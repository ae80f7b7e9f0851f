import assert from "node:assert/strict";
import { test } from "node:test";
import { host, setUp } from "../../test/breaker/kit.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { Role } from "../policy/roles.ts";
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
