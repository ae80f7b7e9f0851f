import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { ensureFile, identityOf, openFile, setAside } from "./database-file.ts";
import { isBusy } from "./sqlite-errors.ts";

const folder = temporaryFolder("file");

const FIRST = { applicationId: 77, migrations: ["CREATE TABLE one (x); INSERT INTO one VALUES (1)"] };
const SECOND = { ...FIRST, migrations: [...FIRST.migrations, "ALTER TABLE one ADD COLUMN y DEFAULT 2"] };

test("a file of an older version is migrated and keeps its data", () => {
  const path = join(folder, "older.db");
  openFile(DatabaseSync, path, ensureFile(path), FIRST).db.close();
  const { db } = openFile(DatabaseSync, path, ensureFile(path), SECOND);
  assert.deepEqual({ ...db.prepare("SELECT * FROM one").get() }, { x: 1, y: 2 });
  db.close();
  assert.throws(
    () => openFile(DatabaseSync, path, ensureFile(path), FIRST),
    /format version 2, but this version of docstokg reads up to 1/,
  );
});

test("a file that was replaced while it was being opened is not changed", () => {
  const path = join(folder, "replaced.db");
  const identity = ensureFile(path);
  assert.throws(() => openFile(DatabaseSync, path, (identity ?? 0n) + 1n, FIRST), isBusy);
});

test("only the damaged file is renamed, not one that has replaced it", () => {
  const path = join(folder, "aside.db");
  const identity = ensureFile(path);
  assert.equal(setAside(path, (identity ?? 0n) + 1n, 5), undefined);
  assert.equal(setAside(path, identity, 5), `${path}.damaged-5`);
});

/** Renames the damaged file in a thread that stops before the first rename, until `proceed` is called. */
async function stalledSetAside(path: string, identity: bigint | undefined) {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const code = `
    const fs = require("node:fs");
    const { syncBuiltinESMExports } = require("node:module");
    const { workerData, parentPort } = require("node:worker_threads");
    const rename = fs.renameSync;
    fs.renameSync = (...paths) => {
      parentPort.postMessage("stalled");
      Atomics.wait(workerData.state, 0, 0);
      rename(...paths);
    };
    syncBuiltinESMExports();
    import(workerData.module).then(({ setAside }) => setAside(workerData.path, workerData.identity, 7));
  `;
  const module = new URL("./database-file.ts", import.meta.url).href;
  const worker = new Worker(code, { eval: true, workerData: { state, module, path, identity } });
  await once(worker, "message");
  return async () => {
    Atomics.store(state, 0, 1);
    Atomics.notify(state, 0);
    await once(worker, "exit");
  };
}

test("a process that stalls while it renames a damaged file never renames the new file of another process", async () => {
  const path = join(folder, "stalled.db");
  writeFileSync(path, "damaged ".repeat(1000));
  const identity = ensureFile(path);
  const proceed = await stalledSetAside(path, identity);
  // However long the other process stalls, no process replaces the file meanwhile.
  assert.throws(() => ensureFile(path), isBusy);
  assert.equal(setAside(path, identity, 8), undefined);
  await proceed();
  const { db, identity: now } = openFile(DatabaseSync, path, ensureFile(path), FIRST);
  assert.equal(identityOf(path), now);
  db.close();
  assert.equal(readFileSync(`${path}.damaged-7`, "utf8").slice(0, 7), "damaged");
});

test("a process that died while it renamed a damaged file blocks no other process", () => {
  const path = join(folder, "died.db");
  writeFileSync(`${path}.moving`, "");
  openFile(DatabaseSync, path, ensureFile(path), FIRST).db.close();
});
