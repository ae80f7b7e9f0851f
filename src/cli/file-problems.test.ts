import assert from "node:assert/strict";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { writeProblem } from "./file-problems.ts";

test("a path that cannot be written is named with the reason, also if it cannot be looked at", () => {
  const folder = temporaryFolder("targets");
  const loop = join(folder, "loop");
  symlinkSync(loop, loop);
  const long = join(folder, "x".repeat(300));
  assert.equal(writeProblem(join(folder, "new.csv")), undefined);
  assert.equal(writeProblem(folder), `${folder} is a folder; expected a file`);
  assert.equal(writeProblem(loop), `cannot write ${loop} (ELOOP)`);
  assert.equal(writeProblem(long), `cannot write ${long} (ENAMETOOLONG)`);
  assert.equal(writeProblem(join(folder, "no", "a")), `cannot write ${folder}/no/a: folder not found: ${folder}/no`);
  const file = join(folder, "file");
  writeFileSync(file, "");
  assert.equal(writeProblem(join(file, "a")), `cannot write ${file}/a: ${file} is not a folder`);
});
