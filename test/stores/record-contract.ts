/** What every store must do with notes. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Store } from "../../src/stores/store.ts";
import type { TestedStore } from "./store-contract.ts";

interface Tally {
  readonly count: number;
  readonly startedUs: number;
}

/** Counts in a note, and keeps it for so long. */
function count(store: Store, name: string, keepMs = 60_000): Promise<number> {
  return store.change<Tally, number>(name, ({ note, nowUs }) => {
    const next = { count: (note?.count ?? 0) + 1, startedUs: note?.startedUs ?? nowUs };
    return { note: { next, keepUntilUs: nowUs + keepMs * 1000 }, result: next.count };
  });
}

export function notesContract(name: string, open: (t: TestContext) => Promise<TestedStore>): void {
  const it = (sentence: string, act: (tested: TestedStore) => Promise<void>) =>
    test(`${name}: ${sentence}`, async t => act(await open(t)));

  it("a note that one process leaves is read by all, with the store's own time", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    assert.equal((await b.read("test a")).note, undefined);
    await count(a, "test a");
    const first = await b.read<Tally>("test a");
    assert.equal(first.note?.count, 1);
    await tested.advance(250);
    const second = await b.read<Tally>("test a");
    assert.equal(second.nowUs - first.nowUs, 250_000);
    assert.deepEqual(second.note, first.note);
  });

  it("no change of a note is lost, whoever makes it at the same time", async tested => {
    const members = [await tested.member(), await tested.member(), await tested.member()];
    const results = await Promise.all(
      members.flatMap(member => Array.from({ length: 8 }, () => count(member, "test a"))),
    );
    assert.deepEqual(
      results.toSorted((a, b) => a - b),
      Array.from({ length: 24 }, (_, index) => index + 1),
    );
  });

  it("a step that leaves a note alone changes nothing, and still answers", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    await count(a, "slots k");
    assert.equal(await b.change<Tally, number>("slots k", ({ note }) => ({ result: (note?.count ?? 0) * 10 })), 10);
    assert.equal((await a.read<Tally>("slots k")).note?.count, 1);
  });

  it("a note is forgotten when its time is over", async tested => {
    const store = await tested.member();
    await count(store, "test a", 5000);
    await tested.advance(4999);
    assert.equal((await store.list("test ")).length, 1);
    await tested.advance(1);
    assert.equal((await store.read("test a")).note, undefined);
    assert.deepEqual(await store.list("test "), []);
    assert.equal(await count(store, "test a"), 1);
  });

  it("notes are listed by the beginning of their names", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    for (const subject of ["test b", "test a", "process 1", "tester"]) await count(a, subject);
    const listed = await b.list<Tally>("test ");
    assert.deepEqual(listed.map(({ name: found }) => found).toSorted(), ["test a", "test b"]);
    assert.ok(listed.every(({ note }) => note?.count === 1));
  });

  it("a step that throws breaks its own call, and nothing else", async tested => {
    const [a, b] = [await tested.member(), await tested.member()];
    const broken = a.change("test a", () => {
      throw new RangeError("not today");
    });
    await assert.rejects(broken);
    assert.equal(await count(b, "test a"), 1);
    assert.equal(await count(a, "test a"), 2);
  });
}
