import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { RecordUpdate } from "../stores/store.ts";
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
    sharesLimits: true,
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

test("processes with the same policy write its record once, and once more after half an hour", async () => {
  const time = new FakeTime();
  const memory = new MemoryStore(time);
  let written = 0;
  for (const name of ["a", "b", "c"]) {
    const member = memory.member(name);
    const publisher = new StatusPublisher({
      time,
      store: {
        processId: name,
        processes: 3,
        exchange: (...about) => member.exchange(...about),
        read: record => member.read(record),
        list: prefix => member.list(prefix),
        change: (record, step) =>
          member.change<never, never>(record, current => {
            const update = step(current) as RecordUpdate<never, never>;
            if (record.startsWith("policy ") && update.record !== undefined) written += 1;
            return update;
          }),
        close: () => member.close(),
      },
      snapshot: () => ({ calls: 1, inFlight: 1, waiting: 0, keys: [], hosts: [] }) as unknown as HubSnapshot,
      resolvers: () => [],
      sharesLimits: true,
      policy: () => ({ configHash: "x", published: () => ({ ratelimits: [], breakers: [], identities: [] }) }),
      refresh: async () => true,
      isShadow: () => false,
    });
    publisher.scheduleWrite();
  }
  await time.advance(29 * 60_000);
  assert.equal(written, 1);
  await time.advance(2 * 60_000);
  assert.equal(written, 2);
  assert.ok((await memory.member("d").read("policy x")).record);
});
