import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { moveDurably, moveToNewPath, writeAtomically } from "./atomic-file.ts";
import { hashFile, sha256Of } from "./file-hash.ts";

test("a file is replaced in one step, and leaves no draft", async () => {
  const folder = temporaryFolder("atomic");
  const path = join(folder, "note.json");
  await writeAtomically(path, "one\n");
  await writeAtomically(path, ["two", "\n"]);
  assert.equal(await readFile(path, "utf8"), "two\n");
  assert.deepEqual(await readdir(folder), ["note.json"]);
  await moveDurably(path, join(folder, "there", "note.json"));
  assert.equal(await readFile(join(folder, "there", "note.json"), "utf8"), "two\n");
});

test("a link stays, and the file that it leads to is replaced", async () => {
  const folder = temporaryFolder("atomic");
  await mkdir(join(folder, "real"));
  const [real, link] = [join(folder, "real", "list.json"), join(folder, "list.json")];
  await symlink(join("real", "list.json"), link);
  for (const text of ["one", "two"]) {
    await writeAtomically(link, text);
    assert.equal(await readFile(real, "utf8"), text);
  }
  assert.equal(await readlink(link), join("real", "list.json"));
  assert.deepEqual(
    [await readdir(folder), await readdir(join(folder, "real"))],
    [["list.json", "real"], ["list.json"]],
  );
});

test("the new file has the permissions of the old one", async () => {
  const path = join(temporaryFolder("atomic"), "secret.json");
  await writeAtomically(path, "one");
  await chmod(path, 0o600);
  await writeAtomically(path, "two");
  assert.equal((await stat(path)).mode & 0o777, 0o600);
});

test("a named pipe is written to, and is not replaced", async () => {
  const path = join(temporaryFolder("atomic"), "pipe");
  assert.equal(spawnSync("mkfifo", [path]).status, 0);
  const reading = open(path, "r").then(async file => {
    const text = await file.readFile("utf8");
    await file.close();
    return text;
  });
  await writeAtomically(path, "one\n");
  assert.equal(await reading, "one\n");
  assert.equal((await lstat(path)).isFIFO(), true);
});

test("a write that fails leaves the old content", async () => {
  const folder = temporaryFolder("atomic");
  const path = join(folder, "note.json");
  await writeAtomically(path, "one\n");
  await assert.rejects(writeAtomically(join(path, "below"), "x"));
  function* broken(): Generator<string> {
    yield "tw";
    throw new Error("broken");
  }
  await assert.rejects(writeAtomically(path, broken()), { message: "broken" });
  assert.equal(await readFile(path, "utf8"), "one\n");
  assert.deepEqual(await readdir(folder), ["note.json"]);
});

test("a move to a new path never overwrites another file, and may be repeated", async () => {
  const folder = temporaryFolder("atomic");
  const [from, to] = [join(folder, "part"), join(folder, "deep", "file")];
  await writeFile(from, "content");
  await moveToNewPath(from, to, sha256Of("content"));
  // As after a crash between the move and its record.
  await moveToNewPath(from, to, sha256Of("content"));
  assert.equal(await readFile(to, "utf8"), "content");
  await writeFile(from, "other");
  await assert.rejects(moveToNewPath(from, to, sha256Of("other")), {
    code: "DOCSTOKG_DOWNLOAD",
    message: `${to} exists with other content and is not overwritten`,
  });
  assert.equal(await readFile(to, "utf8"), "content");
});

test("a move of a file that is missing, to a path without a file, does not say that the path has one", async () => {
  const folder = temporaryFolder("atomic");
  const [from, to] = [join(folder, "part"), join(folder, "file")];
  await assert.rejects(moveToNewPath(from, to, sha256Of("content")), {
    code: "DOCSTOKG_DOWNLOAD",
    message: `cannot move ${from} to ${to}: ENOENT`,
  });
});

test("a file is hashed by SHA-256 or MD5, and a missing file has no hash", async () => {
  const path = join(temporaryFolder("atomic"), "file");
  await writeFile(path, "content");
  assert.equal(await hashFile(path), sha256Of("content"));
  assert.equal(await hashFile(path, undefined, "md5"), "9a0364b9e99bb480dd25e1f0284c8555");
  assert.equal(await hashFile(`${path}.none`), undefined);
});

test("what a program writes to /dev/stdout comes between the other output of its pipe", () => {
  const module = new URL("./atomic-file.ts", import.meta.url).href;
  const program = `const { writeAtomically } = await import(${JSON.stringify(module)}); await writeAtomically("/dev/stdout", "middle\\n");`;
  const run = `"${process.execPath}" --no-warnings --input-type=module --eval '${program}'`;
  const piped = spawnSync("sh", ["-c", `(echo head; ${run}; echo tail) | cat`], { encoding: "utf8" });
  assert.equal(piped.stdout, "head\nmiddle\ntail\n", piped.stderr);
});

test("the target of a link is written beside itself, also if a draft on another file system is given", async () => {
  const folder = temporaryFolder("atomic");
  const link = join(folder, "link");
  await symlink(join(folder, "real"), link);
  await writeAtomically(link, "one", join(folder, "not-there", "draft"));
  assert.equal(await readFile(join(folder, "real"), "utf8"), "one");
});

test("a full disk is an error that names the file", { skip: !existsSync("/dev/full") && "no /dev/full" }, async () => {
  await assert.rejects(writeAtomically("/dev/full", "content"), {
    name: "DownloadError",
    message: "cannot write /dev/full: ENOSPC",
  });
});
