import assert from "node:assert/strict";
import { test } from "node:test";
import { hasValidFields, withCurrentNames } from "./event-check.ts";

test("an event with a missing field or a value of another type is not valid", () => {
  const event = { host: "a.example", role: "metadata" };
  assert.ok(hasValidFields("rate_head_skipped", event));
  assert.ok(!hasValidFields("rate_head_skipped", { host: "a.example" }));
  assert.ok(!hasValidFields("rate_head_skipped", { ...event, host: 7 }));
  assert.ok(!hasValidFields("ratelimit.cooldown", { key: "a.example", role: "metadata", seconds: Number.NaN }));
});

test("limit_learned events of version 0.1, which name the key host, are read with the field key", () => {
  const fields = { role: "metadata", what: "rate", old: "10/SECOND", new: "5/SECOND", source: "RateLimit" };
  const current = { key: "a.example", ...fields };
  assert.deepEqual(withCurrentNames("limit_learned", { host: "a.example", ...fields }), current);
  assert.deepEqual(withCurrentNames("limit_learned", { host: "a.example", key: null, ...fields }), current);
  assert.equal(withCurrentNames("limit_learned", current), current);
  assert.ok(hasValidFields("limit_learned", current));
});

test("breaker events of version 0.1, which name from_peer heard, are read with the field from_peer", () => {
  const change = { host: "a.example", role: "metadata", old: "closed", new: "open" };
  assert.deepEqual(withCurrentNames("breaker_state_change", { ...change, heard: true }), {
    ...change,
    from_peer: true,
  });
  const current = { ...change, from_peer: true };
  assert.equal(withCurrentNames("breaker_state_change", current), current);
});
