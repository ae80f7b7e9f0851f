import assert from "node:assert/strict";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { allOf, call, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { rotatedName } from "../rotated-files.ts";
import { sqliteSink } from "../sinks/sqlite-sink.ts";
import { TELEMETRY_FORMAT } from "../sqlite-tables.ts";
import { openTelemetryFile } from "./telemetry-file.ts";

test("a folder without telemetry and a missing file are errors that name what was expected", async () => {
  const folder = temporaryFolder("telemetry");
  await assert.rejects(
    openTelemetryFile(folder),
    /no telemetry in this folder: expected telemetry\.jsonl or telemetry\.db/,
  );
  await assert.rejects(openTelemetryFile(join(folder, "nothing.jsonl")), /nothing\.jsonl: no such file/);
  writeFileSync(join(folder, "telemetry.jsonl"), "");
  assert.deepEqual(await (await openTelemetryFile(folder)).runs(), []);
});

test("a folder with a JSONL file and a database has the runs of both, each once", async () => {
  const folder = temporaryFolder("telemetry");
  const inRun = (run_id: string, ms: number) => ({ ...call(ms, "a.example"), run_id });
  const jsonl = [inRun("first", 0), inRun("both", 10), inRun("last", 40)];
  writeFileSync(join(folder, "telemetry.jsonl"), jsonl.map(event => `${JSON.stringify(event)}\n`).join(""));
  const sink = await sqliteSink(join(folder, "telemetry.db"));
  for (const event of [inRun("both", 10), inRun("both", 20), inRun("middle", 30)]) sink.take(event);
  await sink.close?.();
  const file = await openTelemetryFile(folder);
  assert.equal(file.path, folder);
  const runs = await file.runs();
  assert.deepEqual(
    runs.map(({ runId, events }) => [runId, events]),
    [
      ["first", 1],
      ["both", 2],
      ["middle", 1],
      ["last", 1],
    ],
  );
  for (const { runId, events } of runs) assert.equal((await allOf(file.events(runId))).length, events, runId);
  assert.deepEqual(await allOf(file.events("none")), []);
  writeFileSync(join(folder, "telemetry.jsonl"), "not an event\n", { flag: "a" });
  await allOf(file.events("last"));
  assert.equal(file.skipped.unreadable, 1);
  file.close();
});

test("a folder that has only rotated files is read, also before the next event is written", async () => {
  const folder = temporaryFolder("telemetry");
  writeFileSync(
    await rotatedName(join(folder, "telemetry.jsonl"), START_MS),
    `${JSON.stringify(call(0, "a.example"))}\n`,
  );
  assert.equal((await (await openTelemetryFile(folder)).runs()).length, 1);
});

test("a database that is damaged, has values that no sink writes, or lacks its tables is an error that names it", async () => {
  const path = join(temporaryFolder("telemetry"), "telemetry.db");
  const sink = await sqliteSink(path);
  for (let ms = 0; ms < 1000; ms += 1) sink.take(call(ms, "a.example"));
  await sink.close?.();
  const readAll = async () => {
    const file = await openTelemetryFile(path);
    try {
      const [run] = await file.runs();
      return run && (await allOf(file.events(run.runId))).length;
    } finally {
      file.close();
    }
  };
  assert.equal(await readAll(), 1000);
  const expected = { name: "ConfigError", message: /telemetry\.db: cannot read telemetry from this database: / };
  const change = (sql: string) => {
    const db = new DatabaseSync(path);
    db.exec(sql);
    db.close();
  };
  change("UPDATE http_events SET ts = 9223372036854775807 WHERE seq = 500");
  await assert.rejects(readAll(), expected);
  change(`UPDATE http_events SET ts = ${START_MS}, attempts = 9223372036854775807 WHERE seq = 500`);
  await assert.rejects(readAll(), expected);
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xff, bytes.length / 2));
  await assert.rejects(readAll(), expected);
  const empty = join(temporaryFolder("telemetry"), "empty.db");
  const db = new DatabaseSync(empty);
  db.exec(`PRAGMA application_id = ${TELEMETRY_FORMAT.applicationId}; CREATE TABLE other (a)`);
  db.close();
  assert.deepEqual(await (await openTelemetryFile(empty)).runs(), []);
});

/** Events with the fields that version 0.1 wrote, and the tables that it wrote them to. */
const FIRST_EVENTS = [
  ["run_events", { event_type: "run_started", program: "p", version: "0.1.0" }],
  ["http_events", withoutLaterFields(call(0, "a.example"))],
  ["breaker_calls", { event_type: "breaker_success", host: "a.example", role: "metadata", status: 200 }],
  ["breaker_calls", { event_type: "breaker_failure", host: "a.example", role: "metadata", status: 500 }],
  ["rate_events", { event_type: "store_away", processes: 2, message: "no answer" }],
  ["rate_events", { event_type: "store_back" }],
].map(([table, fields], ms) => ({
  table: table as string,
  event: { ...(fields as object), ts: START_MS + ms, run_id: RUN, config_hash: "abc" },
}));

function withoutLaterFields({
  call_id,
  final_host,
  aborted,
  background,
  breaker_wait_ms,
  unsent_wait_ms,
  unsent_slot_wait_ms,
  ...fields
}: ReturnType<typeof call>) {
  return fields;
}

async function assertAllRead(path: string): Promise<void> {
  const file = await openTelemetryFile(path);
  assert.deepEqual(
    (await file.runs()).map(({ runId, events }) => [runId, events]),
    [[RUN, FIRST_EVENTS.length]],
  );
  const types = (await allOf(file.events(RUN))).map(({ event_type }) => event_type);
  assert.deepEqual(
    types,
    FIRST_EVENTS.map(({ event }) => (event as unknown as { readonly event_type: string }).event_type),
  );
  assert.deepEqual([file.skipped.unreadable, file.skipped.unknown.size], [0, 0]);
  file.close();
}

test("a file that the system does not let this process look at is not reported as missing", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  symlinkSync(file, file);
  await assert.rejects(openTelemetryFile(file), { code: "ELOOP" });
});

test("a JSONL file of version 0.1 is read completely", async () => {
  const path = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  writeFileSync(path, FIRST_EVENTS.map(({ event }) => `${JSON.stringify(event)}\n`).join(""));
  await assertAllRead(path);
});

test("a database of each earlier version is read completely", async () => {
  const folder = temporaryFolder("telemetry");
  for (let version = 1; version <= TELEMETRY_FORMAT.migrations.length; version += 1) {
    const path = join(folder, `${version}.db`);
    const db = new DatabaseSync(path);
    db.exec("PRAGMA synchronous = OFF; BEGIN");
    for (const migration of TELEMETRY_FORMAT.migrations.slice(0, version)) db.exec(String(migration));
    db.exec(`PRAGMA application_id = ${TELEMETRY_FORMAT.applicationId}; PRAGMA user_version = ${version}`);
    for (const [seq, { table, event }] of FIRST_EVENTS.entries()) {
      const fields = Object.entries({ seq, ...event }).filter(([, value]) => value !== undefined);
      const names = fields.map(([name]) => `"${name}"`).join(", ");
      db.prepare(`INSERT INTO ${table} (${names}) VALUES (${fields.map(() => "?").join(", ")})`).run(
        ...fields.map(([, value]) => (typeof value === "boolean" ? Number(value) : (value as string | number))),
      );
    }
    db.exec("COMMIT");
    db.close();
    await assertAllRead(path);
  }
});
