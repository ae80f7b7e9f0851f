import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { PROCESSES_TABLE, SqliteProcesses } from "./sqlite-processes.ts";

test("a process whose record was rolled back, as on a full disk, is counted from the next transaction on", () => {
  const db = new DatabaseSync(":memory:");
  db.exec(PROCESSES_TABLE);
  const [a, b] = ["a", "b"].map(name => new SqliteProcesses(db, name, 30_000_000)) as [
    SqliteProcesses,
    SqliteProcesses,
  ];
  const at = (machineUs: number) => ({ boot: "boot", machineUs, wallMs: 0 });
  assert.equal(a.record(at(1_000_000)), 1);
  db.exec("BEGIN IMMEDIATE");
  b.record(at(1_001_000));
  db.exec("ROLLBACK");
  assert.equal(b.record(at(1_002_000)), 2);
  assert.equal(a.record(at(1_003_000)), 2);
});
