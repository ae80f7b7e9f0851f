import assert from "node:assert/strict";
import { appendFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { allOf, call, RUN, readJsonl, START_MS } from "../../../test/telemetry/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { rotatedName } from "../rotated-files.ts";
import { openTelemetryFile } from "./telemetry-file.ts";

test("lines that are not events are skipped and counted", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
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
  const { events, skipped } = await readJsonl(file);
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

test("runs in one file are read separately, and skipped events are counted for the run that was read", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
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

test("a file that is rotated while older ones are read is not left out, and a deleted one is skipped", async () => {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  const write = (path: string, host: string) => writeFileSync(path, `${JSON.stringify(call(0, host))}\n`.repeat(2));
  const oldest = await rotatedName(file, START_MS + 1);
  const second = await rotatedName(file, START_MS + 2);
  const third = await rotatedName(file, START_MS + 3);
  write(oldest, "oldest.example");
  write(second, "second.example");
  write(file, "current.example");
  const hosts: unknown[] = [];
  for await (const event of (await openTelemetryFile(file)).events(RUN)) {
    if (hosts.length === 0) {
      rmSync(second);
      renameSync(file, third);
      write(file, "new.example");
    }
    hosts.push(event.event_type === "http_request" && event.host);
  }
  assert.deepEqual(hosts, ["oldest.example", "oldest.example", "current.example", "current.example"]);
});
