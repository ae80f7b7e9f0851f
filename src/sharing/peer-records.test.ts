import assert from "node:assert/strict";
import { test } from "node:test";
import { StoreError } from "../errors.ts";
import { MemoryStore } from "../stores/memory/memory-store.ts";
import type { RecordStore } from "../stores/store.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { PeerRecords } from "./peer-records.ts";

interface Counter {
  readonly count: number;
  readonly endUs: number;
}

const NAME = "counter a";
const KIND = { empty: { count: 0, endUs: 0 }, expiryUs: ({ endUs }: Counter) => endUs + 60_000_000 };
const increment = ({ count }: Counter, nowUs: number): Counter => ({ count: count + 1, endUs: nowUs + 1000 });

/** Two processes that share a store. */
function processesOf(wrap: (store: RecordStore) => RecordStore = store => store) {
  const time = new FakeTime();
  const store = new MemoryStore(time);
  const records = ["a", "b"].map(id => new PeerRecords<Counter>(wrap(store.member(id)), time, KIND));
  return { time, a: records[0] as PeerRecords<Counter>, b: records[1] as PeerRecords<Counter> };
}

test("a record is applied at the moment from which it is fresh", async () => {
  const { a, b } = processesOf();
  await a.write(NAME, increment);
  const seen: unknown[] = [];
  const reading = b.read(NAME, ({ count }, known) => seen.push([count, known.count, b.isFresh(NAME)]));
  while (!b.isFresh(NAME)) await Promise.resolve();
  assert.deepEqual(seen, [[1, 0, true]]);
  await reading;
});

test("a record is fresh for 25 ms, and an unknown one is not", async () => {
  const { time, a } = processesOf();
  assert.equal(a.isFresh(NAME), false);
  await a.read(NAME);
  assert.equal(a.isFresh(NAME), true);
  await time.advance(24);
  assert.equal(a.isFresh(NAME), true);
  await time.advance(1);
  assert.equal(a.isFresh(NAME), false);
});

test("writes of one record run one after the other, and results before the last are not applied", async () => {
  const { a, b } = processesOf();
  const applied: number[] = [];
  const writes = [1, 2, 3].map(() => a.write(NAME, increment, ({ count }) => applied.push(count)));
  const read = a.read(NAME, ({ count }) => applied.push(count));
  await Promise.all([...writes, read]);
  assert.deepEqual(applied, [3, 3]);
  await b.read(NAME);
  assert.equal(b.known(NAME).count, 3);
});

test("a record with a pending write is not evicted, so that a read waits for the write", async () => {
  const { time, a } = processesOf(store => ({
    read: name => store.read(name),
    list: prefix => store.list(prefix),
    change: async (name, step) => {
      await time.sleep(300);
      return store.change(name, step);
    },
  }));
  await time.advance(120_000);
  void a.write(NAME, increment);
  for (let other = 0; other < 3000; other += 1) a.known(`counter ${other}`);
  const seen: number[] = [];
  void a.read(NAME, ({ count }) => seen.push(count));
  await time.advance(1000);
  assert.deepEqual(seen, [1]);
});

test("a write that fails rejects, and neither blocks nor undoes the next one", async () => {
  let isAway = true;
  const { a } = processesOf(store => ({
    read: name => store.read(name),
    list: prefix => store.list(prefix),
    change: (name, step) => (isAway ? Promise.reject(new StoreError("away")) : store.change(name, step)),
  }));
  const failed = assert.rejects(a.write(NAME, increment), StoreError);
  await a.flush();
  isAway = false;
  await a.write(NAME, increment);
  await failed;
  assert.equal(a.known(NAME).count, 1);
});

test("a store that has lost a record leaves the process what it knows", async () => {
  let isLost = false;
  const { a } = processesOf(store => ({
    read: async name => (isLost ? { record: undefined, nowUs: 0 } : store.read(name)),
    list: prefix => store.list(prefix),
    change: (name, step) => store.change(name, step),
  }));
  await a.write(NAME, increment);
  isLost = true;
  const applied: Counter[] = [];
  await a.read(NAME, record => applied.push(record));
  assert.deepEqual(applied, []);
  assert.equal(a.known(NAME).count, 1);
});
