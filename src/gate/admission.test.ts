import assert from "node:assert/strict";
import { test } from "node:test";
import type { EntryRequest } from "../limiter/entry-request.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { Gate } from "./gate.ts";

test("a refusal names the option that bounded the wait", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 200 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time);
  const messageOf = async (request: Partial<EntryRequest>) => {
    const enter = async () => gate.enter({ host: "api.example.org", role: "metadata", stamp: "granted", ...request });
    return enter().then(
      () => "granted",
      error => error.message,
    );
  };
  assert.equal(await messageOf({}), "granted");
  const reached = "rate limit 1/SECOND of api.example.org (metadata) reached: next slot in 1.0 s, but this call waits";
  assert.equal(await messageOf({}), `${reached} at most 200 ms (max_delay_ms; pass maxWaitMs to wait longer)`);
  assert.equal(await messageOf({ maxWaitMs: 300 }), `${reached} at most 300 ms (maxWaitMs)`);
  assert.equal(
    await messageOf({ maxWaitMs: 400, maxWaitOption: "deadlineMs" }),
    `${reached} at most 400 ms (the time left of deadlineMs)`,
  );
});

test("a call whose bound ends while it waits for a slot is told that bound", async () => {
  const time = new FakeTime();
  const limits = { defaults: { metadata: { rates: "100/SECOND", max_concurrent: 1 } } };
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time);
  const request = { host: "api.example.org", role: "metadata" } as const;
  await gate.enter(request);
  const refused = assert.rejects(async () => gate.enter({ ...request, maxWaitMs: 300 }), {
    name: "BusyError",
    message:
      "no free slot for api.example.org (metadata): max_concurrent 1 of api.example.org is in use, " +
      "and this call waits at most 300 ms (maxWaitMs)",
  });
  await time.advance(500);
  await refused;
});
