import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
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
