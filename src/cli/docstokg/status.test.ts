import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";
import { workOf } from "../../harvest/identifiers/identifiers.ts";
import { openManifest } from "../../harvest/manifest/manifest.ts";
import { systemTime } from "../../time/system-time.ts";

test("status refuses flags that have no effect beside others", async () => {
  const { folder } = await temporaryFolder();
  const manifest = join(folder, "manifest.sqlite");
  const out = await runCli(["status", "--out", folder, "--manifest", manifest]);
  assert.deepEqual(
    [out.exitCode, out.stderr],
    [2, "docstokg: --out: has no effect with --manifest, which names the manifest\n"],
  );
  const json = await runCli(["status", "--out", folder, "--export", "-", "--json"]);
  assert.deepEqual(
    [json.exitCode, json.stderr],
    [2, "docstokg: --json: has no effect with --export, which writes JSONL\n"],
  );
});

test("an export that cannot be written is a one-line error", async () => {
  const { folder } = await temporaryFolder();
  await (await openManifest(join(folder, "manifest.sqlite"), systemTime)).close();
  const { exitCode, stderr } = await runCli([
    "status",
    "--out",
    folder,
    "--export",
    join(folder, "nowhere", "x.jsonl"),
  ]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /^docstokg: --export: cannot write .*x\.jsonl: folder not found: .*nowhere\n$/);
});

test("status says that a killed run has stopped, and spells out characters that are not seen", async () => {
  const { folder } = await temporaryFolder();
  const manifest = await openManifest(join(folder, "manifest.sqlite"), systemTime);
  const run = await manifest.beginRun("run");
  await manifest.works.add(run, [workOf({ url: "https://x.example/a\u202eb" })], { isPresent: () => true });
  await manifest.fail(1, "network", "lost\u200b\u001b[2J");
  await manifest.close();
  const { stdout } = await runCli(["status", "--out", folder]);
  assert.match(stdout, /last run: \S+, stopped \(run\)/);
  assert.match(stdout, /lost\\u\{200b\}\\u\{1b\}\[2J/);
  for (const hidden of ["\u200b", "\u001b", "\u202e"]) assert.ok(!stdout.includes(hidden));
});
