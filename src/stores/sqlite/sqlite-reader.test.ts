import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { chmod, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { systemTime } from "../../time/system-time.ts";
import { SqliteReader } from "./sqlite-reader.ts";
import { SqliteStore } from "./sqlite-store.ts";

const run = promisify(execFile);

async function storeWithRecord(t: TestContext) {
  const folder = await mkdtemp(join(tmpdir(), "docstokg-reader-"));
  const file = join(folder, "shared.db");
  const store = await SqliteStore.open(file, { time: systemTime });
  await store.change("test a", ({ nowUs }) => ({
    record: { next: { count: 1 }, keepUntilUs: nowUs + 60_000_000 },
    result: undefined,
  }));
  const reader = new SqliteReader(file, systemTime);
  t.after(async () => {
    reader.close();
    await store.close();
    await chmod(folder, 0o700);
    await rm(folder, { recursive: true });
  });
  return { folder, file, store, reader };
}

test("records are read while another process holds the write lock", async t => {
  const { file, reader } = await storeWithRecord(t);
  const writer = new DatabaseSync(file);
  for (const begin of ["BEGIN IMMEDIATE", "BEGIN EXCLUSIVE"]) {
    writer.exec(begin);
    assert.deepEqual((await reader.read("test a")).record, { count: 1 });
    assert.deepEqual(
      (await reader.list("test ")).map(({ name }) => name),
      ["test a"],
    );
    writer.exec("ROLLBACK");
  }
  writer.close();
});

test("a reader that is closed while a read waits for a lock leaves no connection open", async t => {
  const { file, store } = await storeWithRecord(t);
  await store.close();
  const time = new FakeTime();
  const reader = new SqliteReader(file, time);
  const writer = new DatabaseSync(file);
  writer.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  const reading = reader.read("test a");
  reader.close();
  writer.exec("COMMIT");
  writer.close();
  await time.advance(20);
  assert.deepEqual((await reading).record, { count: 1 });
  // Only the last connection of a file can end its write-ahead log.
  const last = new DatabaseSync(file, { timeout: 0 });
  assert.deepEqual({ ...last.prepare("PRAGMA journal_mode = DELETE").get() }, { journal_mode: "delete" });
  last.close();
});

test("reading changes neither the permissions of the file nor its folder", async t => {
  const { folder, file, store, reader } = await storeWithRecord(t);
  await chmod(file, 0o640);
  const before = (await readdir(folder)).sort();
  assert.deepEqual((await reader.read("test a")).record, { count: 1 });
  assert.equal((await stat(file)).mode & 0o777, 0o640);
  assert.deepEqual((await readdir(folder)).sort(), before);
  reader.close();
  await store.close();
  // Without a running process there is no log, and a reader that may not write cannot create one.
  await chmod(file, 0o440);
  await chmod(folder, 0o500);
  assert.deepEqual((await reader.read("test a")).record, { count: 1 });
});

const asUser = process.getuid?.() === 0 ? false : "only root can run a program as another user";

test("another user reads a file that the umask lets it read, and creates nothing", { skip: asUser }, async t => {
  const { folder, file } = await storeWithRecord(t);
  await chmod(folder, 0o755);
  const before = (await readdir(folder)).sort();
  const script = `
    const { SqliteReader } = await import(${JSON.stringify(new URL("./sqlite-reader.ts", import.meta.url).href)});
    const { systemTime } = await import(${JSON.stringify(new URL("../../time/system-time.ts", import.meta.url).href)});
    // The other user may not be able to read the sources.
    process.setgid(65534);
    process.setuid(65534);
    const reader = new SqliteReader(${JSON.stringify(file)}, systemTime);
    console.log(JSON.stringify((await reader.read("test a")).record));
    reader.close();`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", script]);
  assert.equal(stdout.trim(), '{"count":1}');
  assert.deepEqual((await readdir(folder)).sort(), before);
});

test("another user sees what a process writes after the first read", { skip: asUser }, async t => {
  const { folder, file, store } = await storeWithRecord(t);
  await chmod(folder, 0o755);
  await store.close();
  const script = `
    const { once } = await import("node:events");
    const { SqliteReader } = await import(${JSON.stringify(new URL("./sqlite-reader.ts", import.meta.url).href)});
    const { systemTime } = await import(${JSON.stringify(new URL("../../time/system-time.ts", import.meta.url).href)});
    process.setgid(65534);
    process.setuid(65534);
    const reader = new SqliteReader(${JSON.stringify(file)}, systemTime);
    const print = async () => console.log(JSON.stringify((await reader.read("test a")).record));
    await print();
    await once(process.stdin, "data");
    await print();
    reader.close();
    process.exit();`;
  const child = spawn(process.execPath, ["--input-type=module", "--eval", script], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  assert.equal((await lines.next()).value, '{"count":1}');
  const later = await SqliteStore.open(file, { time: systemTime });
  t.after(() => later.close());
  await later.change("test a", ({ nowUs }) => ({
    record: { next: { count: 2 }, keepUntilUs: nowUs + 60_000_000 },
    result: undefined,
  }));
  child.stdin.write("\n");
  assert.equal((await lines.next()).value, '{"count":2}');
});

test("a reader that begins with several reads at once keeps no connection after it is closed", async t => {
  const { folder, store, reader } = await storeWithRecord(t);
  await Promise.all([reader.read("test a"), reader.list("test "), reader.read("test b")]);
  reader.close();
  await store.close();
  // SQLite removes the log when the last connection is closed.
  assert.ok(!(await readdir(folder)).includes("shared.db-wal"));
});

test("the reader is not counted among the processes", async t => {
  const { store, reader } = await storeWithRecord(t);
  await reader.read("test a");
  await store.exchange([], []);
  assert.equal(store.processes, 1);
});

test("a missing file is an error, and is not created", async t => {
  const { folder } = await storeWithRecord(t);
  const reader = new SqliteReader(join(folder, "other.db"), systemTime);
  await assert.rejects(reader.read("test a"), StoreError);
  assert.ok(!(await readdir(folder)).includes("other.db"));
});

test("a file of an older version is not changed by reading it", async t => {
  const { file, store, reader } = await storeWithRecord(t);
  await store.close();
  const db = new DatabaseSync(file);
  db.exec("PRAGMA user_version = 1");
  db.close();
  await assert.rejects(reader.read("test a"), /written by an older version of docstokg/);
});
