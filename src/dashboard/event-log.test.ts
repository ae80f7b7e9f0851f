import assert from "node:assert/strict";
import { test } from "node:test";
import { acquire, at, attempt, call } from "../../test/telemetry/kit.ts";
import { EventLog } from "./event-log.ts";

const host = "a.example";

test("notable events are kept as sentences, and ordinary requests and refusals are routine", () => {
  const log = new EventLog();
  const opened = {
    host,
    role: "metadata",
    old: "closed",
    new: "open",
    reset_timeout_s: 59.9998,
    last_rate_delay_ms: 0,
  } as const;
  log.take(call(0, host), true);
  log.take(call(1, host, { status: undefined, error: "DOCSTOKG_BREAKER_OPEN", attempts: 0 }), true);
  log.take(call(2, host, { status: undefined, error: "ECONNRESET" }), true);
  log.take(attempt(3, host, { status: 429, outcome: "throttled", retry_after_s: 20 }), true);
  log.take(acquire(4, host, "granted"), true);
  log.take(at(5, "breaker_state_change", opened), true);
  const rows = log.takeAll().map(({ text, level, isRoutine }) => `${isRoutine ? "routine" : level} ${text}`);
  assert.deepEqual(rows, [
    "routine GET 200 in 0 ms",
    "routine GET refused: circuit open",
    "bad GET ECONNRESET in 0 ms",
    "warn GET 429 (call): throttled, Retry-After 20 s",
    "routine granted after 0 ms",
    "bad circuit closed → open for 60 s",
  ]);
  assert.equal(log.takeAll().length, 3);
});

test("a refusal that shadow mode did not enforce is listed with the refusals", () => {
  const log = new EventLog();
  const limit = {
    key: host,
    role: "metadata",
    would: "wait",
    wait_ms: 340.4,
    constraint: "10/SECOND of a.example",
  } as const;
  log.take(at(0, "ratelimit.shadow", limit), true);
  log.take(at(1, "breaker_shadow", { host, role: "metadata", reason: "failures", remaining_ms: 10 }), true);
  assert.deepEqual(
    log.takeAll().map(({ text, level, isRoutine }) => ({ text, level, isRoutine })),
    [
      { text: "shadow mode: would wait 340 ms for 10/SECOND of a.example", level: "warn", isRoutine: true },
      { text: "shadow mode: would refuse: failures", level: "warn", isRoutine: true },
    ],
  );
});

test("ordinary requests are not prepared while no page is connected, and at most 40 between two messages", () => {
  const log = new EventLog();
  log.take(call(0, host), false);
  assert.deepEqual(log.takeAll(), []);
  for (let ms = 0; ms < 1000; ms += 1) log.take(call(ms, host), true);
  assert.equal(log.takeAll().length, 40);
});

test("at most 500 notable events are kept, the latest ones", () => {
  const log = new EventLog();
  for (let seconds = 1; seconds <= 2000; seconds += 1)
    log.take(at(seconds, "ratelimit.cooldown", { key: host, role: "metadata", seconds }), false);
  const rows = log.takeAll();
  assert.equal(rows.length, 500);
  assert.equal(rows.at(-1)?.text, "held for 2000 s");
});

test("secrets in texts of events are removed, and long texts are cut", () => {
  const log = new EventLog();
  log.take(at(0, "cache_trouble", { message: "GET https://x.example/?api_key=sk-0123456789abcdefghij failed" }), false);
  log.take(at(1, "cache_trouble", { message: "word ".repeat(200) }), false);
  const [first, second] = log.takeAll();
  assert.doesNotMatch(first?.text ?? "", /sk-0123/);
  assert.equal(second?.text.length, 301);
});
