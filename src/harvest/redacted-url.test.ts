import assert from "node:assert/strict";
import { test } from "node:test";
import { redactedUrl } from "./redacted-url.ts";

test("secret values in a URL are replaced, the rest is kept", () => {
  assert.equal(redactedUrl("https://example.org/a?id=1#top"), "https://example.org/a?id=1");
  assert.equal(redactedUrl("https://me:pass@example.org/a"), "https://example.org/a");
  const signed = redactedUrl(
    "https://s3.example.org/x?X-Amz-Signature=abc&api_key=k&token=t&email=a%40example.org&n=2",
  );
  assert.doesNotMatch(signed, /abc|=k\b|=t\b|example.org&/);
  assert.match(signed, /n=2/);
  assert.equal(redactedUrl("nonsense"), "(invalid URL)");
});
