import assert from "node:assert/strict";
import { test } from "node:test";
import { type CacheStore, isVariant, type StoredResponse, VARIANTS_MAX } from "../../src/http/cache/cache-store.ts";
import type { FakeTime } from "../../src/testing/fake-time.ts";

export interface StoreLimits {
  readonly maxBytes?: number;
  readonly maxEntryBytes?: number;
}

/** A store and its clock. The test that opened them cleans up. */
export interface StoreUnderTest {
  readonly store: CacheStore;
  readonly time: FakeTime;
}

export type OpenStore = (limits?: StoreLimits) => Promise<StoreUnderTest>;

export const url = "https://api.example.org/works?q=1";
/** A second before a `FakeTime` starts: no response was received in the future. */
const startMs = 1_699_999_999_000;

export function response(changes: Partial<StoredResponse> = {}): StoredResponse {
  const headers = { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] };
  const times = { requestedMs: startMs, receivedMs: startMs + 5 };
  return { status: 200, statusText: "OK", headers, ...times, varyNames: [], varyKey: "", ...changes };
}

/** A variant that is selected by `Accept`. */
export function variant(accept: string, changes: Partial<StoredResponse> = {}): StoredResponse {
  return response({ varyNames: ["accept"], varyKey: JSON.stringify([["accept", accept]]), ...changes });
}

export function bodies(store: CacheStore, of = url): readonly (string | undefined)[] {
  return store.find(of).map(found => found.body()?.toString());
}

const text = (content: string) => [Buffer.from(content)];

/** The contract of every CacheStore. */
export function cacheStoreSuite(name: string, open: OpenStore): void {
  const law = (sentence: string, check: (under: StoreUnderTest) => void) =>
    test(`${name}: ${sentence}`, async () => check(await open()));

  law("an empty store finds nothing", ({ store }) => {
    assert.deepEqual(store.find(url), []);
    assert.equal(store.stats.entries, 0);
    assert.equal(store.stats.bytes, 0);
  });

  law("a stored response is found, with its head and its body", ({ store }) => {
    const put = response({ status: 404, statusText: "Nicht gefunden ☃" });
    assert.equal(store.put(url, put, [Buffer.from("ab"), Buffer.from("c")]), true);
    const [found, ...others] = store.find(url);
    assert.deepEqual(others, []);
    assert.ok(found !== undefined);
    const { status, statusText, headers, requestedMs, receivedMs, varyNames, varyKey, bodyBytes } = found;
    assert.deepEqual({ status, statusText, headers, requestedMs, receivedMs, varyNames, varyKey }, put);
    assert.equal(bodyBytes, 3);
    assert.equal(found.body()?.toString(), "abc");
  });

  law("a body may be empty, or any bytes", ({ store }) => {
    store.put(url, response(), []);
    assert.equal(store.find(url)[0]?.body()?.length, 0);
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    store.put(url, response(), [bytes]);
    assert.deepEqual(store.find(url)[0]?.body(), bytes);
  });

  law("a stored body does not change when its chunks do", ({ store }) => {
    const chunk = Buffer.from("abc");
    store.put(url, response(), [chunk]);
    chunk.fill("x");
    assert.deepEqual(bodies(store), ["abc"]);
  });

  law("URLs do not mix", ({ store }) => {
    store.put(url, response(), text("one"));
    store.put(`${url}&p=2`, response(), text("two"));
    assert.deepEqual(bodies(store), ["one"]);
    assert.deepEqual(bodies(store, `${url}&p=2`), ["two"]);
  });

  law("a response replaces the one of the same variant", ({ store }) => {
    store.put(url, response(), text("old"));
    store.put(url, response(), text("new"));
    assert.deepEqual(bodies(store), ["new"]);
    assert.equal(store.stats.entries, 1);
  });

  law("all variants are found, the most recently stored first", ({ store }) => {
    store.put(url, variant("a", { receivedMs: startMs + 10 }), text("a"));
    store.put(url, variant("b", { receivedMs: startMs + 20 }), text("b"));
    store.put(url, response({ receivedMs: startMs + 30 }), text("plain"));
    assert.deepEqual(bodies(store), ["plain", "b", "a"]);
    store.put(url, variant("a", { receivedMs: startMs + 40 }), text("a2"));
    assert.deepEqual(bodies(store), ["a2", "plain", "b"]);
  });

  law("a variant is selected by its key, also when the key is stored as a digest", ({ store }) => {
    const put = variant("secret");
    store.put(url, put, text("a"));
    const [found] = store.find(url);
    assert.ok(found !== undefined);
    assert.equal(isVariant(found, put.varyKey), true);
    assert.equal(isVariant(found, variant("other").varyKey), false);
    assert.equal(isVariant(found, ""), false);
    assert.deepEqual(found.varyNames, ["accept"]);
  });

  law("beyond VARIANTS_MAX the oldest variant is removed", ({ store }) => {
    for (let at = 0; at <= VARIANTS_MAX; at += 1) {
      store.put(url, variant(String(at), { receivedMs: startMs + at }), text(String(at)));
    }
    const left = bodies(store);
    assert.equal(left.length, VARIANTS_MAX);
    assert.equal(left[0], String(VARIANTS_MAX));
    assert.equal(left.at(-1), "1");
    assert.equal(store.stats.entries, VARIANTS_MAX);
  });

  law("freshening replaces the head and keeps the body", ({ store }) => {
    store.put(url, variant("a"), text("a"));
    const [old] = store.find(url);
    assert.ok(old !== undefined);
    const fresh = { ...variant("a"), headers: { etag: '"2"' }, requestedMs: startMs + 100, receivedMs: startMs + 101 };
    store.freshen(url, old, fresh);
    const [found] = store.find(url);
    assert.deepEqual(found?.headers, { etag: '"2"' });
    assert.equal(found?.requestedMs, startMs + 100);
    assert.equal(found?.receivedMs, startMs + 101);
    assert.equal(found?.body()?.toString(), "a");
    assert.equal(found && isVariant(found, fresh.varyKey), true);
    assert.equal(store.stats.entries, 1);
  });

  law("a freshened variant can be freshened again", ({ store }) => {
    store.put(url, response(), text("a"));
    for (let round = 1; round <= 3; round += 1) {
      const [old] = store.find(url);
      assert.ok(old !== undefined);
      store.freshen(url, old, { ...old, receivedMs: startMs + 1000 * round, statusText: String(round) });
    }
    assert.equal(store.find(url)[0]?.statusText, "3");
    assert.deepEqual(bodies(store), ["a"]);
  });

  law("freshening does not change a variant that was replaced meanwhile", ({ store }) => {
    store.put(url, response(), text("old"));
    const [old] = store.find(url);
    assert.ok(old !== undefined);
    store.put(url, response({ receivedMs: startMs + 50, statusText: "newer" }), text("new"));
    store.freshen(url, old, response({ receivedMs: startMs + 60, statusText: "freshened" }));
    assert.equal(store.find(url)[0]?.statusText, "newer");
    assert.deepEqual(bodies(store), ["new"]);
  });

  law("freshening a missing variant does nothing", ({ store }) => {
    store.freshen(url, response(), response({ statusText: "fresh" }));
    store.put(url, variant("a"), text("a"));
    store.freshen(url, variant("b"), variant("b", { statusText: "fresh" }));
    assert.deepEqual(bodies(store), ["a"]);
    assert.equal(store.stats.entries, 1);
  });

  law("a freshened response with another Vary replaces the variant that has its new id", ({ store }) => {
    store.put(url, variant("a"), text("a"));
    store.put(url, response({ receivedMs: startMs + 10 }), text("plain"));
    const plain = store.find(url).find(({ varyNames }) => varyNames.length === 0);
    assert.ok(plain !== undefined);
    store.freshen(url, plain, variant("a", { receivedMs: startMs + 20 }));
    assert.deepEqual(bodies(store), ["plain"]);
    assert.equal(store.stats.entries, 1);
  });

  law("removing a URL removes all its variants and nothing else", ({ store }) => {
    store.put(url, variant("a"), text("a"));
    store.put(url, variant("b"), text("b"));
    store.put(`${url}2`, response(), text("c"));
    store.remove(url);
    store.remove("https://nobody.example/");
    assert.deepEqual(store.find(url), []);
    assert.deepEqual(bodies(store, `${url}2`), ["c"]);
    assert.equal(store.stats.entries, 1);
  });

  law("without entries the counts are 0", ({ store }) => {
    store.put(url, response(), text("a"));
    const [old] = store.find(url);
    if (old) store.freshen(url, old, response({ headers: {}, receivedMs: startMs + 9 }));
    store.put(url, variant("b"), text("b"));
    store.put(url, variant("b"), text("bbb"));
    assert.ok(store.stats.bytes > 4);
    store.remove(url);
    assert.equal(store.stats.entries, 0);
    assert.equal(store.stats.bytes, 0);
  });

  test(`${name}: a body above the limit is not stored, and one at the limit is`, async () => {
    const { store } = await open({ maxEntryBytes: 4 });
    assert.equal(store.maxEntryBytes, 4);
    assert.equal(store.put(url, response(), text("abcd")), true);
    assert.equal(store.put(url, response(), [Buffer.from("abc"), Buffer.from("de")]), false);
    assert.deepEqual(bodies(store), ["abcd"]);
  });

  test(`${name}: the least recently used entries are evicted`, async () => {
    const { store, time } = await open({ maxBytes: 100_000, maxEntryBytes: 50_000 });
    const large = [Buffer.alloc(30_000)];
    for (const page of ["1", "2", "3"]) {
      assert.equal(store.put(url + page, response(), large), true);
      await time.advance(120_000);
    }
    assert.equal(store.find(`${url}1`).length, 1);
    await time.advance(120_000);
    assert.equal(store.put(`${url}4`, response(), large), true);
    await time.advance(1000);
    assert.deepEqual(
      ["1", "2", "3", "4"].map(page => store.find(url + page).length),
      [1, 0, 1, 1],
    );
    assert.ok(store.stats.bytes <= 100_000);
    assert.equal(store.stats.entries, 3);
  });

  test(`${name}: many small entries are evicted for a large one, and the limit holds`, async () => {
    const { store, time } = await open({ maxBytes: 300_000, maxEntryBytes: 200_000 });
    for (let page = 0; page < 300; page += 1) {
      store.put(url + page, response(), [Buffer.alloc(200)]);
      await time.advance(1);
    }
    assert.equal(store.put(url, response(), [Buffer.alloc(200_000)]), true);
    await time.advance(1000);
    assert.equal(store.find(url)[0]?.bodyBytes, 200_000);
    assert.ok(store.stats.bytes <= 300_000);
    assert.ok(store.stats.entries > 50);
  });

  test(`${name}: an entry larger than the cache is not stored`, async () => {
    const { store } = await open({ maxBytes: 1000 });
    store.put(url, response(), text("a"));
    assert.equal(store.put(`${url}2`, response(), [Buffer.alloc(1000)]), false);
    assert.deepEqual(bodies(store), ["a"]);
  });

  law("a closed store finds and stores nothing, and may be closed again", ({ store }) => {
    store.put(url, response(), text("a"));
    store.close();
    store.close();
    assert.deepEqual(store.find(url), []);
    assert.equal(store.put(url, response(), text("a")), false);
    store.freshen(url, response(), response());
    store.remove(url);
    assert.equal(store.stats.entries, 0);
  });
}
