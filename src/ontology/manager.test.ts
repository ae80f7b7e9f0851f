import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError, RateLimitExceeded } from "../errors.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { type OntologyEvent, OntologyManager } from "./manager.ts";
import { acquire, cooldownFor, initManager } from "./process-manager.ts";
import type { OntologySettings } from "./service-rates.ts";

function setUp(settings: OntologySettings = {}) {
  const time = new FakeTime();
  const events: LimiterEvent[] = [];
  const manager = new OntologyManager(
    { guard_ms: 0, ...settings },
    { time, listener: ({ run_id, config_hash, ...event }) => void events.push(event) },
  );
  const rates = (key: string) =>
    manager
      .snapshot()
      .find(snapshot => snapshot.key === key)
      ?.windows.map(({ rate }) => rate)
      .join("+");
  return { time, manager, events, rates };
}

test("a single per-second rate above 5/second also gets the window 300/minute", async () => {
  const { manager, rates } = setUp({
    per_service: { fast: "8/second", slow: "2/minute", calm: "4/second", own: "8/s+900/min" },
  });
  await manager.acquire("unnamed", "a.example");
  assert.equal(rates("unnamed:a.example"), "8/SECOND+300/MINUTE");
  assert.equal(rates("fast:default"), "8/SECOND+300/MINUTE");
  assert.equal(rates("slow:default"), "2/MINUTE");
  assert.equal(rates("calm:default"), "4/SECOND");
  assert.equal(rates("own:default"), "8/SECOND+900/MINUTE");
});

test("a configured service has a key before its first request, a host only after it, each with its own windows", async () => {
  const { manager } = setUp({ per_service: "ols:4/second;bioportal:2/second" });
  const keys = () =>
    manager
      .snapshot()
      .map(({ key }) => key)
      .sort();
  assert.deepEqual(keys(), ["bioportal:default", "ols:default"]);
  await manager.acquire("ols", "WWW.EBI.AC.UK", { mode: "fail", weight: 4 });
  assert.deepEqual(keys(), ["bioportal:default", "ols:default", "ols:www.ebi.ac.uk"]);
  await assert.rejects(manager.acquire("ols", "www.ebi.ac.uk", { mode: "fail" }), RateLimitExceeded);
  assert.equal((await manager.acquire("ols", "other.example", { mode: "fail" })).waitedMs, 0);
  assert.equal((await manager.acquire("ols", undefined, { mode: "fail" })).key, "ols:default");
});

test("mode block waits and returns the waiting time; mode fail names the window that is full", async () => {
  const { manager, time } = setUp({ default: "8/second+12/minute" });
  const calls = Array.from({ length: 13 }, () => manager.acquire("ols", "a.example"));
  await time.advance(1000);
  const error = await manager.acquire("ols", "a.example", { mode: "fail" }).catch(reason => reason);
  assert.equal(error.constraint.limit, "12/MINUTE");
  await time.advance(59_000);
  const blocked = (await Promise.all(calls)).map(({ waitedMs }) => waitedMs);
  assert.deepEqual(blocked, [...Array(8).fill(0), ...Array(4).fill(1000), 60_000]);
});

test("null means unlimited, by default or for one service", async () => {
  const { manager } = setUp({ default: null, per_service: { ols: "1/second", local: null } });
  for (let call = 0; call < 1000; call += 1) await manager.acquire("local", "a.example", { mode: "fail" });
  for (let call = 0; call < 1000; call += 1) await manager.acquire("unnamed", "a.example", { mode: "fail" });
  await manager.acquire("ols", "a.example", { mode: "fail" });
  await assert.rejects(manager.acquire("ols", "a.example", { mode: "fail" }), RateLimitExceeded);
});

test("none means unlimited too, in a map and in a text of services", async () => {
  for (const settings of [{ default: "none" }, { per_service: { ols: "None" } }, { per_service: "ols:none" }]) {
    const manager = new OntologyManager(settings, { time: new FakeTime() });
    for (let call = 0; call < 400; call += 1) await manager.acquire("ols", "www.ebi.ac.uk", { mode: "fail" });
  }
});

test("a request of no service has the key _, whether its service is null or missing", async () => {
  const manager = new OntologyManager({}, { time: new FakeTime() });
  assert.equal((await manager.acquire(undefined, "purl.obolibrary.org")).key, "_:purl.obolibrary.org");
  assert.equal((await manager.acquire(null, "purl.obolibrary.org")).key, "_:purl.obolibrary.org");
  assert.equal((await manager.acquire()).key, "_:default");
});

test("events name the run, and equal settings by the same hash", async () => {
  const eventOf = async (settings: OntologySettings, runId?: string) => {
    const events: OntologyEvent[] = [];
    const options = { time: new FakeTime(), listener: (event: OntologyEvent) => void events.push(event), runId };
    await new OntologyManager(settings, options).acquire("ols", "www.ebi.ac.uk");
    const [event] = events;
    assert.ok(event);
    return event;
  };
  const first = await eventOf({ per_service: "ols:4/second" }, "run 1");
  assert.equal(first.run_id, "run 1");
  assert.match(first.config_hash, /^[0-9a-f]{16}$/);
  assert.equal((await eventOf({ per_service: { ols: "4/second" } })).config_hash, first.config_hash);
  assert.notEqual((await eventOf({ per_service: "ols:5/second" })).config_hash, first.config_hash);
});

test("in mode fail a cooldown refuses at once, is named as the constraint, and emits one event", async () => {
  const { manager, events } = setUp();
  manager.cooldownFor("ols:a.example", 1);
  const error = await manager.acquire("ols", "a.example", { mode: "fail" }).catch(reason => reason);
  assert.ok(error instanceof RateLimitExceeded);
  assert.equal(error.constraint.kind, "cooldown");
  assert.equal(error.retryAfterMs, 1000);
  manager.cooldownFor("ols:a.example", 0.5);
  const cooldowns = events.filter(event => event.event_type === "ratelimit.cooldown");
  assert.deepEqual(cooldowns, [
    { event_type: "ratelimit.cooldown", key: "ols:a.example", role: "metadata", seconds: 1 },
  ]);
});

test("a caller that has already waited for Retry-After does not wait again", async () => {
  const { manager, time } = setUp();
  await manager.acquire("ols", "a.example");
  manager.cooldownFor("ols:a.example", 1);
  await time.advance(1000);
  assert.equal((await manager.acquire("ols", "a.example")).waitedMs, 0);
  const [key] = manager.snapshot();
  assert.equal(key?.windows[1]?.used, 2);
});

test("a cooldown also delays requests that are already queued, until it ends", async () => {
  const { manager, time } = setUp({ default: "1/second" });
  await manager.acquire("ols", "a.example");
  const waiting = manager.acquire("ols", "a.example");
  await time.advance(500);
  manager.cooldownFor("ols:a.example", 4);
  await time.advance(4000);
  assert.equal((await waiting).waitedMs, 4500);
});

test("an aborted wait ends with the signal's reason", async () => {
  const { manager } = setUp({ default: "1/second" });
  await manager.acquire("ols", "a.example");
  const abort = new AbortController();
  const waiting = manager.acquire("ols", "a.example", { signal: abort.signal });
  abort.abort(new Error("enough"));
  await assert.rejects(waiting, /enough/);
});

test("invalid settings are refused with the path of the setting", () => {
  const problem = (settings: unknown) => {
    try {
      new OntologyManager(settings as OntologySettings);
    } catch (error) {
      return error instanceof ConfigError ? error.message : "another error";
    }
    return "none";
  };
  assert.match(problem({ default: "8" }), /initManager: default: "8" is not a rate/);
  assert.match(problem({ per_service: { ols: "x/s" } }), /initManager: per_service.ols: "x\/s" is not a rate/);
  assert.match(
    problem({ per_service: "ols=4/second" }),
    /initManager: per_service: "ols=4\/second" is not <name>:<rate>/,
  );
  assert.match(
    problem({ per_service: { "bad name": "1/s" } }),
    /initManager: per_service.bad name: invalid service name "bad name"/,
  );
  assert.match(problem({ default: 8 }), /initManager: default: expected a rate such as 8\/second, a list of rates/);
  assert.match(
    problem({ per_service: 8 }),
    /initManager: per_service: expected a rate for each service, such as \{ ols/,
  );
  assert.match(problem({ per_service: { ols: 4 } }), /initManager: per_service: expected a rate for each service/);
  assert.match(problem({ per_srvice: {} }), /initManager: .*per_srvice/);
});

test("an invalid key, service or host is a RangeError", async () => {
  const { manager } = setUp();
  assert.throws(() => manager.cooldownFor("ols", 1), /invalid key "ols"; expected <service>:<host>/);
  assert.throws(() => manager.cooldownFor("ols:a.example", Number.NaN), RangeError);
  await assert.rejects(manager.acquire("o:ls", "a.example"), /invalid service name "o:ls"/);
  await assert.rejects(manager.acquire("ols", "not a host"), RangeError);
});

test("the process has one manager, which initManager replaces", async () => {
  const time = new FakeTime();
  initManager({ default: "1/second" }, { time });
  await acquire("ols", "a.example", { mode: "fail" });
  cooldownFor("ols:b.example", 5);
  await assert.rejects(acquire("ols", "a.example", { mode: "fail" }), RateLimitExceeded);
  await assert.rejects(acquire("ols", "b.example", { mode: "fail" }), RateLimitExceeded);
  initManager({}, { time });
  assert.equal((await acquire("ols", "b.example", { mode: "fail" })).waitedMs, 0);
});

test("managers with the same shared_dir share limits and cooldowns", async t => {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-shared-dir-"));
  // Real time, because the managers share a real file.
  const [a, b] = [1, 2].map(() => new OntologyManager({ default: "3/hour", shared_dir: folder }));
  assert.ok(a !== undefined && b !== undefined);
  t.after(async () => {
    await a.close();
    await b.close();
    await rm(folder, { recursive: true });
  });
  for (const manager of [a, b, a]) await manager.acquire("ols", "a.example", { mode: "fail" });
  for (const manager of [a, b]) {
    await assert.rejects(manager.acquire("ols", "a.example", { mode: "fail" }), RateLimitExceeded);
    await manager.acquire("ols", "b.example", { mode: "fail" });
  }
  await a.cooldownFor("ols:c.example", 400);
  const error = await b.acquire("ols", "c.example", { mode: "fail" }).catch(reason => reason);
  assert.ok(error instanceof RateLimitExceeded);
  assert.equal(error.constraint.kind, "cooldown");
  assert.ok((error.retryAfterMs ?? 0) > 300_000 && (error.retryAfterMs ?? 0) <= 400_000);
  // At once, while the record is still fresh: the cooldown is one of the host.
  await assert.rejects(b.acquire("bioportal", "c.example", { mode: "fail" }), RateLimitExceeded);
});

test("a cooldown without an end is refused", () => {
  const manager = new OntologyManager();
  for (const seconds of [Number.POSITIVE_INFINITY, Number.MAX_VALUE, Number.NaN, -1])
    assert.throws(() => manager.cooldownFor("ols:www.ebi.ac.uk", seconds), {
      name: "RangeError",
      message: `seconds must be a finite number, 0 or more, not ${seconds}`,
    });
});
