import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTime } from "../../testing/fake-time.ts";
import { searchWorks } from "./openalex-search.ts";

const QUERY = { text: "kelp" };

function failingSearch() {
  const time = new FakeTime();
  const stop = new AbortController();
  const requested: URL[] = [];
  const request = async (url: string | URL): Promise<never> => {
    requested.push(new URL(url));
    throw Object.assign(new Error("connect"), { code: "ECONNREFUSED" });
  };
  const works = searchWorks({ hub: { request }, time, signal: stop.signal }, QUERY);
  return { time, stop, requested, next: works.next() };
}

test("a search whose requests fail is tried four times, and the error names the host", async () => {
  const { time, requested, next } = failingSearch();
  const failed = assert.rejects(next, {
    name: "DownloadError",
    message: "the OpenAlex search (--query) failed: api.openalex.org: ECONNREFUSED",
  });
  for (let second = 0; second < 60; second += 1) await time.advance(1000);
  await failed;
  assert.equal(requested.length, 4);
});

test("an abort while a search waits before its next request ends it at once and without an error", async () => {
  const { stop, requested, next } = failingSearch();
  await new Promise(resolve => setImmediate(resolve));
  assert.equal(requested.length, 1);
  stop.abort();
  assert.deepEqual(await next, { done: true, value: undefined });
});
