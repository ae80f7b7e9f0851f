import assert from "node:assert/strict";
import { test } from "node:test";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { Grant } from "./grant.ts";

const REQUEST = { host: "a.example", role: "metadata" } as const;

test("one that was dropped frees its slot at once, and counts until its server may have noticed it", async () => {
  const time = new FakeTime();
  const metadata = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0, max_concurrent: 1 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time);
  const grant = gate.enter(REQUEST) as Grant;
  await time.advance(10);
  grant.releaseUnstamped();
  assert.equal(gate.inFlight, 0);
  await time.advance(90);
  grant.written();
  // What comes after its end changes nothing.
  await time.advance(50);
  grant.written();
  grant.release();
  grant.giveBack();
  await time.advance(949);
  assert.equal(gate.tryEnter(REQUEST), undefined);
  await time.advance(1);
  assert.ok(gate.tryEnter(REQUEST));
  assert.equal(gate.inFlight, 1);
});

test("one that was written already is released as ever", async () => {
  const time = new FakeTime();
  const metadata = { rates: "1/SECOND", guard_ms: 0, max_delay_ms: 0, max_concurrent: 1 };
  const gate = new Gate(limitPoliciesFrom({ defaults: { metadata } }, "test"), time);
  const grant = gate.enter(REQUEST) as Grant;
  grant.written();
  await time.advance(100);
  grant.releaseUnstamped();
  grant.written();
  assert.equal(gate.inFlight, 0);
  await time.advance(900);
  assert.ok(gate.tryEnter(REQUEST));
});
