import assert from "node:assert/strict";
import { renameSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { ReadOnlyFile } from "./read-only-file.ts";

function databaseWith(path: string, name: string): void {
  const db = new DatabaseSync(path);
  db.exec(`CREATE TABLE names (name TEXT); INSERT INTO names VALUES ('${name}')`);
  db.close();
}

const nameIn = (db: DatabaseSync) => db.prepare("SELECT name FROM names").get()?.["name"];

/** A file whose name is `first`, and the connections that were opened to read it. */
function readOnlyFile() {
  const folder = temporaryFolder("sqlite");
  const path = join(folder, "names.db");
  databaseWith(path, "first");
  const opened: DatabaseSync[] = [];
  const file = new ReadOnlyFile(path, db => {
    opened.push(db);
    return db;
  });
  const replace = () => {
    databaseWith(join(folder, "other.db"), "second");
    renameSync(join(folder, "other.db"), path);
  };
  return { file, opened, replace };
}

test("one connection serves all reads of a file, and is closed with the file", () => {
  const { file, opened } = readOnlyFile();
  for (let read = 0; read < 3; read += 1) {
    using connection = file.connect();
    assert.equal(nameIn(connection.content), "first");
  }
  file.close();
  assert.deepEqual(
    opened.map(db => db.isOpen),
    [false],
  );
});

test("a read that goes on while the file is replaced keeps its connection, and the next one reads the new file", () => {
  const { file, opened, replace } = readOnlyFile();
  {
    using before = file.connect();
    replace();
    using after = file.connect();
    assert.deepEqual([nameIn(before.content), nameIn(after.content)], ["first", "second"]);
  }
  assert.deepEqual(
    opened.map(db => db.isOpen),
    [false, true],
  );
  file.close();
});

test("a read that goes on while the file is closed ends with its connection", () => {
  const { file, opened } = readOnlyFile();
  {
    using connection = file.connect();
    file.close();
    assert.equal(nameIn(connection.content), "first");
  }
  assert.deepEqual(
    opened.map(db => db.isOpen),
    [false],
  );
});

test("a connection that fails its check is closed", () => {
  const folder = temporaryFolder("sqlite");
  databaseWith(join(folder, "names.db"), "first");
  let opened: DatabaseSync | undefined;
  const file = new ReadOnlyFile(join(folder, "names.db"), db => {
    opened = db;
    throw new Error("not this file");
  });
  assert.throws(() => file.connect(), /not this file/);
  assert.equal(opened?.isOpen, false);
});
