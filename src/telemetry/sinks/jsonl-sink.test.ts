import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { acquire, allOf, at, call, folderFor, RUN, START_MS } from "../../../test/telemetry/kit.ts";
import { StoreError } from "../../errors.ts";
import { jsonlEvents, jsonlFiles } from "../reading/jsonl-events.ts";
import { SkippedEventCounter } from "../reading/skipped-events.ts";
import { openTelemetryFile } from "../reading/telemetry-file.ts";
import { jsonlSink } from "./jsonl-sink.ts";

async function readAll(file: string, runId?: string) {
  const skipped = new SkippedEventCounter();
  const events = await allOf(jsonlEvents(await jsonlFiles(file), skipped, runId));
  return { events, skipped };
}

test("each event is a line of JSON, and is read back unchanged", async t => {
  const file = join(folderFor(t), "deep", "telemetry.jsonl");
  const sink = await jsonlSink(file);
  const events = [call(0, "a.example"), acquire(1, "a.example", "granted"), at(2, "store_back", {})];
  for (const event of events) sink.take(event);
  await sink.close?.();
  assert.equal(readFileSync(file, "utf8").split("\n").length, 4);
  assert.equal(statSync(file).mode & 0o077, 0);
  const { events: read, skipped } = await readAll(file);
  // Undefined fields are not written.
  assert.deepEqual(read, JSON.parse(JSON.stringify(events)));
  assert.equal(skipped.unreadable, 0);
});

test("a file that is too large is rotated, and only `keep` files are kept", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  const sink = await jsonlSink(file, { maxBytes: 1024, keep: 2 });
  for (let i = 0; i < 12; i += 1) {
    sink.take(acquire(i, `host-${i}.example`, "granted"));
    sink.take(acquire(i, `host-${i}.example`, "refused"));
    await sink.flush?.();
  }
  await sink.close?.();
  assert.equal((await jsonlFiles(file)).length, 3);
  for (const name of await jsonlFiles(file)) assert.ok(statSync(name).size <= 1024, name);
  const { events, skipped } = await readAll(file);
  const times = events.map(({ ts }) => ts);
  assert.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
  assert.equal(skipped.unreadable, 0);
  assert.ok(events.length > 4 && events.length < 24);
});

test("two sinks on one file lose nothing when it is rotated", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  const sinks = [
    await jsonlSink(file, { maxBytes: 2048, keep: 100 }),
    await jsonlSink(file, { maxBytes: 2048, keep: 100 }),
  ];
  for (let i = 0; i < 100; i += 1) {
    for (const [of, sink] of sinks.entries()) sink.take(acquire(i, `host-${of}.example`, "granted"));
    await Promise.all(sinks.map(sink => sink.flush?.()));
  }
  for (const sink of sinks) await sink.close?.();
  assert.equal((await readAll(file)).events.length, 200);
});

test("a file that was moved or deleted is created again", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  const sink = await jsonlSink(file);
  sink.take(call(0, "a.example"));
  await sink.flush?.();
  rmSync(file);
  sink.take(call(1, "b.example"));
  await sink.close?.();
  assert.equal((await readAll(file)).events.length, 1);
});

test("a line that was cut by a kill is ended by the next write, counted as unreadable, and affects no other line", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  writeFileSync(file, `${JSON.stringify(call(0, "a.example"))}\n{"ts":17000,"event_type":"http_req`);
  const sink = await jsonlSink(file);
  sink.take(call(1, "b.example"));
  await sink.close?.();
  const { events, skipped } = await readAll(file);
  assert.deepEqual(
    events.map(event => event.event_type === "http_request" && event.host),
    ["a.example", "b.example"],
  );
  assert.equal(skipped.unreadable, 1);
});

test("a killed process leaves complete lines, except for the last", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
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
  const { events, skipped } = await readAll(file);
  assert.ok(events.length >= 500);
  assert.ok(skipped.unreadable <= 1);
});

test("lines that are not events are skipped and counted", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  const envelope = { ts: 1, run_id: RUN, config_hash: "" };
  const lines = [
    JSON.stringify(call(0, "a.example")),
    JSON.stringify({ ...envelope, event_type: "quantum_leap", qubits: 3 }),
    JSON.stringify({ ...envelope, event_type: "quantum_leap", qubits: 4 }),
    JSON.stringify({ ...envelope, event_type: "http_request", host: 7 }),
    JSON.stringify({ ...envelope, event_type: "store_back", ts: "now" }),
    "null",
    "[]",
    "",
    "not json at all",
    `{"ts":1,"event_type":"store_back","run_id":"${"x".repeat(2 ** 20)}"}`,
    JSON.stringify({ ...envelope, event_type: "__proto__" }),
    JSON.stringify(call(1, "b.example")),
  ];
  writeFileSync(file, lines.join("\n"));
  const { events, skipped } = await readAll(file);
  assert.equal(events.length, 2);
  assert.equal(skipped.unreadable, 6);
  assert.deepEqual(
    [...skipped.unknown],
    [
      ["quantum_leap", 2],
      ["__proto__", 1],
    ],
  );
});

test("runs in one file are read separately, and skipped events are counted for the run that was read", async t => {
  const file = join(folderFor(t), "telemetry.jsonl");
  const other = { ...call(5000, "b.example"), run_id: "run-2" };
  writeFileSync(
    file,
    [call(0, "a.example"), other, call(9000, "a.example")].map(event => `${JSON.stringify(event)}\n`).join(""),
  );
  appendFileSync(file, `${JSON.stringify({ ts: 1, event_type: "new_thing", run_id: "run-2", config_hash: "" })}\n`);
  const opened = await openTelemetryFile(file);
  const runs = await opened.runs();
  assert.deepEqual(
    runs.map(({ runId, events, lastMs, firstMs }) => [runId, events, lastMs - firstMs]),
    [
      ["run-2", 2, START_MS + 5000 - 1],
      [RUN, 2, 9000],
    ],
  );
  assert.equal((await allOf(opened.events(RUN))).length, 2);
  assert.equal(opened.skipped.unknown.size, 0);
  assert.equal((await allOf(opened.events("run-2"))).length, 1);
  assert.equal(opened.skipped.unknown.size, 1);
});

test("a path that cannot be opened is an error that names it, and invalid options are refused", async t => {
  const folder = folderFor(t);
  writeFileSync(join(folder, "file"), "");
  await assert.rejects(jsonlSink(join(folder, "file", "telemetry.jsonl")), (error: unknown) => {
    assert.ok(error instanceof StoreError);
    assert.match(error.message, /telemetry cannot be written to .*file.telemetry\.jsonl: /);
    return true;
  });
  await assert.rejects(
    jsonlSink(join(folder, "x"), { maxBytes: 10 }),
    /maxBytes must be a whole number from 1024, not 10/,
  );
  await assert.rejects(jsonlSink(join(folder, "x"), { keep: 0 }), /keep must be a whole number from 1 to 1000, not 0/);
});
