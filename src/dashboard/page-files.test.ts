import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { pageFiles } from "./page-files.ts";

test("the files of the page have the size that the guide names, and name no other server", async () => {
  const files = await pageFiles();
  assert.ok(files.has("index.html") && files.has("main.js") && files.has("style.css"));
  const total = [...files.values()].reduce((sum, { zipped }) => sum + zipped.length, 0);
  const guide = readFileSync(join(import.meta.dirname, "../../docs/guides/dashboard.md"), "utf8");
  assert.equal(/The page is (\d+) kB compressed/.exec(guide)?.[1], String(Math.round(total / 1000)));
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
