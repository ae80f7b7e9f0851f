import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../temporary-folder.ts";

const FULL = "/dev/full";

const skip = existsSync(FULL) ? false : `${FULL} is missing`;

/** Runs a file with a stdout on a full disk. */
async function runOnFullDisk(file: string, ...args: readonly string[]) {
  const full = openSync(FULL, "w");
  const child = spawn(process.execPath, [file, ...args], { stdio: ["ignore", full, "pipe"] });
  let stderr = "";
  child.stderr?.on("data", chunk => {
    stderr += String(chunk);
  });
  const [code] = await once(child, "close");
  closeSync(full);
  return { code, stderr };
}

test("a command whose output cannot be written exits with 1 and says why", { skip }, async () => {
  const file = join(import.meta.dirname, "../harvest/run-process.ts");
  assert.deepEqual(await runOnFullDisk(file, "policy", "show"), {
    code: 1,
    stderr: "docstokg: cannot write to stdout (ENOSPC)\n",
  });
});

test("a command that writes many parts says once that its output cannot be written", { skip }, async () => {
  const file = join(temporaryFolder("full-disk"), "program.mjs");
  const moduleOf = (path: string) => JSON.stringify(new URL(`../../src/cli/${path}`, import.meta.url).href);
  writeFileSync(
    file,
    `import { runAsProcess } from ${moduleOf("run-as-process.ts")};
import { writeOutput } from ${moduleOf("output/write-output.ts")};
const print = { run: async (args, flags, io) => {
  for (let part = 0; part < 3; part += 1) await writeOutput(io, "x".repeat(100_000));
  return 0;
} };
const commands = [{ name: "print", summary: "", load: async () => print }];
await runAsProcess({ name: "example", summary: "", commands }, process);
`,
  );
  assert.deepEqual(await runOnFullDisk(file, "print"), {
    code: 1,
    stderr: "example: cannot write to stdout (ENOSPC)\n",
  });
});
