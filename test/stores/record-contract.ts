/** The behaviour of records in every store. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Store } from "../../src/stores/store.ts";
import type { TestedStore } from "./store-contract.ts";

interface CountRecord {
  readonly count: number;
  readonly startedUs: number;
}

/** Increments the counter in a record, and keeps the record for `keepMs`. */
function count(store: Store, name: string, keepMs = 60_000): Promise<number> {
  return store.change<CountRecord, number>(name, ({ record, nowUs }) => {
    const next = { count: (record?.count ?? 0) + 1, startedUs: record?.startedUs ?? nowUs };
    return { record: { next, keepUntilUs: nowUs + keepMs * 1000 }, result: next.count };
  });
}

export function recordContract(name: string, open: (t: TestContext) => Promise<TestedStore>): void {
  const it = (sentence: string, act: (tested: TestedStore) => Promise<void>) =>
    test(`${name}: ${sentence}`, async t => act(await open(t)));

  it("a record written by one process is read by all, with the time of the store", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal((await b.read("test a")).record, undefined);
    await count(a, "test a");
    const first = await b.read<CountRecord>("test a");
    assert.equal(first.record?.count, 1);
    await tested.advance(250);
    const second = await b.read<CountRecord>("test a");
    assert.equal(second.nowUs - first.nowUs, 250_000);
    assert.deepEqual(second.record, first.record);
  });

  it("no concurrent change of a record is lost", async tested => {
    const members = [await tested.member(), await tested.member(), await tested.member()];
    const results = await Promise.all(
      members.flatMap(member => Array.from({ length: 8 }, () => count(member, "test a"))),
    );
    assert.deepEqual(
      results.toSorted((a, b) => a - b),
      Array.from({ length: 24 }, (_, index) => index + 1),
    );
  });

  it("a step without an update changes nothing and returns its result", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    await count(a, "slots k");
    assert.equal(
      await b.change<CountRecord, number>("slots k", ({ record }) => ({ result: (record?.count ?? 0) * 10 })),
      10,
    );
    assert.equal((await a.read<CountRecord>("slots k")).record?.count, 1);
  });

  it("a record expires at its keepUntilUs", async tested => {
    const store = await tested.member();
    await count(store, "test a", 5000);
    await tested.advance(4999);
    assert.equal((await store.list("test ")).length, 1);
    await tested.advance(1);
    assert.equal((await store.read("test a")).record, undefined);
    assert.deepEqual(await store.list("test "), []);
    assert.equal(await count(store, "test a"), 1);
  });

  it("records are listed by the prefix of their names", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    for (const subject of ["test b", "test a", "process 1", "tester"]) await count(a, subject);
    const listed = await b.list<CountRecord>("test ");
    assert.deepEqual(listed.map(({ name: found }) => found).toSorted(), ["test a", "test b"]);
    assert.ok(listed.every(({ record }) => record?.count === 1));
  });

  it("a step that throws fails its own call and nothing else", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const broken = a.change("test a", () => {
      throw new RangeError("not today");
    });
    await assert.rejects(broken);
    assert.equal(await count(b, "test a"), 1);
    assert.equal(await count(a, "test a"), 2);
  });
}
