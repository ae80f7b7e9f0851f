import assert from "node:assert/strict";
import { test } from "node:test";
import { workOf } from "./identifiers/identifiers.ts";
import { SecretUrls } from "./secret-urls.ts";

test("the key of a work has no secret of its URL, however long the URL is, and the URL is known by this key", () => {
  for (const filling of ["", "a/".repeat(1900)]) {
    const urls = new SecretUrls();
    const url = `https://example.org/a?token=Sesame1&path=${filling}`;
    const { key, ids } = urls.hidden(workOf({ url }));
    assert.doesNotMatch(key + ids.url, /Sesame1/);
    assert.ok(key.length <= 2500);
    assert.equal(urls.restored({ id: 1, key, ids })?.ids.url, url);
    const other = urls.hidden(workOf({ url: url.replace("Sesame1", "Sesame2") }));
    assert.notEqual(other.key, key);
  }
});
