import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";
import { recordedCommand } from "./recorded-command.ts";

test("the recorded command has only flags that can be typed", () => {
  assert.equal(recordedCommand("run", { out: "papers", telemetry: true }), "run --out papers");
  assert.equal(recordedCommand("run", { telemetry: false, allowPrivate: true }), "run --no-telemetry --allow-private");
});

test("the recorded command has no contact address and no store URL", () => {
  assert.equal(recordedCommand("run", { mailto: "a@example.org", rateDsn: "redis://me:secret@x" }), "run");
});

test("the manifest does not contain the password of a shared store", async () => {
  const { folder } = await temporaryFolder();
  const dsn = "sqlite:hunter2.db";
  const limits = ["--rate-backend", "sqlite", "--rate-dsn", join(folder, dsn)];
  const { exitCode, stderr } = await runCli([
    "run",
    "nonsense!",
    "--out",
    folder,
    ...limits,
    "--no-telemetry",
    "--quiet",
  ]);
  assert.equal(exitCode, 1, stderr);
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  try {
    const commands = (await manifest.reports.report()).runs.map(({ command }) => command);
    assert.equal(commands.length, 1);
    assert.doesNotMatch(JSON.stringify(commands), /hunter2/);
  } finally {
    await manifest.close();
  }
});
