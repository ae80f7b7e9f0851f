import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { until } from "../../../test/http/kit.ts";
import { acquire, allOf, at, attempt, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { EVENT_SPECS } from "../event-fields.ts";
import type { EventType, TelemetryEvent } from "../events.ts";
import type { FieldSpec } from "../fields/event-spec.ts";
import { ROWS_PER_TURN } from "../reading/sqlite-events.ts";
import { openTelemetryFile } from "../reading/telemetry-file.ts";
import { TABLE_OF, TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { summarize } from "../summary/run-tally.ts";
import { sqliteSink } from "./sqlite-sink.ts";

/** An event of each type, with every field. */
const oneOfEach: readonly TelemetryEvent[] = (Object.keys(EVENT_SPECS) as EventType[]).map((event_type, index) => {
  const fields = Object.entries<FieldSpec>(EVENT_SPECS[event_type].fields).map(([name, [kind]], at) => {
    const value = kind.startsWith("flag") ? at % 2 === 0 : kind.startsWith("text") ? `text ${at}` : at + 0.5;
    return [name, value];
  });
  const envelope = { ts: START_MS + index, event_type, run_id: RUN, config_hash: "abc" };
  return { ...envelope, ...Object.fromEntries(fields), config_hash: "abc" } as unknown as TelemetryEvent;
});

test("every table has a column for every field of its events", () => {
  const db = new DatabaseSync(":memory:");
  for (const migration of TELEMETRY_FORMAT.migrations) db.exec(migration);
  for (const [type, table] of Object.entries(TABLE_OF) as [EventType, string][]) {
    const columns = db.prepare(`SELECT name FROM pragma_table_info(?)`).all(table);
    const names = new Set(columns.map(({ name }) => name));
    const missing = Object.keys(EVENT_SPECS[type].fields).filter(field => !names.has(field));
    assert.deepEqual(missing, [], `${table} lacks these of ${type}: add a migration`);
  }
});

test("an event of every type is read back unchanged, in order", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  const sameTime = [at(99, "store_back", { away_ms: 5 }), call(99, "a.example"), acquire(99, "a.example", "granted")];
  for (const event of [...oneOfEach, ...sameTime]) sink.take(event);
  await sink.close?.();
  const opened = await openTelemetryFile(file);
  t.after(() => opened.close());
  const read = await allOf(opened.events(RUN));
  assert.deepEqual(read, JSON.parse(JSON.stringify([...oneOfEach, ...sameTime])));
  assert.deepEqual(
    (await opened.runs()).map(({ runId, events }) => [runId, events]),
    [[RUN, oneOfEach.length + 3]],
  );
});

test("the tables can be read with plain SQL, and closing writes the summary", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  const events = [
    attempt(0, "a.example", { rate_wait_ms: 250 }),
    call(0, "a.example", { rate_delay_ms: 250 }),
    call(1, "a.example", { from_cache: true, attempts: 0 }),
    acquire(2, "a.example", "granted"),
    acquire(3, "a.example", "refused"),
    at(4, "breaker_cooldown_set", { host: "a.example", until: START_MS + 5000, reason: "retry-after" }),
  ];
  for (const event of events) sink.take(event);
  await sink.close?.();
  const db = new DatabaseSync(file, { readOnly: true });
  t.after(() => db.close());
  const one = (sql: string) => db.prepare(sql).get();
  assert.equal(one("SELECT count(*) AS n FROM http_events WHERE from_cache")?.["n"], 1);
  assert.equal(one("SELECT count(*) AS n FROM rate_events WHERE outcome = 'refused'")?.["n"], 1);
  assert.equal(one("SELECT reason AS r FROM breaker_transitions")?.["r"], "retry-after");
  const { summary, ...columns } = one("SELECT * FROM run_summary") ?? {};
  assert.deepEqual(JSON.parse(String(summary)), JSON.parse(JSON.stringify(await summarize(events, RUN))));
  assert.deepEqual(
    [columns["calls"], columns["blocked"], columns["breaker_opens"], columns["rate_delay_p95_ms"]],
    [2, 1, 1, 250],
  );
});

test("closing gives the event loop a turn for every 100 events and every 250 hosts, and loses nothing", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  const events = Array.from({ length: 3000 }, (_, index) => call(index, `h${index % 1500}.example`));
  for (const event of events) sink.take(event);
  await sink.flush?.();
  let turns = 0;
  let isClosed = false;
  const countTurn = () => {
    turns += 1;
    if (!isClosed) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  await sink.close?.();
  isClosed = true;
  // 30 slices of events, 6 of hosts, 3 between sums and sorts, 6 of JSON.
  assert.ok(turns >= 3000 / ROWS_PER_TURN + 15, `${turns} turns`);
  const db = new DatabaseSync(file, { readOnly: true });
  t.after(() => db.close());
  const { summary } = db.prepare("SELECT summary FROM run_summary").get() ?? {};
  assert.deepEqual(JSON.parse(String(summary)), JSON.parse(JSON.stringify(await summarize(events, RUN))));
});

test("while another process has the file locked the event loop does not wait, and everything is written later", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file, { delayMs: 0 });
  const other = new DatabaseSync(file);
  other.exec("BEGIN IMMEDIATE");
  for (let i = 0; i < 10; i += 1) sink.take(call(i, "a.example"));
  const flushed = sink.flush?.();
  // The event loop turns: if SQLite slept on the lock, this would not return.
  for (let turn = 0; turn < 50; turn += 1) await new Promise(resolve => setImmediate(resolve));
  other.exec("COMMIT");
  await flushed;
  await sink.close?.();
  assert.equal(other.prepare("SELECT count(*) AS n FROM http_events").get()?.["n"], 10);
  other.close();
  assert.equal(sink.dropped, 0);
});

test("events that wait for another writer when the process ends are written once", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const time = new FakeTime();
  const sink = await sqliteSink(file, { time });
  const other = new DatabaseSync(file);
  t.after(() => other.close());
  other.exec("BEGIN IMMEDIATE");
  sink.take(call(0, "a.example"));
  const flushed = sink.flush?.();
  await until(() => time.armedTimers > 0);
  sink.take(call(1, "b.example"));
  other.exec("COMMIT");
  sink.flushSync?.();
  const written = () => other.prepare("SELECT host FROM http_events ORDER BY seq").all();
  const hosts = () => written().map(({ host }) => host);
  assert.deepEqual(hosts(), ["a.example", "b.example"]);
  await time.advance(1000);
  await flushed;
  assert.deepEqual(hosts(), ["a.example", "b.example"]);
  assert.equal(sink.dropped, 0);
  await sink.close?.();
});

test("a process that ends without events does not warn of a file that another process writes", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  const other = new DatabaseSync(file);
  t.after(() => other.close());
  const warn = t.mock.method(process, "emitWarning", () => undefined);
  other.exec("BEGIN IMMEDIATE");
  sink.flushSync?.();
  other.exec("COMMIT");
  await sink.close?.();
  assert.equal(warn.mock.callCount(), 0);
});

test("two sinks share one file", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sinks = await Promise.all([sqliteSink(file, { delayMs: 0 }), sqliteSink(file, { delayMs: 0 })]);
  for (let i = 0; i < 600; i += 1) {
    for (const [index, sink] of sinks.entries()) sink.take({ ...call(i, "a.example"), run_id: `run-${index}` });
  }
  await Promise.all(sinks.map(sink => sink.close?.()));
  const opened = await openTelemetryFile(file);
  t.after(() => opened.close());
  assert.deepEqual((await opened.runs()).map(({ runId, events }) => [runId, events]).toSorted(), [
    ["run-0", 600],
    ["run-1", 600],
  ]);
});

test("a database of another program is not changed by the sink or the report", async () => {
  const file = join(temporaryFolder("telemetry"), "other.db");
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE mine (x)");
  db.close();
  await assert.rejects(sqliteSink(file), /the file is a database of another program/);
  await assert.rejects(
    openTelemetryFile(file),
    /cannot read telemetry from this database: it was not written by docstokg telemetry/,
  );
});

test("rows of a newer version or another program are skipped and counted", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  sink.take(call(0, "a.example"));
  await sink.close?.();
  const db = new DatabaseSync(file);
  const insert = "INSERT INTO http_events (ts, event_type, run_id, config_hash) VALUES (1, ?, ?, '')";
  db.prepare(insert).run("from_the_future", RUN);
  db.prepare(insert).run("http_request", RUN);
  db.close();
  const opened = await openTelemetryFile(file);
  t.after(() => opened.close());
  assert.equal((await allOf(opened.events(RUN))).length, 1);
  assert.deepEqual([opened.skipped.unreadable, [...opened.skipped.unknown]], [1, [["from_the_future", 1]]]);
});

for (const replace of ["deleted", "replaced"] as const)
  test(`a file that is ${replace} while it is written is reported once, and later events are in the new one`, async () => {
    const file = join(temporaryFolder("telemetry"), "telemetry.db");
    const sink = await sqliteSink(file);
    sink.take(call(0, "a.example"));
    await sink.flush?.();
    const warnings: string[] = [];
    const onWarning = ({ message }: Error) => warnings.push(message);
    process.on("warning", onWarning);
    for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
    const other = replace === "replaced" ? await sqliteSink(file) : undefined;
    sink.take(call(1, "b.example"));
    await sink.flush?.();
    rmSync(file);
    sink.take(call(2, "c.example"));
    await sink.close?.();
    await other?.close?.();
    await nextTurn();
    process.off("warning", onWarning);
    const opened = await openTelemetryFile(file);
    const hosts = (await allOf(opened.events(RUN))).map(event => event.event_type === "http_request" && event.host);
    opened.close();
    assert.deepEqual(hosts, ["c.example"]);
    assert.deepEqual(warnings, [
      `the telemetry file ${file} was deleted or moved: it does not have the events that were written before; later ones are in a new file`,
    ]);
    assert.equal(sink.dropped, 0);
  });

test("a file that is emptied while it is written takes no event, and each one counts as dropped", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(file);
  sink.take(call(0, "a.example"));
  await sink.flush?.();
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  writeFileSync(file, "");
  sink.take(call(1, "b.example"));
  await sink.flush?.();
  sink.take(call(2, "c.example"));
  await assert.rejects(async () => sink.close?.(), /was emptied while it was written/);
  await nextTurn();
  process.off("warning", onWarning);
  assert.equal(sink.dropped, 2);
  assert.deepEqual(warnings, [
    `telemetry sink sqlite drops events: ${file} was emptied while it was written; delete it, and a new file is written`,
  ]);
  rmSync(file);
  const next = await sqliteSink(file);
  next.take(call(3, "d.example"));
  await next.close?.();
  assert.equal(next.dropped, 0);
});
