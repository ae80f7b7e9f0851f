import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { announceOrder } from "../stores/order-log.ts";
import { hostRecordName } from "../stores/record-names.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { OrderWatch } from "./order-watch.ts";

test("a process says which orders it has not read because too many others followed", async () => {
  const store = new MemoryStore(new FakeTime());
  const member = store.member("p0");
  const read: string[] = [];
  const watch = new OrderWatch({
    store: member,
    refresh: async names => {
      read.push(...names);
      return true;
    },
    isShadow: () => false,
    onApplied: () => undefined,
  });
  const order = (host: string) => announceOrder(member, hostRecordName(host));
  await watch.check();
  const first = await order("first.example");
  await watch.check();
  assert.deepEqual(watch.applied, { sequence: first, shadowed: [], missed: undefined });
  const missed = await order("missed.example");
  for (let n = 0; n < 64; n += 1) await order(`later-${n}.example`);
  await watch.check();
  assert.deepEqual(watch.applied, { sequence: missed + 64, shadowed: [], missed: { from: missed, to: missed } });
  assert.equal(read.length, 65);
  assert.ok(!watch.hosts.has("missed.example"));
});
