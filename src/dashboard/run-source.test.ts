import assert from "node:assert/strict";
import { appendFileSync, renameSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { at, attempt, START_MS } from "../../test/telemetry/kit.ts";
import { syntheticRun } from "../../test/telemetry/synthetic-run.ts";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { openManifest } from "../harvest/manifest/manifest.ts";
import { loadPolicy } from "../policy/load.ts";
import type { TelemetryEvent } from "../telemetry/events.ts";
import { openTelemetryFile } from "../telemetry/reading/telemetry-file.ts";
import { rotatedName } from "../telemetry/rotated-files.ts";
import { sqliteSink } from "../telemetry/sinks/sqlite-sink.ts";
import { FakeTime } from "../testing/fake-time.ts";
import { systemTime } from "../time/system-time.ts";
import { RunSource } from "./run-source.ts";

const DAY_MS = 86_400_000;

function append(folder: string, events: readonly TelemetryEvent[]): void {
  appendFileSync(join(folder, "telemetry.jsonl"), events.map(event => `${JSON.stringify(event)}\n`).join(""));
}

/** A run in which one work of three has failed, and that no process works on. */
async function runFor(t: TestContext, events: readonly TelemetryEvent[]) {
  const folder = temporaryFolder("telemetry");
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run list.csv");
  const list = ["a", "b", "c"].map(name => ({ key: `doi:10.1/${name}`, ids: { doi: `10.1/${name}` } }));
  await manifest.works.add(run, list, { isPresent: () => false });
  const [first] = await manifest.queue.take(run, "", systemTime.wallMs(), 3);
  const work = first?.work.id ?? assert.fail();
  const fields = {
    step: "ask",
    resolver: "openalex",
    url: "https://x.example/a",
    reason: "not-open",
    elapsedMs: 3,
  } as const;
  await manifest.recordAttempt(run, work, fields);
  await manifest.fail(work, "not-open", "no open copy");
  append(folder, events);
  const time = new FakeTime();
  const telemetry = await openTelemetryFile(folder);
  const source = new RunSource({ folder, manifest, telemetry, policy: await loadPolicy({ env: {} }), time });
  t.after(() => source.close());
  return { source, folder, manifest, run, time };
}

test("a run shows its works, failures by reason and resolvers; killed runs are stopped", async t => {
  const { source, manifest, run, folder } = await runFor(t, syntheticRun());
  const state = await source.read();
  const { startedMs, ...rest } = state.run ?? assert.fail();
  assert.ok(startedMs > 0);
  assert.deepEqual(rest, {
    folder,
    state: "stopped",
    command: "run list.csv",
    endedMs: null,
    isPaused: false,
    total: 3,
    done: 0,
    failed: 1,
    pending: 2,
    files: 0,
    bytes: 0,
    timeLeftMs: null,
    failures: [{ reason: "not-open", works: 1 }],
    resolvers: [{ resolver: "openalex", asked: 1, stored: 0 }],
    workers: [],
    lastFailed: [{ key: "doi:10.1/a", reason: "not-open", message: "no open copy" }],
  });
  const lock = await manifest.tryLock();
  assert.equal((await source.read()).run?.state, "running");
  lock?.release();
  await manifest.endRun(run, "ended");
  assert.equal((await source.read()).run?.state, "ended");
});

test("the history of a work has its requests, and an unknown work has none", async t => {
  const { source } = await runFor(t, syntheticRun());
  const history = await source.workHistory("doi:10.1/a");
  assert.deepEqual(
    history?.attempts.map(({ step, resolver, host, reason }) => [step, resolver, host, reason]),
    [["ask", "openalex", "x.example", "not-open"]],
  );
  assert.equal(await source.workHistory("doi:10.1/z"), undefined);
});

test("charts cover the whole run in at most 600 steps, and count what the events count", async t => {
  const events = syntheticRun();
  const { source } = await runFor(t, events);
  const { series, hosts } = await source.read();
  assert.equal(series.stepMs, 2000);
  assert.ok(series.points.length <= 600);
  const sum = (name: "requests" | "throttles") => series.points.reduce((total, point) => total + point[name], 0);
  const attempts = events.filter(event => event.event_type === "http_attempt");
  assert.equal(sum("requests"), attempts.filter(({ connection }) => connection !== "none").length);
  assert.equal(sum("throttles"), attempts.filter(({ status }) => status === 429 || status === 503).length);
  assert.equal(hosts.length, 6);
});

test("events that are added while the page is open are read, and none is counted twice", async t => {
  const open = at(100, "breaker_state_change", {
    host: "a.example",
    role: "metadata",
    old: "closed",
    new: "open",
    reset_timeout_s: 60,
    last_rate_delay_ms: 0,
  });
  const { source, folder, manifest, time } = await runFor(t, [attempt(0, "a.example"), open]);
  const lock = await manifest.tryLock();
  t.after(() => lock?.release());
  time.stepWall(START_MS + 1000 - time.wallMs());
  const first = await source.read();
  assert.deepEqual(
    first.hosts.map(({ name, state, untilMs }) => ({ name, state, untilMs })),
    [{ name: "a.example", state: "open", untilMs: START_MS + 60_100 }],
  );
  append(folder, [
    attempt(2000, "a.example"),
    at(2100, "breaker_state_change", { ...open, old: "open", new: "closed" }),
  ]);
  await time.advance(1000);
  const second = await source.read();
  assert.equal(second.hosts[0]?.state, "closed");
  assert.equal(second.hosts[0]?.keys[0]?.acquired, 2);
  assert.equal(second.events.length, 2);
  assert.deepEqual(await source.read(), second);
});

test("events of a further run in the folder are new to pages that show the run before", async t => {
  const cooldown = (ms: number) => at(ms, "ratelimit.cooldown", { key: "a.example", role: "metadata", seconds: 3 });
  const { source, folder, time } = await runFor(t, [0, 1000, 2000].map(cooldown));
  const before = (await source.read()).events.map(({ seq }) => seq);
  assert.equal(before.length, 3);
  append(folder, [{ ...cooldown(DAY_MS), run_id: "next" }]);
  await time.advance(1000);
  const { events } = await source.read();
  assert.deepEqual(
    events.map(({ atMs }) => atMs),
    [START_MS + DAY_MS],
  );
  assert.ok((events[0]?.seq ?? 0) > Math.max(...before));
});

test("the steps of the charts become longer while a run waits, so that the time until now has at most 600 steps", async t => {
  const { source, manifest, time } = await runFor(t, [attempt(0, "a.example"), attempt(5000, "a.example")]);
  const lock = await manifest.tryLock();
  t.after(() => lock?.release());
  time.stepWall(START_MS + 2 * DAY_MS - time.wallMs());
  const { series } = await source.read();
  assert.ok((2 * DAY_MS) / series.stepMs <= 600, String(series.stepMs));
  assert.equal(series.points.length, 1);
  lock?.release();
  assert.equal((await source.read()).series.stepMs, 1000);
});

test("events in a SQLite file are read when they are written, before SQLite copies them into the main file, also beside a JSONL file", async t => {
  for (const other of [[], [{ ...attempt(-5000, "b.example"), run_id: "earlier" }]]) {
    const folder = temporaryFolder("telemetry");
    if (other.length > 0) append(folder, other);
    const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
    const time = new FakeTime();
    const sink = await sqliteSink(join(folder, "telemetry.db"));
    t.after(() => sink.close?.());
    sink.take(attempt(0, "a.example"));
    await sink.flush?.();
    const telemetry = await openTelemetryFile(folder);
    const source = new RunSource({ folder, manifest, telemetry, policy: await loadPolicy({ env: {} }), time });
    t.after(() => source.close());
    assert.equal((await source.read()).hosts[0]?.keys[0]?.acquired, 1);
    sink.take(attempt(1000, "a.example"));
    await sink.flush?.();
    await time.advance(1000);
    assert.equal((await source.read()).hosts[0]?.keys[0]?.acquired, 2);
  }
});

test("new events are counted, each once, after the oldest file of the telemetry was deleted", async t => {
  const { source, folder, time } = await runFor(
    t,
    [0, 1000, 2000].map(ms => attempt(ms, "a.example")),
  );
  const path = join(folder, "telemetry.jsonl");
  const requestsOf = async () => {
    await time.advance(1000);
    return (await source.read()).hosts[0]?.keys[0]?.acquired;
  };
  const rotated = await rotatedName(path, START_MS);
  renameSync(path, rotated);
  append(folder, [attempt(3000, "a.example"), attempt(4000, "a.example")]);
  assert.equal(await requestsOf(), 5);
  unlinkSync(rotated);
  append(folder, [attempt(5000, "a.example")]);
  assert.equal(await requestsOf(), 6);
  append(folder, [attempt(6000, "a.example")]);
  assert.equal(await requestsOf(), 7);
  // All events that were counted are gone.
  unlinkSync(path);
  append(folder, [attempt(7000, "a.example"), attempt(8000, "a.example")]);
  assert.equal(await requestsOf(), 9);
});

test("the page says that a run has called more hosts than it lists", async t => {
  const many = Array.from({ length: 5001 }, (_, number) => attempt(number, `h${number}.example`));
  const { source } = await runFor(t, many);
  const { hosts, trouble } = await source.read();
  assert.equal(hosts.length, 5000);
  assert.match(trouble ?? "", /^The run has called more than 5000 hosts\. Only the first ones are listed;/);
});
