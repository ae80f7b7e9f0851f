import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { acquire, at, call, readJsonl, START_MS } from "../../../test/telemetry/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { jsonlFiles } from "../reading/jsonl-events.ts";
import { createTelemetry } from "../telemetry.ts";
import { jsonlSink } from "./jsonl-sink.ts";

test("each event is a line of JSON, and is read back unchanged", async () => {
  const file = join(temporaryFolder("telemetry"), "deep", "telemetry.jsonl");
  const sink = await jsonlSink(file);
  const events = [call(0, "a.example"), acquire(1, "a.example", "granted"), at(2, "store_back", { away_ms: 5 })];
  for (const event of events) sink.take(event);
  await sink.close?.();
  assert.equal(readFileSync(file, "utf8").split("\n").length, 4);
  assert.equal(statSync(file).mode & 0o077, 0);
  const { events: read, skipped } = await readJsonl(file);
  // Undefined fields are not written.
  assert.deepEqual(read, JSON.parse(JSON.stringify(events)));
  assert.equal(skipped.unreadable, 0);
});

test("a file that is too large is rotated, and only `keep` files are kept", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sink = await jsonlSink(file, { maxBytes: 1024, keep: 2 });
  for (let i = 0; i < 12; i += 1) {
    sink.take(acquire(i, `host-${i}.example`, "granted"));
    sink.take(acquire(i, `host-${i}.example`, "refused"));
    await sink.flush?.();
  }
  await sink.close?.();
  assert.equal((await jsonlFiles(file)).length, 3);
  for (const name of await jsonlFiles(file)) assert.ok(statSync(name).size <= 1024, name);
  const { events, skipped } = await readJsonl(file);
  const times = events.map(({ ts }) => ts);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
  assert.equal(skipped.unreadable, 0);
  assert.ok(events.length > 4 && events.length < 24);
});

test("files that are rotated within one millisecond are read in their order", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sink = await jsonlSink(file, { maxBytes: 1024, keep: 100, time: new FakeTime() });
  for (let i = 0; i < 60; i += 1) {
    sink.take(acquire(i, `host-${i}.example`, "granted"));
    await sink.flush?.();
  }
  await sink.close?.();
  assert.ok((await jsonlFiles(file)).length > 5);
  const times = (await readJsonl(file)).events.map(({ ts }) => ts);
  assert.equal(times.length, 60);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
});

test("after the clock was set back, rotation deletes the oldest files, and the files are read in their order", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  // The name of another program: it has no valid time.
  const strange = `${file}.20269999T999999.999Z-000000`;
  writeFileSync(strange, "kept");
  const wallMs = Date.parse("2026-11-16T00:00:00Z");
  for (const [run, startMs] of [wallMs + 3 * 86_400_000, wallMs].entries()) {
    const sink = await jsonlSink(file, { maxBytes: 1024, keep: 2, time: new FakeTime({ wallMs: startMs }) });
    for (let i = 0; i < 20; i += 1) {
      sink.take(acquire(run * 20 + i, "host.example", "granted"));
      await sink.flush?.();
    }
    await sink.close?.();
  }
  const times = (await readJsonl(file)).events.map(({ ts }) => ts - START_MS);
  assert.equal((await jsonlFiles(file)).length, 3);
  assert.deepEqual(
    times,
    Array.from(times, (_, i) => 40 - times.length + i),
  );
  assert.equal(readFileSync(strange, "utf8"), "kept");
});

/** Writes 30 events, of which a few fit into the file, one at a time. Returns the warnings. */
async function writeMany(t: TestContext, file: string): Promise<readonly string[]> {
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  t.after(() => process.off("warning", onWarning));
  const sink = await jsonlSink(file, { maxBytes: 1024, keep: 1 });
  for (let i = 0; i < 30; i += 1) {
    sink.take(acquire(i, "host.example", "granted"));
    await sink.flush?.();
  }
  await sink.close?.();
  assert.equal(sink.dropped, 0);
  return warnings;
}

test("a file that cannot be renamed grows on without a drop, with one warning", async t => {
  // The name that it would get is too long.
  const file = join(temporaryFolder("telemetry"), "t".repeat(240));
  const warnings = await writeMany(t, file);
  assert.equal((await readJsonl(file)).events.length, 30);
  assert.equal(warnings.length, 1);
  assert.match(
    warnings[0] ?? "",
    /^rotating the telemetry file .*t failed: ENAMETOOLONG.*; it may grow beyond maxBytes/,
  );
});

test("a rotated file that cannot be deleted costs no event", async t => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const stuck = `${file}.20200101T000000.000Z-000000`;
  mkdirSync(stuck);
  const warnings = await writeMany(t, file);
  assert.equal(warnings.length, 1);
  rmdirSync(stuck);
  const times = (await readJsonl(file)).events.map(({ ts }) => ts - START_MS);
  assert.deepEqual(
    times,
    Array.from(times, (_, i) => 30 - times.length + i),
  );
});

test("two sinks on one file lose nothing when it is rotated", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sinks = [
    await jsonlSink(file, { maxBytes: 2048, keep: 100 }),
    await jsonlSink(file, { maxBytes: 2048, keep: 100 }),
  ];
  for (let i = 0; i < 100; i += 1) {
    for (const [of, sink] of sinks.entries()) sink.take(acquire(i, `host-${of}.example`, "granted"));
    await Promise.all(sinks.map(sink => sink.flush?.()));
  }
  for (const sink of sinks) await sink.close?.();
  assert.equal((await readJsonl(file)).events.length, 200);
});

test("a file that several sinks write is rotated at maxBytes", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sinks = await Promise.all(Array.from({ length: 5 }, () => jsonlSink(file, { maxBytes: 4096, keep: 100 })));
  for (let i = 0; i < 20; i += 1) {
    for (const sink of sinks) {
      sink.take(acquire(i, "host.example", "granted"));
      await sink.flush?.();
    }
  }
  for (const sink of sinks) await sink.close?.();
  for (const name of await jsonlFiles(file)) assert.ok(statSync(name).size <= 4096, `${statSync(name).size} bytes`);
  assert.equal((await readJsonl(file)).events.length, 100);
});

test("a file that was moved or deleted is created again, and the deletion is reported once", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sink = await jsonlSink(file);
  const warnings: string[] = [];
  const onWarning = ({ message }: Error) => warnings.push(message);
  process.on("warning", onWarning);
  const write = async () => {
    sink.take(call(0, "a.example"));
    await sink.flush?.();
    await nextTurn();
  };
  await write();
  renameSync(file, `${file}.1`);
  await write();
  assert.deepEqual(warnings, []);
  for (let deletions = 0; deletions < 2; deletions += 1) {
    rmSync(file);
    await write();
  }
  await sink.close?.();
  process.off("warning", onWarning);
  assert.equal((await readJsonl(file)).events.length, 1);
  assert.deepEqual(warnings, [
    `the telemetry file ${file} was deleted or moved: it does not have the events that were written before; later ones are in a new file`,
  ]);
});

test("a relative path stays the same file when the program changes its working directory", async t => {
  const [first, second] = [temporaryFolder("telemetry"), temporaryFolder("telemetry")];
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(first);
  const sink = await jsonlSink("telemetry.jsonl", { maxBytes: 1024, keep: 100 });
  process.chdir(second);
  for (let i = 0; i < 20; i += 1) {
    sink.take(acquire(i, "host.example", "granted"));
    await sink.flush?.();
  }
  await sink.close?.();
  assert.deepEqual(readdirSync(second), []);
  assert.equal((await readJsonl(join(first, "telemetry.jsonl"))).events.length, 20);
});

test("after a batch that was lost because the file could not be opened, the exit writes each later event once", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sink = await jsonlSink(file);
  rmSync(file);
  mkdirSync(file);
  for (let i = 0; i < 3; i += 1) sink.take(call(i, "lost.example"));
  await sink.flush?.();
  assert.equal(sink.dropped, 3);
  rmdirSync(file);
  sink.take(call(3, "a-host-with-a-longer-name.example"));
  sink.take(call(4, "b.example"));
  sink.flushSync?.();
  const { events, skipped } = await readJsonl(file);
  assert.deepEqual(
    events.map(event => (event.event_type === "http_request" ? event.host : event.event_type)),
    ["a-host-with-a-longer-name.example", "b.example", "telemetry_dropped"],
  );
  assert.equal(skipped.unreadable, 0);
  await sink.close?.();
});

test("events that the exit has taken from a running write, and that it cannot write, are counted as dropped", async () => {
  const sink = await jsonlSink("/dev/full");
  for (let i = 0; i < 3; i += 1) sink.take(call(i, "a.example"));
  const flushed = sink.flush?.();
  // The write has taken the events, and waits for the state of the file.
  await Promise.resolve();
  await Promise.resolve();
  sink.take(call(3, "a.example"));
  sink.flushSync?.();
  await flushed;
  assert.equal(sink.dropped, 4);
  await sink.close?.();
});

test("a line that was cut by a kill is ended by the next write, counted as unreadable, and affects no other line", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  writeFileSync(file, `${JSON.stringify(call(0, "a.example"))}\n{"ts":17000,"event_type":"http_req`);
  const sink = await jsonlSink(file);
  sink.take(call(1, "b.example"));
  await sink.close?.();
  const { events, skipped } = await readJsonl(file);
  assert.deepEqual(
    events.map(event => event.event_type === "http_request" && event.host),
    ["a.example", "b.example"],
  );
  assert.equal(skipped.unreadable, 1);
});

test("a line that another process leaves cut in the file while the sink writes it costs no event of the sink", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const sink = await jsonlSink(file);
  for (const [at, host] of ["a.example", "b.example", "c.example"].entries()) {
    sink.take(call(at, host));
    await sink.flush?.();
    appendFileSync(file, '{"ts":17000,"event_type":"http_req');
  }
  await sink.close?.();
  const { events, skipped } = await readJsonl(file);
  assert.deepEqual(
    events.map(event => event.event_type === "http_request" && event.host),
    ["a.example", "b.example", "c.example"],
  );
  assert.equal(skipped.unreadable, 3);
});

test("a killed process leaves complete lines, except for the last", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const script = `
    import { jsonlSink } from ${JSON.stringify(import.meta.resolve("./jsonl-sink.ts"))};
    const sink = await jsonlSink(${JSON.stringify(file)}, { delayMs: 0 });
    const event = ${JSON.stringify(call(0, "a.example"))};
    for (;;) { for (let i = 0; i < 500; i += 1) sink.take(event); await sink.flush(); process.stdout.write("."); }`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
  const { events, skipped } = await readJsonl(file);
  assert.ok(events.length >= 500);
  assert.ok(skipped.unreadable <= 1);
});

test("a path that cannot be opened is an error that names it, and invalid options are refused", async () => {
  const folder = temporaryFolder("telemetry");
  writeFileSync(join(folder, "file"), "");
  await assert.rejects(jsonlSink(join(folder, "file", "telemetry.jsonl")), (error: unknown) => {
    assert.ok(error instanceof StoreError);
    assert.match(error.message, /telemetry cannot be written to .*file.telemetry\.jsonl: /);
    return true;
  });
  await assert.rejects(
    jsonlSink(join(folder, "x"), { maxBytes: 10 }),
    /maxBytes must be a whole number of at least 1024, not 10/,
  );
  await assert.rejects(jsonlSink(join(folder, "x"), { keep: 0 }), /keep must be a whole number from 1 to 1000, not 0/);
});

test("every line begins with the envelope, whatever the event", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const telemetry = createTelemetry({ sinks: [await jsonlSink(file)], runId: "r" });
  telemetry.listener({ event_type: "policy_loaded", config_hash: "h" }, { configHash: "h" });
  telemetry.listener({ event_type: "cache_trouble", message: 'quotes " and \\, "ts":1' }, { configHash: "h" });
  await telemetry.close();
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  assert.equal(lines.length, 4);
  for (const line of lines) {
    assert.deepEqual(Object.keys(JSON.parse(line)).slice(0, 4), ["ts", "event_type", "run_id", "config_hash"]);
  }
  assert.equal(JSON.parse(lines[2] ?? "").message, 'quotes " and \\, "ts":1');
});
