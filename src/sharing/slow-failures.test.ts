import assert from "node:assert/strict";
import { test } from "node:test";
import { storeWith } from "../../test/sharing/store-with.ts";
import { StoreError } from "../errors.ts";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";

/** A store that fails a call after this time. */
const SILENT_MS = 1000;
const AWAY_S = 60;
const METADATA = { rates: "100/SECOND", max_delay_ms: 600_000 };

test("while a store is silent calls wait for its records a fifth of the time, and when it is back they read at once", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time).member("a");
  let isSilent = false;
  let reads = 0;
  const orSilent = async <Reply>(reply: () => Promise<Reply>): Promise<Reply> => {
    if (!isSilent) return reply();
    await time.sleep(SILENT_MS);
    throw new StoreError("no reply");
  };
  const parts = storeWith(store, {
    exchange: (...exchange) => orSilent(() => store.exchange(...exchange)),
    change: (name, step) => orSilent(() => store.change(name, step)),
    read: name => {
      reads += 1;
      return orSilent(() => store.read(name));
    },
  });
  const breakers = new BreakerRegistry({}, { time });
  const limits = limitPoliciesFrom({ defaults: { metadata: METADATA } }, "test");
  const gate = new Gate(limits, time, { breakers, store: parts, random: () => 0 });
  const enter = async () => {
    const grant = await gate.enter({ host: "a.example", role: "metadata" });
    grant.written();
    grant.release();
  };
  await enter();
  isSilent = true;
  await time.advance(1000);
  reads = 0;
  const calls: Promise<void>[] = [];
  for (let at = 0; at < AWAY_S * 10; at += 1) {
    calls.push(enter());
    await time.advance(100);
  }
  await time.advance(2 * SILENT_MS);
  await Promise.all(calls);
  assert.equal(reads, (AWAY_S * 1000) / (5 * SILENT_MS));
  isSilent = false;
  // The limits are tried again all the time.
  const call = enter();
  await time.advance(3000);
  await call;
  reads = 0;
  await enter();
  assert.equal(reads, 1);
  await gate.close();
});
