import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const FULL = "/dev/full";

test("a command whose output cannot be written exits with 1 and says why", {
  skip: existsSync(FULL) ? false : `${FULL} is missing`,
}, async () => {
  const full = openSync(FULL, "w");
  const file = join(import.meta.dirname, "../harvest/run-process.ts");
  const child = spawn(process.execPath, [file, "policy", "show"], { stdio: ["ignore", full, "pipe"] });
  let stderr = "";
  child.stderr?.on("data", chunk => {
    stderr += String(chunk);
  });
  const [code] = await once(child, "close");
  closeSync(full);
  assert.match(stderr, /cannot write to stdout \(ENOSPC\)/);
  assert.equal(code, 1);
});
