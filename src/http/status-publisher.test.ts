import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import type { HubSnapshot } from "./hub.ts";
import { StatusPublisher } from "./status-publisher.ts";

/** How many statuses a busy process writes within 30 s, if `processes` of them share the store. */
async function writesOf(processes: number): Promise<number> {
  const time = new FakeTime();
  const member = new MemoryStore(time).member("p");
  let writes = 0;
  const publisher = new StatusPublisher({
    time,
    store: {
      processId: "p",
      processes,
      exchange: (...about) => member.exchange(...about),
      read: name => member.read(name),
      list: prefix => member.list(prefix),
      change: (name, step) => {
        writes += 1;
        return member.change(name, step);
      },
      close: () => member.close(),
    },
    snapshot: () => ({ calls: 1, inFlight: 1, waiting: 0, keys: [], hosts: [] }) as unknown as HubSnapshot,
    resolvers: () => [],
    policy: () => ({ configHash: "x", published: () => undefined }),
    refresh: async () => true,
    isShadow: () => false,
  });
  publisher.scheduleWrite();
  await time.advance(30_000);
  return writes;
}

test("a busy process writes its status once a second, and less often if many processes share the store", async () => {
  assert.equal(await writesOf(1), 30);
  assert.equal(await writesOf(100), 30);
  assert.equal(await writesOf(1000), 3);
  assert.equal(await writesOf(100_000), 2);
});
