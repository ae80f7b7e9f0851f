import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { runIn, temporaryFolder } from "../../../test/cli/kit.ts";
import { ontofetch } from "../ontofetch.ts";

test("Ctrl-C ends a plan with 130", async () => {
  const { folder } = await temporaryFolder();
  const sources = join(folder, "sources.yaml");
  await writeFile(sources, 'sources:\n  x: { resolver: direct, extras: { url: "http://127.0.0.1:9/x.obo" } }\n');
  let isListening = false;
  const { exitCode } = await runIn(ontofetch, ["plan", "--sources", sources], {
    onInterrupt: listener => {
      isListening = true;
      listener();
      return () => {
        isListening = false;
      };
    },
  });
  assert.equal(exitCode, 130);
  assert.equal(isListening, false);
});

test("pull refuses --accept beside --frozen, where it has no effect", async () => {
  const { exitCode, stderr } = await runIn(ontofetch, ["pull", "--frozen", "--accept"]);
  assert.equal(exitCode, 2);
  assert.equal(stderr, "ontofetch: --accept: has no effect with --frozen, which accepts only the locked bytes\n");
});

test("flags are refused by commands on which they have no effect", async () => {
  for (const [argv, flag] of [
    [["plan"], "--check"],
    [["plan"], "--lockfile"],
    [["plan", "diff"], "--check"],
    [["show"], "--rate"],
    [["prune", "--keep", "1"], "--shared-dir"],
    [["validate"], "--rate-per-service"],
    [["doctor"], "--check"],
    [["rl", "doctor"], "--lockfile"],
  ] as const) {
    const { exitCode, stderr } = await runIn(ontofetch, [...argv, flag, "x"]);
    assert.equal(exitCode, 2, argv.join(" "));
    assert.ok(stderr.startsWith(`ontofetch: unknown option '${flag}'`), stderr);
  }
});
