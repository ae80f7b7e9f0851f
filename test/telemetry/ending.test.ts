/** Processes that end without closing their telemetry. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { openTelemetryFile } from "../../src/telemetry/reading/telemetry-file.ts";
import { collectOutput } from "../process-output.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { allOf } from "./kit.ts";

async function run(t: TestContext, command: string, args: readonly string[]) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => child.kill("SIGKILL"));
  return collectOutput(child).ended;
}

const program = join(import.meta.dirname, "ending-process.ts");

for (const name of ["telemetry.jsonl", "telemetry.db"]) {
  for (const [ending, expected] of [
    ["exit", [3, null]],
    ["throw", [1, null]],
    ["reject", [1, null]],
    ["signal", [null, "SIGTERM"]],
    ["handled signal", [4, null]],
  ] as const) {
    test(`all queued events reach ${name} when the process ends by: ${ending}`, async t => {
      const file = join(temporaryFolder("telemetry"), name);
      const { code, signal, stderr } = await run(t, process.execPath, [program, file, ending]);
      assert.deepEqual([code, signal], expected, stderr);
      const opened = await openTelemetryFile(file);
      t.after(() => opened.close());
      const events = await allOf(opened.events("r"));
      const hosts = events.flatMap(event => (event.event_type === "rate_head_skipped" ? [event.host] : []));
      // A batch that was being written at the signal may come after the others.
      assert.deepEqual(hosts.sort(), Array.from({ length: 1000 }, (_, index) => `host-${index}.example`).sort());
    });
  }
}

async function assertExactDrops(t: TestContext, ending: string): Promise<void> {
  const file = join(temporaryFolder("telemetry"), "telemetry.jsonl");
  // In blocks of 512 or 1024 bytes: 17 of them are no multiple of a line.
  const limited = `ulimit -f 17; exec "$0" "$@"`;
  const command = ["-c", limited, process.execPath, program, file, ending];
  const { code, stdout, stderr } = await run(t, "/bin/sh", command);
  assert.equal(code, 0, stderr);
  const lines = readFileSync(file, "utf8").split("\n");
  const torn = lines.pop() ?? "";
  assert.notEqual(torn, "", "the limit lies within a line");
  const written = lines.filter(line => line !== "");
  for (const line of written) JSON.parse(line);
  // 1000 events and run_started.
  assert.deepEqual(JSON.parse(stdout), { jsonl: 1001 - written.length });
}

test("when the disk is full, exactly the events that are not in the file are counted as dropped", t =>
  assertExactDrops(t, "full disk"));

test("when the disk is full at a signal, exactly the events that are not in the file are counted as dropped", t =>
  assertExactDrops(t, "full disk at a signal"));
