import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { HOSTILE_FILES } from "../../../test/ontology/hostile-files.ts";

/** Seconds of CPU time for all files. `npm run hostile-files` measures each file alone, with 2 MB. */
const CPU_LIMIT_S = 30;
const BYTES = 100_000;

test("files made to occupy a parser are checked within a limit of CPU time", () => {
  const script = join(import.meta.dirname, "../../../test/ontology/inspect-hostile.ts");
  const args = ["--disable-warning=ExperimentalWarning", script, String(BYTES)];
  // The operating system ends a process that has used up its CPU time.
  const child = spawnSync("sh", ["-c", `ulimit -t ${CPU_LIMIT_S} && exec "$0" "$@"`, process.execPath, ...args], {
    encoding: "utf8",
  });
  const checked = child.stdout.split("\n").filter(line => line !== "");
  assert.deepEqual(checked, Object.keys(HOSTILE_FILES), `${child.signal} ${child.stderr}`);
});
