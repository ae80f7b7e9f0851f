import assert from "node:assert/strict";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, test } from "node:test";
import { bodies, cacheStoreSuite, response, url, variant } from "../../../test/http/cache-store-suite.ts";
import { damagedDatabase } from "../../../test/stores/damaged-file.ts";
import type { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import { CACHE_FORMAT } from "./cache-schema.ts";
import { isVariant, VARIANTS_MAX } from "./cache-store.ts";
import { SqliteCache, type SqliteCacheOptions } from "./sqlite-cache.ts";

const folder = mkdtempSync(join(tmpdir(), "docstokg-cache-"));
const open: { close(): void }[] = [];
let files = 0;

after(() => {
  for (const one of open) one.close();
  rmSync(folder, { recursive: true, force: true });
});

function newFile(): string {
  files += 1;
  return join(folder, `${files}.db`);
}

interface Opened {
  readonly cache: SqliteCache;
  readonly time: FakeTime;
  readonly troubles: StoreError[];
}

async function sqlite(file: string, options: Partial<SqliteCacheOptions> = {}): Promise<Opened> {
  const time = new FakeTime();
  const troubles: StoreError[] = [];
  const cache = await SqliteCache.open(file, { time, onTrouble: error => troubles.push(error), ...options });
  open.push(cache);
  return { cache, time, troubles };
}

/** Another process with the file open, which can hold its lock. */
function other(file: string): DatabaseSync {
  const db = new DatabaseSync(file, { timeout: 1000 });
  open.push({ close: () => db.isOpen && db.close() });
  return db;
}

const text = (content: string) => [Buffer.from(content)];

cacheStoreSuite("sqlite", async limits => {
  const { cache, time } = await sqlite(newFile(), limits);
  return { store: cache, time };
});
/** The same suite while every change is queued: a process finds its own queued changes. */
cacheStoreSuite("sqlite, locked by others at first", async limits => {
  const file = newFile();
  const { cache, time } = await sqlite(file, limits);
  const lock = other(file);
  lock.exec("BEGIN IMMEDIATE");
  const unlock = () => {
    if (lock.isTransaction) lock.exec("COMMIT");
  };
  time.setTimer(10_000, unlock);
  // The totals are those of the file, so they are read after the other writes.
  const settle = () => {
    unlock();
    time.tick(5000);
  };
  const store = new Proxy(cache, {
    get: (target, name) => {
      if (name === "stats") settle();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  return { store, time };
});

test("a response that one process stored is found by the next", async () => {
  const file = newFile();
  const first = await sqlite(file);
  first.cache.put(url, variant("a"), text("a"));
  first.cache.close();
  const { cache } = await sqlite(file);
  assert.deepEqual(bodies(cache), ["a"]);
  assert.equal(
    cache.find(url).every(found => isVariant(found, variant("a").varyKey)),
    true,
  );
});

test("two caches on one file see each other's changes", async () => {
  const file = newFile();
  const [{ cache: one }, { cache: two }] = [await sqlite(file), await sqlite(file)];
  one.put(url, response(), text("one"));
  assert.deepEqual(bodies(two), ["one"]);
  const [found] = two.find(url);
  two.put(url, response({ receivedMs: response().receivedMs + 1 }), text("two"));
  assert.deepEqual(bodies(one), ["two"]);
  assert.equal(found?.body(), undefined, "a replaced body is not found");
  one.remove(url);
  assert.deepEqual(two.find(url), []);
});

test("the file contains no URL and no selecting header, and only its owner may read it", async () => {
  const file = join(folder, "new", "folders", "cache.db");
  const { cache } = await sqlite(file);
  cache.put("https://a.example/?api_key=hunter2", variant("Bearer hunter2"), text("a"));
  assert.equal(cache.find("https://a.example/?api_key=hunter2").length, 1);
  for (const suffix of ["", "-wal", "-shm"]) {
    assert.equal(statSync(file + suffix).mode & 0o777, 0o600);
    assert.equal(readFileSync(file + suffix).includes("hunter2"), false);
  }
  assert.equal(statSync(join(folder, "new", "folders")).mode & 0o777, 0o700);
});

test("a file that other users could read becomes private", async () => {
  const file = newFile();
  (await sqlite(file)).cache.close();
  chmodSync(file, 0o644);
  await sqlite(file);
  assert.equal(statSync(file).mode & 0o777, 0o600);
});

test("a change is queued while another process writes, and is found meanwhile", async () => {
  const file = newFile();
  const { cache, time, troubles } = await sqlite(file);
  const lock = other(file);
  lock.exec("BEGIN IMMEDIATE");
  assert.equal(cache.put(url, variant("a"), text("a")), true);
  cache.put(`${url}2`, response(), text("b"));
  cache.remove(`${url}2`);
  assert.equal(cache.stats.queued, 2);
  assert.equal(cache.stats.entries, 0);
  assert.deepEqual(bodies(cache), ["a"]);
  assert.deepEqual(cache.find(`${url}2`), []);
  assert.equal(time.armedTimers, 1);

  let isSettled = false;
  void cache.settled().then(() => {
    isSettled = true;
  });
  await time.advance(5000);
  assert.equal(cache.stats.queued, 2);
  assert.equal(isSettled, false);
  lock.exec("COMMIT");
  await time.advance(200);
  assert.equal(cache.stats.queued, 0);
  assert.equal(cache.stats.entries, 1);
  assert.equal(isSettled, true);
  assert.equal(time.armedTimers, 0, "no timer is set while nothing is queued");
  assert.deepEqual(bodies(cache), ["a"]);
  assert.deepEqual(troubles, []);
});

test("delays between write attempts grow and are random", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file, { random: () => 0.999 });
  other(file).exec("BEGIN IMMEDIATE");
  cache.put(url, response(), text("a"));
  const pauses: number[] = [];
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const pauseMs = time.nextTimerMs ?? 0;
    pauses.push(pauseMs);
    await time.advance(pauseMs);
  }
  assert.deepEqual(pauses, [2, 4, 8, 16, 32, 64, 100, 100]);
});

test("when too many changes are queued the oldest response is dropped and counted, but no removal", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file, { maxQueuedWrites: 3 });
  cache.put(`${url}void`, response(), text("void"));
  const lock = other(file);
  lock.exec("BEGIN IMMEDIATE");
  cache.remove(`${url}void`);
  for (const page of ["1", "2", "3"]) cache.put(url + page, response(), text(page));
  assert.equal(cache.stats.dropped, 0);
  cache.put(`${url}4`, response(), text("4"));
  assert.equal(cache.stats.dropped, 1);
  lock.exec("COMMIT");
  await time.advance(1000);
  assert.deepEqual(
    ["void", "1", "2", "3", "4"].map(page => cache.find(url + page).length),
    [0, 0, 1, 1, 1],
  );
});

test("an older response of the file is not found after a newer one was dropped", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file, { maxQueuedWrites: 1 });
  cache.put(url, response(), text("older"));
  const lock = other(file);
  lock.exec("BEGIN IMMEDIATE");
  cache.put(url, response(), text("newer"));
  cache.put(`${url}2`, response(), text("2"));
  assert.deepEqual(cache.find(url), []);
  lock.exec("COMMIT");
  await time.advance(1000);
  assert.deepEqual(cache.find(url), []);
  assert.equal(cache.find(`${url}2`).length, 1);
});

test("removals have a limit of their own", async () => {
  const file = newFile();
  const { cache } = await sqlite(file, { maxQueuedWrites: 2 });
  other(file).exec("BEGIN IMMEDIATE");
  for (const page of ["1", "2", "3"]) cache.remove(url + page);
  cache.put(url, response(), text("a"));
  const { queued, dropped } = cache.stats;
  assert.deepEqual({ queued, dropped }, { queued: 3, dropped: 1 });
});

test("the bytes of queued changes are limited", async () => {
  const file = newFile();
  const { cache } = await sqlite(file, { maxQueuedBytes: 10_000 });
  other(file).exec("BEGIN IMMEDIATE");
  for (const page of ["1", "2", "3"]) cache.put(url + page, response(), [Buffer.alloc(4000)]);
  // Two responses, and the removal of the one that was dropped.
  assert.equal(cache.stats.queued, 3);
  assert.equal(cache.stats.dropped, 1);
});

test("a lock that is held too long suspends writing and is reported once", async () => {
  const file = newFile();
  const { cache, time, troubles } = await sqlite(file);
  const lock = other(file);
  cache.put(`${url}void`, response(), text("void"));
  lock.exec("BEGIN IMMEDIATE");
  cache.put(url, response(), text("a"));
  cache.remove(`${url}void`);
  await time.advance(31_000);
  assert.equal(time.armedTimers, 1, "the removal is written later");
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /cannot be written: database is locked/);
  assert.equal(cache.put(url, response(), text("a")), false);
  assert.deepEqual(cache.find(`${url}void`), [], "a removed response is not found, although it is still in the file");
  await cache.settled();

  lock.exec("COMMIT");
  await time.advance(31_000);
  assert.equal(cache.put(url, response(), text("a")), true);
  assert.deepEqual(bodies(cache), ["a"]);
  assert.deepEqual(cache.find(`${url}void`), []);
  assert.equal(cache.stats.entries, 1);
  assert.equal(troubles.length, 1);
});

test("a full disk is reported once, and the cache continues", async () => {
  const file = newFile();
  const { cache, time, troubles } = await sqlite(file);
  cache.put(url, response(), text("a"));
  // A trigger that raises an error stands for a full disk.
  other(file).exec("CREATE TRIGGER full BEFORE INSERT ON responses BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
  for (const page of ["1", "2", "3"]) cache.put(url + page, response(), text(page));
  await time.advance(100);
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /disk is full/);
  assert.deepEqual(bodies(cache), ["a"]);
  other(file).exec("DROP TRIGGER full");
  await time.advance(31_000);
  assert.equal(cache.put(url, response(), text("b")), true);
  assert.deepEqual(bodies(cache), ["b"]);
});

test("closing writes the queued changes when the file is free", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  const lock = other(file);
  lock.exec("BEGIN IMMEDIATE");
  for (let page = 0; page < 200; page += 1) cache.put(url + page, response(), text("a"));
  lock.exec("COMMIT");
  cache.close();
  assert.equal(time.armedTimers, 0);
  assert.equal((await sqlite(file)).cache.stats.entries, 200);
});

test("closing while another process writes drops the queued changes and does not wait", async () => {
  const file = newFile();
  const { cache } = await sqlite(file);
  other(file).exec("BEGIN IMMEDIATE");
  cache.put(url, response(), text("a"));
  cache.close();
  await cache.settled();
  assert.equal(cache.stats.queued, 0);
});

test("the time of use is not written for each use", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  cache.put(url, response(), text("a"));
  cache.put(`${url}2`, response(), text("b"));
  await time.advance(120_000);
  const used = other(file).prepare("SELECT max(used_ms) AS at FROM responses");
  const before = used.get()?.["at"];
  cache.find(url);
  assert.equal(used.get()?.["at"], before);
  cache.remove(`${url}2`);
  assert.equal(used.get()?.["at"], time.wallMs(), "it is written with the next change");
});

test("after the wall clock was set back, new entries are kept and the ones that are not used are evicted", async () => {
  const { cache, time } = await sqlite(newFile(), { maxBytes: 100_000, maxEntryBytes: 50_000 });
  const large = [Buffer.alloc(30_000)];
  for (const page of ["1", "2", "3"]) cache.put(url + page, response(), large);
  time.stepWall(-86_400_000);
  for (const page of ["4", "5", "6"]) {
    cache.put(url + page, response(), large);
    await time.advance(120_000);
    // Used once more after the step, so that it is not the least recently used one.
    assert.equal(cache.find(`${url}3`).length, 1);
  }
  assert.deepEqual(
    ["1", "2", "3", "4", "5", "6"].map(page => cache.find(url + page).length),
    [0, 0, 1, 0, 1, 1],
  );
});

test("after the wall clock was set back, new variants come first, and replace those with a later time", async () => {
  const { cache, time } = await sqlite(newFile());
  const put = (accept: string) => {
    const nowMs = time.wallMs();
    cache.put(url, variant(accept, { requestedMs: nowMs, receivedMs: nowMs }), text(accept));
  };
  for (let count = 1; count <= VARIANTS_MAX; count += 1) {
    put(`old ${count}`);
    await time.advance(1);
  }
  time.stepWall(-86_400_000);
  put("new 1");
  await time.advance(1);
  put("new 2");
  assert.deepEqual(bodies(cache).slice(0, 3), ["new 2", "new 1", `old ${VARIANTS_MAX}`]);
  assert.equal(bodies(cache).length, VARIANTS_MAX);
});

test("a process that only reads still writes times of use", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  for (let page = 0; page < 200; page += 1) cache.put(url + page, response(), text("a"));
  await time.advance(120_000);
  for (let page = 0; page < 200; page += 1) cache.find(url + page);
  const used = other(file).prepare("SELECT count(*) AS noted FROM responses WHERE used_ms = ?");
  assert.equal(used.get(time.wallMs())?.["noted"], 128);
});

for (const [what, content] of [
  ["damaged", damagedDatabase(CACHE_FORMAT.applicationId)],
  ["truncated", damagedDatabase(CACHE_FORMAT.applicationId).subarray(0, 700)],
] as const) {
  test(`a cache file that is ${what} is renamed, never deleted, and reported once`, async () => {
    const file = newFile();
    writeFileSync(file, content);
    const { cache, troubles } = await sqlite(file);
    assert.equal(cache.put(url, response(), text("a")), true);
    assert.deepEqual(bodies(cache), ["a"]);
    assert.equal(troubles.length, 1);
    const aside = readdirSync(folder).filter(name => join(folder, name).startsWith(`${file}.damaged-`));
    assert.equal(aside.length, 1);
    assert.deepEqual(readFileSync(join(folder, aside[0] ?? "")), content);
    assert.match(String(troubles[0]?.message), new RegExp(aside[0] ?? "none"));
  });
}

test("a file that is no database is not changed or renamed, and nothing is cached", async () => {
  const file = newFile();
  const content = "not a database, but the notes of a user\n".repeat(50);
  writeFileSync(file, content);
  const { cache, troubles } = await sqlite(file);
  assert.equal(cache.put(url, response(), text("a")), false);
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /is not a database of docstokg; it was not changed/);
  assert.equal(readFileSync(file, "utf8"), content);
  assert.deepEqual(
    readdirSync(folder).filter(name => join(folder, name).startsWith(`${file}.damaged-`)),
    [],
  );
});

test("a file that is damaged while in use is renamed, and a new one is opened", async () => {
  const file = newFile();
  const { cache, time, troubles } = await sqlite(file);
  for (let page = 0; page < 100; page += 1) cache.put(url + page, response(), [Buffer.alloc(5000, 1)]);
  const [found] = cache.find(`${url}1`);
  const db = other(file);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.exec("PRAGMA writable_schema = ON");
  const pages = statSync(file).size / 4096;
  db.close();
  // All bytes after the header.
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 4096, pages * 4096), { flag: "r+" });
  for (let page = 0; page < 100; page += 1) cache.find(url + page)[0]?.body();
  await time.advance(1000);
  await cache.settled();
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /damaged/);
  assert.equal(cache.put(url, response(), text("a")), true);
  assert.deepEqual(bodies(cache), ["a"]);
  assert.equal(found?.body(), undefined, "a body of the previous file is not read from the new one");
});

test("a database of another program is left alone", async () => {
  const file = newFile();
  const theirs = other(file);
  theirs.exec("CREATE TABLE places (url TEXT); INSERT INTO places VALUES ('x')");
  const { cache, troubles } = await sqlite(file);
  assert.equal(cache.put(url, response(), text("a")), false);
  assert.deepEqual(cache.find(url), []);
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /the file is a database of another program/);
  assert.deepEqual({ ...theirs.prepare("SELECT * FROM places").get() }, { url: "x" });
  assert.deepEqual({ ...theirs.prepare("PRAGMA journal_mode").get() }, { journal_mode: "delete" });
});

test("a file of a newer version is left alone", async () => {
  const file = newFile();
  (await sqlite(file)).cache.close();
  other(file).exec("PRAGMA user_version = 99");
  const { cache, troubles } = await sqlite(file);
  assert.equal(cache.put(url, response(), text("a")), false);
  assert.match(String(troubles[0]?.message), /the file has format version 99/);
  assert.ok(existsSync(file));
});

test("a path that cannot be opened is reported, and nothing is cached", async () => {
  const blocker = newFile();
  writeFileSync(blocker, "a file, not a folder");
  const { cache, troubles } = await sqlite(join(blocker, "cache.db"));
  assert.equal(cache.put(url, response(), text("a")), false);
  cache.remove(url);
  cache.freshen(url, response(), response());
  assert.deepEqual(cache.find(url), []);
  assert.deepEqual({ ...cache.stats }, { entries: 0, bytes: 0, queued: 0, dropped: 0 });
  await cache.settled();
  assert.equal(troubles.length, 1);
  assert.match(String(troubles[0]?.message), /nothing is cached/);
});

test("a file that is deleted while in use breaks nothing", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  cache.put(url, response(), text("a"));
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix);
  cache.find(url);
  cache.put(url, response(), text("b"));
  await time.advance(1000);
  cache.remove(url);
  assert.deepEqual(cache.find(url), []);
});

test("an invalid entry is skipped, and replaced by the next response", async () => {
  const file = newFile();
  const { cache } = await sqlite(file);
  cache.put(url, response(), text("a"));
  const valid = { status: 200, statusText: "OK", headers: { etag: ["a"] }, varyNames: ["accept"], varyKey: "" };
  const store = (head: string) => other(file).prepare("UPDATE responses SET head = ?").run(head);
  for (const head of ["", "[]", "null", "{", "{}", "7"]) {
    store(head);
    assert.deepEqual(cache.find(url), [], head);
  }
  for (const [name, values] of Object.entries({
    status: [undefined, "200", 0, 199, 600, 200.5],
    statusText: [undefined, 7],
    headers: [undefined, null, [], "x", { etag: 7 }, { etag: null }, { etag: ["a", 7] }, { etag: {} }],
    varyNames: [undefined, null, {}, "accept", [7]],
    varyKey: [undefined, null, 7],
  }))
    for (const value of values) {
      store(JSON.stringify({ ...valid, [name]: value }));
      assert.deepEqual(cache.find(url), [], `${name}: ${JSON.stringify(value)}`);
    }
  store(JSON.stringify(valid));
  assert.equal(cache.find(url).length, 1);
  cache.put(url, response(), text("b"));
  assert.deepEqual(bodies(cache), ["b"]);
});

test("a body with a wrong checksum is not served", async () => {
  const file = newFile();
  const { cache } = await sqlite(file);
  cache.put(url, response(), text("abc"));
  other(file).exec("UPDATE bodies SET body = x'616264'");
  assert.deepEqual(bodies(cache), [undefined]);
});

test("a process that died while it renamed a damaged file does not stop the cache", async () => {
  const file = newFile();
  writeFileSync(`${file}.moving`, "");
  const { cache } = await sqlite(file);
  assert.equal(cache.put(url, response(), text("a")), true);
});

test("an error thrown by onTrouble breaks nothing", async () => {
  const file = newFile();
  writeFileSync(file, damagedDatabase(CACHE_FORMAT.applicationId));
  const onTrouble = () => {
    throw new Error("listener");
  };
  const { cache } = await sqlite(file, { onTrouble });
  assert.equal(cache.put(url, response(), text("a")), true);
});

test("opening waits while another process has the file locked", async () => {
  const file = newFile();
  const lock = other(file);
  lock.exec("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
  const time = new FakeTime();
  const opening = SqliteCache.open(file, { time });
  await time.advance(500);
  lock.exec("COMMIT");
  lock.close();
  await time.advance(1000);
  const cache = await opening;
  open.push(cache);
  assert.equal(cache.put(url, response(), text("a")), true);
});

test("a removal that is queued while writing is suspended is written when the suspension ends", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  const lock = other(file);
  cache.put(url, response(), text("a"));
  lock.exec("BEGIN IMMEDIATE");
  cache.put(`${url}2`, response(), text("b"));
  await time.advance(31_000);
  cache.remove(url);
  await cache.settled();
  lock.exec("COMMIT");
  await time.advance(30_000);
  assert.deepEqual({ queued: cache.stats.queued, entries: cache.stats.entries }, { queued: 0, entries: 0 });
  assert.equal(time.armedTimers, 0);
});

test("waiting for the queued changes tries to write them again after the suspension, and suspends again", async () => {
  const file = newFile();
  const { cache, time } = await sqlite(file);
  cache.put(url, response(), text("a"));
  other(file).exec("CREATE TRIGGER full BEFORE DELETE ON responses BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
  cache.remove(url);
  await cache.settled();
  assert.equal(time.armedTimers, 1);
  await time.advance(30_001);
  await cache.settled();
  assert.deepEqual(cache.find(url), []);
  assert.equal(cache.stats.queued, 1);
  cache.close();
  assert.equal(time.armedTimers, 0);
});

test("a cache whose damaged file cannot be replaced has no changes to wait for", async () => {
  const file = newFile();
  const { cache, time, troubles } = await sqlite(file);
  for (let page = 0; page < 100; page += 1) cache.put(url + page, response(), [Buffer.alloc(5000, 1)]);
  const db = other(file);
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.exec("BEGIN IMMEDIATE");
  cache.remove(`${url}1`);
  assert.equal(cache.stats.queued, 1);
  writeFileSync(file, readFileSync(file).fill(0xff, 4096), { flag: "r+" });
  // A folder in place of the lock file.
  rmSync(`${file}.moving`, { force: true });
  mkdirSync(`${file}.moving`);
  for (let page = 0; page < 100; page += 1) cache.find(url + page)[0]?.body();
  assert.match(String(troubles[0]?.message), /cannot be replaced/);
  db.close();
  await time.advance(31_000);
  await cache.settled();
  assert.equal(time.armedTimers, 0);
});
