import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { runCli, temporaryFolder } from "../../../test/cli/kit.ts";

test("status refuses flags that have no effect beside others", async t => {
  const { folder } = await temporaryFolder(t);
  const manifest = join(folder, "manifest.sqlite");
  const out = await runCli(["status", "--out", folder, "--manifest", manifest]);
  assert.deepEqual(
    [out.exitCode, out.stderr],
    [2, "docstokg: --out: has no effect with --manifest, which names the file\n"],
  );
  const json = await runCli(["status", "--out", folder, "--export", "-", "--json"]);
  assert.deepEqual(
    [json.exitCode, json.stderr],
    [2, "docstokg: --json: has no effect with --export, which writes JSONL\n"],
  );
});
