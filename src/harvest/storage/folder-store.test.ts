import assert from "node:assert/strict";
import { truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { sha256 } from "../../../test/harvest/kit.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { FolderStore } from "./folder-store.ts";

test("a path is free if it has no file or one with the same bytes, and a file of another size is not read", async () => {
  const folder = temporaryFolder("harvest");
  const store = new FolderStore(folder);
  const file = { sha256: sha256("same"), bytes: 4 };
  assert.equal(await store.availablePath("a.pdf", file), "a.pdf");
  // To read a tebibyte would take longer than the time limit of the test.
  writeFileSync(join(folder, "a.pdf"), "");
  truncateSync(join(folder, "a.pdf"), 2 ** 40);
  assert.equal(await store.availablePath("a.pdf", file), "a~2.pdf");
  writeFileSync(join(folder, "a~2.pdf"), "else");
  assert.equal(await store.availablePath("a.pdf", file), "a~3.pdf");
  writeFileSync(join(folder, "a~3.pdf"), "same");
  assert.equal(await store.availablePath("a.pdf", file), "a~3.pdf");
  assert.equal(await store.availablePath("b.pdf", file, 2), "b~2.pdf");
});
