import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { pageFiles } from "./page-files.ts";

test("the files of the page have at most 120 kB compressed, and name no other server", async () => {
  const files = await pageFiles();
  assert.ok(files.has("index.html") && files.has("main.js") && files.has("style.css"));
  const total = [...files.values()].reduce((sum, { zipped }) => sum + zipped.length, 0);
  assert.ok(total <= 120_000, String(total));
  for (const [name, { bytes }] of files) {
    const addresses = bytes.toString().match(/https?:\/\/[^\s"'`]+/g) ?? [];
    assert.deepEqual(
      addresses.filter(address => address !== "http://www.w3.org/2000/svg"),
      [],
      name,
    );
  }
});

test("the page has no inline script, style or handler", async () => {
  const page = String((await pageFiles()).get("index.html")?.bytes);
  assert.doesNotMatch(page, /<style|<script(?![^>]*src=)|\son\w+=|style=/);
});

test("the files of the page are read again after an error", async () => {
  const folder = join(temporaryFolder("page-files"), "web");
  await assert.rejects(pageFiles(folder), { code: "ENOENT" });
  mkdirSync(folder);
  writeFileSync(join(folder, "index.html"), "<p>");
  assert.deepEqual([...(await pageFiles(folder)).keys()], ["index.html"]);
  writeFileSync(join(folder, "main.js"), "");
  assert.equal((await pageFiles(folder)).size, 1, "read once");
});
