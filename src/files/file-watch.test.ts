import assert from "node:assert/strict";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { systemTime } from "../time/system-time.ts";
import { FileWatch } from "./file-watch.ts";

/** Counts changes; `next` resolves at the next one. */
async function watchFiles(t: TestContext, files: readonly string[]) {
  let waiting = Promise.withResolvers<void>();
  let count = 0;
  const watch = await FileWatch.open(files, {
    time: systemTime,
    onChange: () => {
      count += 1;
      waiting.resolve();
      waiting = Promise.withResolvers<void>();
    },
    onTrouble: error => assert.fail(error),
  });
  t.after(() => watch[Symbol.dispose]());
  return { watch, next: () => waiting.promise, count: () => count };
}

test("a file that is written, replaced, removed or created again is reported once each", async t => {
  const folder = temporaryFolder("harvest");
  const file = join(folder, "limits.yaml");
  writeFileSync(file, "a");
  const { next, count } = await watchFiles(t, [file]);
  for (const change of [
    () => writeFileSync(file, "b"),
    () => {
      writeFileSync(`${file}.new`, "c");
      renameSync(`${file}.new`, file);
    },
    () => rmSync(file),
    () => writeFileSync(file, "c"),
  ]) {
    const changed = next();
    change();
    await changed;
  }
  assert.equal(count(), 4);
});

test("consecutive writes are reported as one change, and writes to other files of the folder are not reported", async t => {
  const folder = temporaryFolder("harvest");
  const file = join(folder, "limits.yaml");
  writeFileSync(file, "a");
  const { next, count } = await watchFiles(t, [file]);
  const changed = next();
  writeFileSync(join(folder, "other"), "x");
  for (const text of ["", "b", "bc", "bcd"]) writeFileSync(file, text);
  writeFileSync(join(folder, "other"), "y");
  await changed;
  assert.equal(count(), 1);
});

test("a file behind a link is reported when the link leads to another folder", async t => {
  const folder = temporaryFolder("harvest");
  for (const version of ["one", "two"]) {
    mkdirSync(join(folder, version));
    writeFileSync(join(folder, version, "limits.yaml"), version);
  }
  symlinkSync("one", join(folder, "current"));
  symlinkSync("current/limits.yaml", join(folder, "limits.yaml"));
  const { next } = await watchFiles(t, [join(folder, "limits.yaml")]);
  const changed = next();
  symlinkSync("two", join(folder, "new"));
  renameSync(join(folder, "new"), join(folder, "current"));
  await changed;
});

test("after disposal nothing is reported, and a missing folder is an error", async t => {
  const folder = temporaryFolder("harvest");
  const file = join(folder, "limits.yaml");
  writeFileSync(file, "a");
  const first = await watchFiles(t, [file]);
  const second = await watchFiles(t, [file]);
  first.watch[Symbol.dispose]();
  const changed = second.next();
  writeFileSync(file, "b");
  await changed;
  assert.equal(first.count(), 0);
  await assert.rejects(watchFiles(t, [join(folder, "missing", "x.yaml")]), { code: "ENOENT" });
});
