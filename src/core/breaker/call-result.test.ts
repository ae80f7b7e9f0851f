import assert from "node:assert/strict";
import { test } from "node:test";
import { failureText } from "./call-result.ts";
import type { Outcome } from "./classify.ts";

const outcome: Outcome = { kind: "failure", cause: "network", throttled: false };

test("a failed call is described by its status, or by the code or class of its error, never by the error's text", () => {
  const refused = Object.assign(new Error("connect to https://api.example.org?key=s3cret"), { code: "ECONNREFUSED" });
  const wrapped = new TypeError("fetch failed", { cause: refused });
  assert.equal(failureText({ outcome, status: 503 }), "HTTP 503");
  assert.equal(failureText({ outcome, error: refused }), "ECONNREFUSED");
  assert.equal(failureText({ outcome, error: wrapped }), "ECONNREFUSED");
  assert.equal(failureText({ outcome, error: new RangeError("token=s3cret") }), "RangeError");
  assert.equal(failureText({ outcome, error: "token=s3cret" }), undefined);
  assert.equal(failureText({ outcome }), undefined);
});
