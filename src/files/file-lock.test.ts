import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { systemTime } from "../time/system-time.ts";
import { FileLock } from "./file-lock.ts";

const options = { time: systemTime };

test("one caller at a time holds the lock, and every caller gets it", async () => {
  const path = join(temporaryFolder("ontofetch"), "deep", "x.lock");
  let inside = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 5 }, async () => {
      await using _lock = await FileLock.acquire(path, options);
      inside += 1;
      most = Math.max(most, inside);
      await new Promise(resolve => setImmediate(resolve));
      inside -= 1;
    }),
  );
  assert.equal(most, 1);
});

test("onWait is called once, and an abort ends the wait at once", async () => {
  const path = join(temporaryFolder("ontofetch"), "x.lock");
  await using _lock = await FileLock.acquire(path, options);
  const controller = new AbortController();
  let calls = 0;
  const waiting = FileLock.acquire(path, {
    ...options,
    signal: controller.signal,
    onWait: () => {
      calls += 1;
      controller.abort(new Error("enough"));
    },
  });
  await assert.rejects(waiting, { message: "enough" });
  assert.equal(calls, 1);
});

test("tryAcquire never waits, and release may be called twice", async () => {
  const path = join(temporaryFolder("ontofetch"), "deep", "x.lock");
  const first = await FileLock.tryAcquire(path);
  assert.ok(first);
  assert.equal(await FileLock.tryAcquire(path), undefined);
  first.release();
  first.release();
  const second = await FileLock.tryAcquire(path);
  assert.ok(second);
  second.release();
});

test("a lock is seen as held or free without a file being created", async () => {
  const folder = temporaryFolder("ontofetch");
  const path = join(folder, "x.lock");
  assert.equal(await FileLock.isHeld(path), false);
  assert.deepEqual(readdirSync(folder), []);
  const lock = await FileLock.acquire(path, options);
  assert.equal(await FileLock.isHeld(path), true);
  lock.release();
  assert.equal(await FileLock.isHeld(path), false);
});
