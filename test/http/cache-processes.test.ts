import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { CACHE_FORMAT } from "../../src/http/cache/cache-schema.ts";
import { SqliteCache } from "../../src/http/cache/sqlite-cache.ts";
import { systemTime } from "../../src/time/system-time.ts";
import { damagedDatabase } from "../stores/damaged-file.ts";

const folder = mkdtempSync(join(tmpdir(), "docstokg-cache-"));
const children: ChildProcess[] = [];

after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(folder, { recursive: true, force: true });
});

/** A process that is loaded and waits for its start. */
async function started(...args: string[]): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, "cache-process.ts"), args, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  children.push(child);
  await once(child, "message");
  return child;
}

/** Runs four processes that start at the same moment, and returns the problems that they reported. */
async function sharedByFour(file: string, entries: number): Promise<readonly string[]> {
  const four = await Promise.all(["0", "1", "2", "3"].map(me => started("share", file, me, "4", String(entries))));
  const reports = Promise.all(four.map(child => once(child, "message")));
  const exits = Promise.all(four.map(child => once(child, "exit")));
  // Each process waits for the responses of the others.
  for (const child of four)
    child.once("exit", code => {
      if (code !== 0) for (const other of four) other.kill("SIGKILL");
    });
  for (const child of four) child.send("go");
  assert.deepEqual(
    (await exits).map(([code]) => code),
    [0, 0, 0, 0],
  );
  const results = (await reports).map(([report]) => report);
  for (const { dropped } of results) assert.equal(dropped, 0);

  const cache = await SqliteCache.open(file, { time: systemTime });
  assert.equal(cache.stats.entries, 4 * entries);
  cache.close();
  assertIntact(file);
  return results.flatMap(({ troubles }) => troubles);
}

test("four processes that create one file together lose nothing, and find each other's responses", async () => {
  assert.deepEqual(await sharedByFour(join(folder, "new", "shared.db"), 500), []);
});

test("four processes that open a damaged file together rename it once, and share the new one", async () => {
  const file = join(folder, "damaged", "shared.db");
  mkdirSync(dirname(file));
  writeFileSync(file, damagedDatabase(CACHE_FORMAT.applicationId));
  const troubles = await sharedByFour(file, 50);
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]), /damaged/);
  assert.equal(readdirSync(dirname(file)).filter(name => name.includes(".damaged-")).length, 1);
});

test("a file of another program is not changed, and the cache that names it is off", async () => {
  const file = join(folder, "notes.txt");
  const notes = "the notes of a user ".repeat(500);
  writeFileSync(file, notes);
  const troubles: string[] = [];
  const cache = await SqliteCache.open(file, { time: systemTime, onTrouble: ({ message }) => troubles.push(message) });
  cache.close();
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]), /notes\.txt/);
  assert.equal(readFileSync(file, "utf8"), notes);
});

test("a process that is killed while it writes leaves a valid file", async () => {
  const file = join(folder, "killed.db");
  const child = await started("hammer", file);
  child.send("go");
  await once(child, "message");
  child.kill("SIGKILL");
  await once(child, "exit");
  assert.ok(existsSync(`${file}-wal`), "the process could not remove the log");

  const troubles: string[] = [];
  const cache = await SqliteCache.open(file, { time: systemTime, onTrouble: ({ message }) => troubles.push(message) });
  const { entries } = cache.stats;
  assert.ok(entries >= 200);
  for (let entry = 0; entry < entries; entry += 1) {
    const [found] = cache.find(`https://example.org/hammer/${entry}`);
    assert.equal(found?.body()?.toString(), `hammer ${entry} `.repeat(200));
  }
  cache.remove("https://example.org/hammer/0");
  await cache.settled();
  assert.equal(cache.stats.entries, entries - 1);
  assert.deepEqual(troubles, []);
  cache.close();
  assertIntact(file);
});

function assertIntact(file: string): void {
  const db = new DatabaseSync(file, { readOnly: true });
  assert.deepEqual({ ...db.prepare("PRAGMA integrity_check").get() }, { integrity_check: "ok" });
  // The totals of the triggers match the rows.
  const counted = db.prepare("SELECT count(*) AS entries, coalesce(sum(bytes), 0) AS bytes FROM responses").get();
  assert.deepEqual({ ...db.prepare("SELECT entries, bytes FROM totals").get() }, { ...counted });
  const strays = "SELECT count(*) AS strays FROM bodies WHERE id NOT IN (SELECT id FROM responses)";
  assert.deepEqual({ ...db.prepare(strays).get() }, { strays: 0 });
  db.close();
}
