import assert from "node:assert/strict";
import { test } from "node:test";
import { versionedUrl } from "./versioned-url.ts";

test("the address of a version is the first one that names the version and the format", () => {
  const release = "http://purl.example/hp/releases/2025-01-16/hp.owl";
  assert.equal(versionedUrl([null, "https://a.example/hp.owl", release], "2025-01-16", "owl"), release);
  assert.equal(versionedUrl(["https://a.example/v1.2/x.ttl#o"], "1.2", "ttl"), "https://a.example/v1.2/x.ttl");
  for (const address of [
    "https://a.example/hp.owl",
    "https://a.example/2025-01-16/hp.json",
    "https://a.example/2025-01-16/hp.owl?sig=secret",
    "https://user:secret@a.example/2025-01-16/hp.owl",
    "ftp://a.example/2025-01-16/hp.owl",
    "urn:x:2025-01-16",
  ]) {
    assert.equal(versionedUrl([address], "2025-01-16", "owl"), null, address);
  }
});
