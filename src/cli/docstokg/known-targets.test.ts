import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunningProcess } from "../../http/observer.ts";
import { loadPolicy } from "../../policy/load.ts";
import { resolveTarget } from "./breaker-target.ts";
import { KnownTargets } from "./known-targets.ts";

test("an order for the key of a host of a service with per_host is refused, and one for the host is accepted", async () => {
  const services = { each: { per_host: true }, all: { members: ["b.example"] } };
  const policy = await loadPolicy({ env: {}, ratelimits: { extends: "none", services } });
  const keys = ["service each:a.example", "service each:c.example/x with mailto#0123456789abcdef", "service all"];
  const snapshot = { hosts: [], keys: keys.map(key => ({ key })) };
  const known = new KnownTargets([policy], [], [{ pid: 1, snapshot } as unknown as RunningProcess], []);
  assert.deepEqual([...known.services].toSorted(), ["all", "each"]);
  const targetOf = (text: string) => resolveTarget(text, known, [policy]).target;
  assert.deepEqual(targetOf("a.example:landing"), { unit: "a.example", role: "landing" });
  assert.deepEqual(targetOf("c.example"), { unit: "c.example", role: undefined });
  assert.deepEqual(targetOf("service:all"), { unit: "service all", role: undefined });
  // An order for it would be stored and acknowledged, and no process would apply it to a request.
  assert.throws(() => targetOf("service:each:a.example"), /unknown target "service:each:a.example"/);
});
