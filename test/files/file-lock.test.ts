import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { FileLock } from "../../src/files/file-lock.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { temporaryFolder } from "../temporary-folder.ts";

const options = { time: systemTime };

test("the lock of a killed process is free", async () => {
  const path = join(temporaryFolder("ontofetch"), "x.lock");
  const script = `
    const { FileLock } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/files/file-lock.ts"))});
    const { systemTime } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/time/system-time.ts"))});
    await FileLock.acquire(${JSON.stringify(path)}, { time: systemTime });
    console.log("acquired");
    setInterval(() => {}, 1000);`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", script];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  let hasWaited = false;
  const taking = FileLock.acquire(path, {
    ...options,
    onWait: () => {
      hasWaited = true;
      child.kill("SIGKILL");
    },
  });
  (await taking).release();
  assert.equal(hasWaited, true);
});
