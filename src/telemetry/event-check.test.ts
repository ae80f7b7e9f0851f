import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "../../test/telemetry/kit.ts";
import { hasValidFields, withCurrentFields } from "./event-check.ts";

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
  assert.deepEqual(withCurrentFields("limit_learned", { host: "a.example", ...fields }), current);
  assert.deepEqual(withCurrentFields("limit_learned", { host: "a.example", key: null, ...fields }), current);
  assert.equal(withCurrentFields("limit_learned", current), current);
  assert.ok(hasValidFields("limit_learned", current));
});

test("breaker events of version 0.1, which name from_peer heard, are read with the field from_peer", () => {
  const change = { host: "a.example", role: "metadata", old: "closed", new: "open" };
  assert.deepEqual(withCurrentFields("breaker_state_change", { ...change, heard: true }), {
    ...change,
    from_peer: true,
  });
  const current = { ...change, from_peer: true };
  assert.equal(withCurrentFields("breaker_state_change", current), current);
});

test("fields that earlier versions did not write have a value, and those that an event has are kept", () => {
  const { call_id, final_host, unsent_wait_ms, unsent_slot_wait_ms, ...old } = call(0, "a.example");
  assert.deepEqual(withCurrentFields("http_request", { ...old, unsent_wait_ms: 5, unsent_slot_wait_ms: null }), {
    ...old,
    call_id: "",
    final_host: "a.example",
    unsent_wait_ms: 5,
    unsent_slot_wait_ms: 0,
  });
  const current = call(0, "a.example");
  assert.equal(withCurrentFields("http_request", current as never), current);
});
