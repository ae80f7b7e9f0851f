import assert from "node:assert/strict";
import { test } from "node:test";
import { response, variant } from "../../../test/http/cache-store-suite.ts";
import { digestVaryKey, isVariant } from "./cache-store.ts";

test("a digest of a vary key is not digested again, and an empty key stays empty", () => {
  const key = variant("a").varyKey;
  assert.equal(digestVaryKey(digestVaryKey(key)), digestVaryKey(key));
  assert.equal(digestVaryKey(""), "");
  assert.equal(isVariant(response({ varyKey: digestVaryKey(key) }), key), true);
});
