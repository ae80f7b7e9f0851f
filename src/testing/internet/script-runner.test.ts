import assert from "node:assert/strict";
import { test } from "node:test";
import { type SimulatedRequest, text } from "./exchange.ts";
import { type ScriptedReply, ScriptRunner } from "./script-runner.ts";
import type { ScriptStep } from "./script-step.ts";

function requestTo(url = "https://a.example/x"): SimulatedRequest {
  const { host, pathname, search, searchParams } = new URL(url);
  const where = { host, path: pathname, search, query: searchParams };
  return { method: "GET", isTls: true, ...where, headers: {}, body: "", earlierRequests: 0, wallMs: 1_800_000_000_000 };
}

function scripted(...steps: readonly ScriptStep[]): (url?: string, nowMs?: number) => ScriptedReply {
  const script = new ScriptRunner();
  for (const step of steps) script.start(step);
  return (url, nowMs = 0) => script.apply(requestTo(url), nowMs, () => text("0123456789"));
}

test("an outage applies between fromMs and untilMs to its host and path", () => {
  const at = scripted({ host: "a.example/x", effect: "outage", fromMs: 100, untilMs: 200 });
  const statuses = [0, 99, 100, 199, 200].map(ms => at("https://a.example/x/y", ms).reply.status);
  assert.deepEqual(statuses, [200, 200, 503, 503, 200]);
  assert.equal(at("https://a.example/other", 150).reply.status, 200);
  assert.equal(at("https://b.example/x", 150).reply.status, 200);
});

test("a step skips the first requests and affects a number of them", () => {
  const at = scripted({ host: "*", effect: "throttle", skip: 1, times: 2, retryAfterS: 7 });
  assert.deepEqual(
    [at(), at(), at(), at()].map(({ reply }) => [reply.status, reply.headers["retry-after"]]),
    [
      [200, undefined],
      [429, "7"],
      [429, "7"],
      [200, undefined],
    ],
  );
});

test("Retry-After can be a date, never earlier than the given seconds", () => {
  const at = scripted({ host: "*", effect: "throttle", status: 503, retryAfterS: 5, asDate: true });
  const { reply } = at();
  assert.equal(reply.status, 503);
  assert.equal(Date.parse(reply.headers["retry-after"] ?? ""), 1_800_000_005_000);
});

test("a stopped step affects no more requests", () => {
  const script = new ScriptRunner();
  const number = script.start({ host: "*", effect: "outage", how: "reset" });
  const ending = () => script.apply(requestTo(), 0, () => text("")).ending;
  assert.equal(ending(), "reset");
  script.stop(number);
  assert.equal(ending(), "answered");
});

test("a body is truncated in the middle, or at atBytes", () => {
  assert.equal(scripted({ host: "*", effect: "truncate" })().reply.cutAtBytes, 5);
  assert.equal(scripted({ host: "*", effect: "truncate", atBytes: 2 })().reply.cutAtBytes, 2);
});

test("redirects lead to the same URL hops times and keep its query", () => {
  const at = scripted({ host: "*", effect: "redirects", hops: 2 });
  const first = at("https://a.example/x?y=%2F").reply.headers["location"];
  assert.equal(first, "https://a.example/x?y=%2F&hop=1");
  const second = at(first).reply.headers["location"];
  assert.equal(second, "https://a.example/x?y=%2F&hop=2");
  assert.equal(at(second).reply.status, 200);
  // The service receives the query without the counter of redirects.
  const script = new ScriptRunner();
  script.start({ host: "*", effect: "redirects", hops: 2 });
  const { body } = script.apply(requestTo(second), 0, ({ search }) => text(search)).reply;
  assert.ok(body instanceof Uint8Array);
  assert.equal(Buffer.from(body).toString(), "?y=%2F");
});

test("steps for the same host are combined", () => {
  const at = scripted(
    { host: "*", effect: "slow", delayMs: 5 },
    { host: "*", effect: "slow", delayMs: 6, bytesPerSecond: 10 },
    { host: "*", effect: "html" },
  );
  const { delayMs, bytesPerSecond, reply } = at();
  assert.deepEqual([delayMs, bytesPerSecond, reply.headers["content-type"]], [11, 10, "text/html; charset=utf-8"]);
  assert.equal(scripted({ host: "*", effect: "challenge" })().reply.headers["cf-mitigated"], "challenge");
});

test("limits are multiplied by the factor while the step is active", () => {
  const script = new ScriptRunner();
  script.start({ host: "a.example", effect: "limits", factor: 0.5, fromMs: 10, untilMs: 20 });
  assert.deepEqual(
    [5, 10, 20].map(ms => script.limitFactorFor(requestTo(), ms)),
    [1, 0.5, 1],
  );
  assert.equal(script.apply(requestTo(), 10, () => text("x")).reply.status, 200);
});
