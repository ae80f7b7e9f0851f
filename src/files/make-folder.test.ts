import assert from "node:assert/strict";
import { existsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { makeFolder } from "./make-folder.ts";

test("a folder is created with those above it, and may exist already", () => {
  const folder = join(temporaryFolder("files"), "a", "b", "c");
  makeFolder(folder);
  makeFolder(folder);
  assert.ok(statSync(folder).isDirectory());
});

test("a file at the path, or above it, is an error", () => {
  const file = join(temporaryFolder("files"), "file");
  writeFileSync(file, "");
  assert.throws(() => makeFolder(file), { code: "EEXIST" });
  assert.throws(() => makeFolder(join(file, "below")), { code: "ENOTDIR" });
  assert.throws(() => makeFolder(join(file, "below", "more")), { code: "ENOTDIR" });
});

test("a folder that the file system does not permit is an error at once", { skip: !existsSync("/proc/self") }, () => {
  assert.throws(() => makeFolder("/proc/docstokg/below"), { code: "ENOENT" });
});
