import assert from "node:assert/strict";
import { test } from "node:test";
import { response, url, variant } from "../../../test/http/cache-store-suite.ts";
import { inspectCache } from "./cache-inspection.ts";
import type { StoredResponse } from "./cache-store.ts";
import { MemoryCache } from "./memory-cache.ts";

const headers = { "cache-control": "max-age=60" };

function varies(stored: StoredResponse): readonly string[] | undefined {
  const cache = new MemoryCache();
  cache.put(url, stored, [Buffer.from("a")]);
  return inspectCache(cache, new URL(url), stored.receivedMs)[0]?.varies;
}

test("a stored part answers only requests with a range, so it varies by range", () => {
  const part = { headers: { ...headers, "content-range": "bytes 0-0/10" }, status: 206 };
  assert.deepEqual(varies(response(part)), ["range"]);
  assert.deepEqual(varies(variant("a/b", part)), ["accept", "range"]);
});

test("a response that a request without headers gets varies by nothing", () => {
  assert.deepEqual(varies(response({ headers })), []);
  assert.deepEqual(varies(variant("a/b", { headers })), ["accept"]);
  assert.deepEqual(varies(response({ headers, varyNames: ["accept"], varyKey: '[["accept",null]]' })), []);
});
