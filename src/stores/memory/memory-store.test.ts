import assert from "node:assert/strict";
import { test } from "node:test";
import { recordContract } from "../../../test/stores/record-contract.ts";
import { storeContract, type TestedStore } from "../../../test/stores/store-contract.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { MemoryStore } from "./memory-store.ts";

async function tested(): Promise<TestedStore> {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  let members = 0;
  return {
    member: async () => {
      members += 1;
      return store.member(`p${members}`);
    },
    advance: ms => time.advance(ms),
  };
}
storeContract("memory", tested);
recordContract("memory", tested);

test("memory: expired budgets are evicted", async () => {
  const time = new FakeTime();
  const store = new MemoryStore(time, { leaseMs: 5000 });
  const member = store.member("p");
  const claimOf = (key: string) => ({ key, windows: [{ limit: 1, windowUs: 1000, spanUs: 1000 }], spacingUs: 0 });
  for (let host = 0; host < 100; host += 1)
    await member.exchange([], [{ claims: [claimOf(`h${host}`)], least: 1, most: 1 }]);
  assert.equal(store.size, 100);
  await time.advance(5002);
  for (let call = 0; call < 60; call += 1) await member.exchange([], []);
  assert.equal(store.size, 0);
});
