import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";
import { FileLock } from "../../src/files/file-lock.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { folderFor } from "../ontology/kit.ts";

const options = { time: systemTime };

test("one at a time, in the order of their luck, and everybody in the end", async t => {
  const path = join(folderFor(t), "deep", "x.lock");
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      await using _lock = await FileLock.take(path, options);
      inside += 1;
      most = Math.max(most, inside);
      await new Promise(resolve => setImmediate(resolve));
      inside -= 1;
    }),
  );
  assert.equal(most, 1);
});

test("whoever waits is told once, and can leave", async t => {
  const path = join(folderFor(t), "x.lock");
  await using _lock = await FileLock.take(path, options);
  const controller = new AbortController();
  let told = 0;
  const waiting = FileLock.take(path, {
    ...options,
    signal: controller.signal,
    onWait: () => {
      told += 1;
      controller.abort(new Error("enough"));
    },
  });
  await assert.rejects(waiting, { message: "enough" });
  assert.equal(told, 1);
});

test("the lock of a process that was killed is free", async t => {
  const path = join(folderFor(t), "x.lock");
  const script = `
    const { FileLock } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/files/file-lock.ts"))});
    const { systemTime } = await import(${JSON.stringify(join(import.meta.dirname, "../../src/time/system-time.ts"))});
    await FileLock.take(${JSON.stringify(path)}, { time: systemTime });
    console.log("taken");
    setInterval(() => {}, 1000);`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "-e", script];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  let hasWaited = false;
  const taking = FileLock.take(path, {
    ...options,
    onWait: () => {
      hasWaited = true;
      child.kill("SIGKILL");
    },
  });
  (await taking).release();
  assert.equal(hasWaited, true);
});
