import assert from "node:assert/strict";
import { test } from "node:test";
import { bodies, cacheStoreSuite, response, url, variant } from "../../../test/http/cache-store-suite.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { MemoryCache } from "./memory-cache.ts";

const text = (content: string) => [Buffer.from(content)];

cacheStoreSuite("memory", async limits => ({ store: new MemoryCache(limits), time: new FakeTime() }));

test("a found response does not change when others are stored", () => {
  const cache = new MemoryCache();
  cache.put(url, response(), text("old"));
  const found = cache.find(url);
  cache.put(url, response(), text("new"));
  cache.remove(url);
  assert.deepEqual(
    found.map(one => one.body()?.toString()),
    ["old"],
  );
});

test("a hit returns the same objects each time", () => {
  const cache = new MemoryCache();
  cache.put(url, response(), text("a"));
  assert.equal(cache.find(url), cache.find(url));
});

test("the number of entries is limited", () => {
  const cache = new MemoryCache({ maxEntries: 3 });
  for (const page of ["1", "2", "3"]) cache.put(url + page, response(), text(page));
  cache.find(`${url}1`);
  cache.put(`${url}4`, response(), text("4"));
  assert.deepEqual(
    ["1", "2", "3", "4"].map(page => bodies(cache, url + page).length),
    [1, 0, 1, 1],
  );
  assert.equal(new MemoryCache({ maxEntries: 0 }).put(url, response(), []), false);
});

test("large variants of one URL evict each other", () => {
  const cache = new MemoryCache({ maxBytes: 10_000 });
  for (const accept of ["a", "b", "c"]) cache.put(url, variant(accept), [Buffer.alloc(4000, accept)]);
  assert.deepEqual(
    cache.find(url).map(found => String(found.body()).slice(0, 1)),
    ["c", "b"],
  );
});

test("a limit that is not a number is refused", () => {
  assert.throws(() => new MemoryCache({ maxBytes: Number.NaN }), RangeError);
  assert.throws(() => new MemoryCache({ maxEntries: -1 }), RangeError);
});
