import assert from "node:assert/strict";
import { test } from "node:test";
import { matchesBody, matchesHeader, matchesStatus, type ThrottleRule } from "./throttle-rule.ts";

const ANY: ThrottleRule = { statuses: undefined, header: undefined, body: undefined, retryAfterMs: undefined };

test("a part that a rule does not have matches every response", () => {
  assert.equal(matchesStatus(ANY, 200), true);
  assert.equal(
    matchesHeader(ANY, () => undefined),
    true,
  );
  assert.equal(matchesBody(ANY, ""), true);
});

test("a status matches if the rule names it", () => {
  const rule = { ...ANY, statuses: new Set([200, 403]) };
  assert.equal(matchesStatus(rule, 403), true);
  assert.equal(matchesStatus(rule, 429), false);
});

test("a header field matches if it has the text, in any case, or merely exists for an empty text", () => {
  const field = (name: string) => (name === "x-error" ? "Rate Limit reached" : undefined);
  const matches = (name: string, text: string) => matchesHeader({ ...ANY, header: { name, text } }, field);
  assert.equal(matches("x-error", "rate limit"), true);
  assert.equal(matches("x-error", "quota"), false);
  assert.equal(matches("x-error", ""), true);
  assert.equal(matches("x-other", ""), false);
});

test("a body matches if it has the text, in any case", () => {
  const rule = { ...ANY, body: "limit exceeded" };
  assert.equal(matchesBody(rule, "API rate LIMIT exceeded"), true);
  assert.equal(matchesBody(rule, "hello"), false);
});
