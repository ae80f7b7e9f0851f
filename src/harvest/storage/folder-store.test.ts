import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { eventually, sha256 } from "../../../test/harvest/kit.ts";
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

/** Writes a text again and again. */
const WRITER = `
  const { FolderStore } = await import("${new URL("folder-store.ts", import.meta.url)}");
  const store = new FolderStore(process.argv[1]);
  await store.prepare();
  const text = "x".repeat(2 ** 24);
  for (let number = 1; ; number += 1) await store.writeText("a.json", text, number + ".part");
`;

test("a process that dies while it writes a text leaves nothing beside the finished files", async t => {
  const folder = temporaryFolder("harvest");
  const writer = spawn(process.execPath, ["--input-type=module", "-e", WRITER, folder], { stdio: "inherit" });
  t.after(() => writer.kill("SIGKILL"));
  const finished = new Set([".parts", "a.json"]);
  const drafts = () => readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(name => !finished.has(name));
  await eventually(() => drafts().length > 0);
  writer.kill("SIGKILL");
  await once(writer, "close");
  for (const draft of drafts()) assert.match(draft, /^\.parts.\d+\.part$/);
});
