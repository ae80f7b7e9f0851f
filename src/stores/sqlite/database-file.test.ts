import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { ensureFile, openFile, setAside } from "./database-file.ts";
import { isBusy } from "./sqlite-errors.ts";

const folder = mkdtempSync(join(tmpdir(), "docstokg-file-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const FIRST = { applicationId: 77, migrations: ["CREATE TABLE one (x); INSERT INTO one VALUES (1)"] };
const SECOND = { ...FIRST, migrations: [...FIRST.migrations, "ALTER TABLE one ADD COLUMN y DEFAULT 2"] };

test("a file of an older version is migrated and keeps its data", () => {
  const path = join(folder, "older.db");
  openFile(DatabaseSync, path, ensureFile(path, 0), FIRST).db.close();
  const { db } = openFile(DatabaseSync, path, ensureFile(path, 0), SECOND);
  assert.deepEqual({ ...db.prepare("SELECT * FROM one").get() }, { x: 1, y: 2 });
  db.close();
  assert.throws(
    () => openFile(DatabaseSync, path, ensureFile(path, 0), FIRST),
    /format version 2, but this version of docstokg reads up to 1/,
  );
});

test("a file that was replaced while it was being opened is not changed", () => {
  const path = join(folder, "replaced.db");
  const identity = ensureFile(path, 0);
  assert.throws(() => openFile(DatabaseSync, path, (identity ?? 0n) + 1n, FIRST), isBusy);
});

test("only the damaged file is renamed, not one that has replaced it", () => {
  const path = join(folder, "aside.db");
  const identity = ensureFile(path, 0);
  assert.equal(setAside(path, (identity ?? 0n) + 1n, 5), undefined);
  assert.equal(setAside(path, identity, 5), `${path}.damaged-5`);
});
