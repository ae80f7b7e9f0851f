import assert from "node:assert/strict";
import { test } from "node:test";
import { at, attempt, START_MS } from "../../test/telemetry/kit.ts";
import { EventHosts, HOSTS_MAX } from "./event-hosts.ts";

test("an operator's order opens one role, and its end keeps the cooldown of the host", () => {
  const host = "a.example";
  const events = new EventHosts();
  const stateAt = (ms: number) =>
    events.breakers(START_MS + ms, false).map(({ state, reason, remainingMs, circuits }) => ({
      state,
      reason,
      remainingMs,
      circuits: circuits.map(circuit => [circuit.name, circuit.state, circuit.remainingMs]),
    }));
  events.take(at(0, "breaker_cooldown_set", { host, until: START_MS + 10_000, reason: "retry-after" }));
  events.take(
    at(0, "breaker_cooldown_set", { host, role: "landing", until: START_MS + 60_000, reason: "cli-open:repair" }),
  );
  assert.deepEqual(stateAt(1000), [
    { state: "open", reason: "cli-open:repair", remainingMs: 59_000, circuits: [["landing", "open", 59_000]] },
  ]);
  assert.deepEqual(stateAt(11_000), [
    { state: "open", reason: "cli-open:repair", remainingMs: 49_000, circuits: [["landing", "open", 49_000]] },
  ]);
  events.take(at(2000, "breaker_cooldown_ended", { host, role: "landing", by: "operator" }));
  assert.deepEqual(stateAt(2000), [{ state: "open", reason: "retry-after", remainingMs: 8000, circuits: [] }]);
});

test("hosts beyond the bound are not listed, and the list says so", () => {
  const events = new EventHosts();
  for (let number = 0; number < HOSTS_MAX; number += 1) events.take(attempt(0, `h${number}.example`));
  assert.equal(events.isPartial, false);
  events.take(attempt(0, "h0.example"));
  assert.equal(events.isPartial, false, "a host that is listed needs no place");
  events.take(attempt(0, "one-more.example"));
  assert.equal(events.isPartial, true);
  assert.equal(events.keys().length, HOSTS_MAX);
});
