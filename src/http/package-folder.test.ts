import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { packageFolder } from "./package-folder.ts";

test("the folder of the package has its package.json", () => {
  const { name } = JSON.parse(readFileSync(join(packageFolder(), "package.json"), "utf8"));
  assert.equal(name, "docstokg");
});
