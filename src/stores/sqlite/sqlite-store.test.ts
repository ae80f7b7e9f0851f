import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { damagedDatabase } from "../../../test/stores/damaged-file.ts";
import { recordContract } from "../../../test/stores/record-contract.ts";
import { storeContract, type TestedStore } from "../../../test/stores/store-contract.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { type BreakerRecord, EMPTY_BREAKER_RECORD, setCooldown } from "../../core/breaker/breaker-record.ts";
import type { StoreError } from "../../errors.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { BudgetStore, LeaseRequest, Store } from "../store.ts";
import { SqliteStore, type SqliteStoreOptions } from "./sqlite-store.ts";

const folder = temporaryFolder("store");

let files = 0;
function newFile(): string {
  files += 1;
  return join(folder, String(files), "budgets.db");
}

async function opened(t: TestContext, file: string, options: SqliteStoreOptions): Promise<SqliteStore> {
  const store = await SqliteStore.open(file, options);
  t.after(() => store.close());
  return store;
}

/** A connection of another program to the same file. */
function connection(t: TestContext, file: string): DatabaseSync {
  const db = new DatabaseSync(file);
  t.after(() => {
    if (db.isOpen) db.close();
  });
  return db;
}

function requestFor(key: string, limit: number, windowMs: number, most = 1): LeaseRequest {
  const windows = [{ limit, windowUs: windowMs * 1000, spanUs: windowMs * 1000 }];
  return { claims: [{ key, windows, spacingUs: 0 }], least: 1, most };
}

async function grantedUnits(store: BudgetStore, request: LeaseRequest): Promise<number> {
  const [reply] = await store.exchange([], [request]);
  return reply?.kind === "granted" ? reply.units : 0;
}

async function waitMs(store: BudgetStore, request: LeaseRequest): Promise<number> {
  const [reply] = await store.exchange([], [request]);
  return reply?.kind === "wait" ? reply.waitMs : 0;
}

async function tested(t: TestContext): Promise<TestedStore> {
  const time = new FakeTime();
  const file = newFile();
  return { member: () => opened(t, file, { time }), advance: ms => time.advance(ms) };
}
storeContract("sqlite", tested);
recordContract("sqlite", tested);

for (const [umask, isPrivate, mode, folderMode] of [
  [0o022, false, 0o644, 0o755],
  [0o027, false, 0o640, 0o750],
  [0o077, false, 0o600, 0o700],
  [0o000, true, 0o600, 0o700],
] as const) {
  const what = isPrivate ? "a private file" : `with the umask ${umask.toString(8).padStart(3, "0")}, a file`;
  test(`sqlite: ${what} has the mode ${mode.toString(8)}`, async t => {
    const file = newFile();
    const before = process.umask(umask);
    t.after(() => process.umask(before));
    const store = await opened(t, file, { time: new FakeTime(), isPrivate });
    await grantedUnits(store, requestFor("k", 1, 1000));
    for (const suffix of ["", "-wal", "-shm"]) assert.equal(statSync(file + suffix).mode & 0o777, mode, suffix);
    assert.equal(statSync(join(file, "..")).mode & 0o777, folderMode);
    assert.equal(readdirSync(join(file, "..")).length, 3, "no other file is left behind");
  });
}

test("sqlite: the mode of an existing file stays as it is", async t => {
  const file = newFile();
  await (await SqliteStore.open(file, { time: new FakeTime() })).close();
  chmodSync(file, 0o664);
  const store = await opened(t, file, { time: new FakeTime() });
  await grantedUnits(store, requestFor("k", 1, 1000));
  for (const suffix of ["", "-wal", "-shm"]) assert.equal(statSync(file + suffix).mode & 0o777, 0o664, suffix);
});

test("sqlite: a budget survives the processes that used it", async t => {
  const time = new FakeTime();
  const file = newFile();
  const first = await opened(t, file, { time });
  assert.equal(await grantedUnits(first, requestFor("k", 1, 60_000)), 1);
  await first.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  await first.close();
  await time.advance(10_000);
  const second = await opened(t, file, { time });
  assert.equal(await waitMs(second, requestFor("k", 1, 60_000)), 50_000);
});

test("sqlite: a call waits for a locked file without blocking the event loop, and shares its transaction with later calls", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time, random: () => 0.5 });
  const writer = connection(t, file);
  writer.exec("BEGIN IMMEDIATE");
  const first = grantedUnits(store, requestFor("k", 2, 1000));
  await time.advance(30);
  const second = grantedUnits(store, requestFor("k", 2, 1000));
  await time.advance(30);
  writer.exec("COMMIT");
  await time.advance(20);
  assert.deepEqual(await Promise.all([first, second]), [1, 1]);
  assert.equal(time.armedTimers, 0);
});

test("sqlite: each call on a locked file fails after 500 ms of its own, and works again when the lock is gone", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time });
  const writer = connection(t, file);
  writer.exec("BEGIN IMMEDIATE");
  const failed: string[] = [];
  const early = grantedUnits(store, requestFor("k", 9, 1000)).catch(() => failed.push("early"));
  await time.advance(300);
  const late = grantedUnits(store, requestFor("k", 9, 1000)).catch(() => failed.push("late"));
  await time.advance(225);
  await early;
  assert.deepEqual(failed, ["early"]);
  await time.advance(300);
  await late;
  assert.deepEqual(failed, ["early", "late"]);
  await Promise.all([
    assert.rejects(store.exchange([], []), {
      name: "StoreError",
      code: "DOCSTOKG_STORE",
      message: /locked by another/,
    }),
    time.advance(600),
  ]);
  writer.exec("COMMIT");
  assert.equal(await grantedUnits(store, requestFor("k", 9, 1000, 9)), 9, "calls that failed were not charged");
});

test("sqlite: a store that cannot be opened because of a lock says how long it waited", async t => {
  const time = new FakeTime();
  const file = newFile();
  await (await SqliteStore.open(file, { time })).close();
  connection(t, file).exec("BEGIN IMMEDIATE");
  await Promise.all([
    assert.rejects(SqliteStore.open(file, { time, timeoutMs: 100 }), {
      code: "DOCSTOKG_STORE",
      message: `the store ${file} was locked by another process for 5000 ms`,
    }),
    time.advance(6000),
  ]);
});

test("sqlite: close waits for queued calls", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time });
  const units = grantedUnits(store, requestFor("k", 1, 1000));
  await store.close();
  assert.equal(await units, 1);
});

test("sqlite: after a restart of the machine the wall clock tells the age of a window", async t => {
  const file = newFile();
  const before = new FakeTime({ wallMs: 1_000_000 });
  await before.advance(500_000);
  const first = await opened(t, file, { time: before, boot: "one" });
  assert.equal(await grantedUnits(first, requestFor("k", 2, 600_000, 2)), 2);
  await first.exchange([{ keys: ["k"], written: 2, returned: 0 }], []);
  await first.close();
  // The clock of the machine starts at 0 again; by the wall clock 100 s have passed.
  const since = new FakeTime({ wallMs: 1_600_000 });
  const second = await opened(t, file, { time: since, boot: "two" });
  assert.equal(
    await waitMs(second, requestFor("k", 2, 600_000)),
    500_001,
    "one millisecond more, because the wall clock has whole milliseconds",
  );
  await since.advance(500_001);
  assert.equal(await grantedUnits(second, requestFor("k", 2, 600_000)), 1);
});

test("sqlite: a wall clock set back during a restart puts no stamp into the future", async t => {
  const file = newFile();
  const before = new FakeTime({ wallMs: 9_000_000_000 });
  await before.advance(77_000);
  const first = await opened(t, file, { time: before, boot: "one" });
  assert.equal(await grantedUnits(first, requestFor("k", 1, 10_000)), 1);
  await first.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  await first.close();
  const since = new FakeTime({ wallMs: 0 });
  const second = await opened(t, file, { time: since, boot: "two" });
  assert.equal(await waitMs(second, requestFor("k", 1, 10_000)), 10_000);
});

test("sqlite: steps of the wall clock change no window while the machine runs", async t => {
  const time = new FakeTime();
  const store = await opened(t, newFile(), { time });
  assert.equal(await grantedUnits(store, requestFor("k", 1, 10_000)), 1);
  await store.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  time.stepWall(3_600_000);
  assert.equal(await waitMs(store, requestFor("k", 1, 10_000)), 10_000);
  time.stepWall(-9_000_000);
  await time.advance(4000);
  assert.equal(await waitMs(store, requestFor("k", 1, 10_000)), 6000);
});

test("sqlite: without a boot id, stamps ahead of the clock are from before the restart", async t => {
  const file = newFile();
  const before = new FakeTime({ wallMs: 0 });
  await before.advance(50_000);
  const first = await opened(t, file, { time: before, boot: "" });
  assert.equal(await grantedUnits(first, requestFor("k", 1, 10_000)), 1);
  await first.exchange([{ keys: ["k"], written: 1, returned: 0 }], []);
  await first.close();
  const since = new FakeTime({ wallMs: 54_001 });
  const second = await opened(t, file, { time: since, boot: "" });
  assert.equal(await waitMs(second, requestFor("k", 1, 10_000)), 6000);
  assert.equal(second.processes, 1);
});

test("sqlite: expired budgets are deleted, a few at a time", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time, leaseMs: 5000 });
  await store.exchange(
    [],
    Array.from({ length: 100 }, (_, host) => requestFor(`host ${host}`, 1, 1000)),
  );
  await grantedUnits(store, requestFor("slow", 1, 100_000));
  const rows = () => Number(connection(t, file).prepare("SELECT count(*) AS rows FROM budgets").get()?.["rows"]);
  assert.equal(rows(), 101);
  await time.advance(6001);
  for (let call = 0; call < 8 * 8; call += 1) await store.exchange([], []);
  assert.equal(rows(), 1);
  assert.equal(await grantedUnits(store, requestFor("slow", 1, 100_000)), 0);
});

test("sqlite: a program that uses each of many hosts once does not make the file grow for ever", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time, leaseMs: 5000 });
  const hostsAtOnce = 20;
  for (let round = 0; round < 200; round += 1) {
    await store.exchange(
      [],
      Array.from({ length: hostsAtOnce }, (_, host) => requestFor(`host ${round} ${host}`, 1, 1000)),
    );
    await time.advance(1000);
  }
  const [{ rows } = { rows: 0 }] = connection(t, file).prepare("SELECT count(*) AS rows FROM budgets").all();
  // Budgets are needed for six seconds, and deleted when all rows were checked again.
  assert.ok(Number(rows) <= 3 * 6 * hostsAtOnce, `${rows} rows`);
});

for (const [what, damage] of [
  ["damaged after its header", (file: string) => writeFileSync(file, readFileSync(file).fill(0xa5, 100))],
  ["truncated", (file: string) => truncateSync(file, 5000)],
] as const) {
  test(`sqlite: a file that is ${what} is renamed, never deleted, and reported`, async t => {
    const file = newFile();
    await (await SqliteStore.open(file, { time: new FakeTime() })).close();
    damage(file);
    const bytes = readFileSync(file);
    const troubles: StoreError[] = [];
    const store = await opened(t, file, { time: new FakeTime(), onTrouble: error => troubles.push(error) });
    assert.equal(await grantedUnits(store, requestFor("k", 1, 1000)), 1);
    const [aside = ""] = readdirSync(join(file, "..")).filter(name => name.includes(".damaged-"));
    assert.deepEqual(readFileSync(join(file, "..", aside)), bytes);
    assert.equal(troubles.length, 1);
    assert.match(String(troubles[0]?.message), /damaged/);
  });
}

for (const [what, state] of [
  ["is no JSON", '{"log":'],
  ["has no numbers", '{"log":{},"windows":[],"lengthsUs":[],"turns":{},"leases":{},"claims":[],"ringSizes":[]}'],
  ["is a number", "7"],
] as const) {
  test(`sqlite: a budget that ${what} is removed and reported, and all others go on`, async t => {
    const file = newFile();
    const troubles: StoreError[] = [];
    const onTrouble = (error: StoreError) => {
      troubles.push(error);
      throw new Error("an exception of the listener");
    };
    const store = await opened(t, file, { time: new FakeTime(), onTrouble });
    for (const key of ["k", "other"]) assert.equal(await grantedUnits(store, requestFor(key, 1, 1000)), 1);
    connection(t, file).prepare("UPDATE budgets SET state = ? WHERE key = 'k'").run(state);
    assert.equal(await grantedUnits(store, requestFor("k", 1, 1000)), 1);
    assert.equal(await grantedUnits(store, requestFor("other", 1, 1000)), 0, "the other budget is kept");
    assert.match(
      troubles.map(({ message }) => message).join(),
      /: the stored budget "k" could not be parsed, and was removed$/,
    );
    assert.deepEqual(
      readdirSync(join(file, "..")).filter(name => name.includes("damaged")),
      [],
    );
  });
}

test("sqlite: entries of processes that cannot be parsed count as missing", async t => {
  const file = newFile();
  const store = await opened(t, file, { time: new FakeTime() });
  const second = await opened(t, file, { time: new FakeTime() });
  assert.equal(await grantedUnits(store, requestFor("k", 2, 1000)), 1);
  for (const value of ["{", "7", "{}", "null"]) {
    connection(t, file).prepare("UPDATE budget_entries SET value = ?").run(value);
    await second.exchange([{ keys: ["k"], written: 1, returned: 0 }], [requestFor("k", 2, 1000)]);
  }
  assert.equal(await grantedUnits(second, requestFor("other", 1, 1000)), 1);
});

test("sqlite: a record that cannot be parsed counts as missing, and the next write replaces it", async t => {
  const file = newFile();
  const time = new FakeTime();
  const store = await opened(t, file, { time });
  await startCooldown(store, "a.example", 1000);
  await startCooldown(store, "b.example", 1000);
  connection(t, file).exec("UPDATE records SET record = '{' WHERE name = 'host a.example'");
  assert.equal((await store.read("host a.example")).record, undefined);
  assert.deepEqual(
    (await store.list("host ")).map(({ name }) => name),
    ["host b.example"],
  );
  await startCooldown(store, "a.example", 1000);
  assert.equal(await leftMs(store, "a.example"), 1000);
  assert.equal(await leftMs(store, "b.example"), 1000);
});

for (const [what, content] of [
  ["a list", "10.1000/1,first\n10.1000/2,second\n"],
  ["a long text", "plain text ".repeat(5000)],
  ["a damaged database of another program", damagedDatabase(0)],
] as const) {
  test(`sqlite: a file that is ${what} is a permanent StoreError, and is not changed or renamed`, async () => {
    const file = newFile();
    mkdirSync(join(file, ".."));
    writeFileSync(file, content);
    await assert.rejects(SqliteStore.open(file, { time: new FakeTime() }), {
      name: "StoreError",
      isPermanent: true,
      message: `cannot open ${file}: the file exists and is not a database of docstokg; it was not changed; name another file`,
    });
    assert.deepEqual(readFileSync(file), Buffer.from(content));
    assert.deepEqual(readdirSync(join(file, "..")), ["budgets.db"]);
  });
}

test("sqlite: a database of another program is refused and not changed", async t => {
  const file = newFile();
  mkdirSync(join(file, ".."));
  const db = connection(t, file);
  db.exec("CREATE TABLE theirs (x)");
  db.close();
  const bytes = readFileSync(file);
  await assert.rejects(SqliteStore.open(file, { time: new FakeTime() }), {
    name: "StoreError",
    isPermanent: true,
    message: /cannot open .*: the file is a database of another program; name another file/,
  });
  assert.deepEqual(readFileSync(file), bytes);
  assert.deepEqual(readdirSync(join(file, "..")), ["budgets.db"]);
});

test("sqlite: a file of a newer version is refused", async t => {
  const file = newFile();
  await (await SqliteStore.open(file, { time: new FakeTime() })).close();
  connection(t, file).exec("PRAGMA user_version = 99");
  await assert.rejects(SqliteStore.open(file, { time: new FakeTime() }), {
    isPermanent: true,
    message: /format version 99, but this version of docstokg reads up to 4/,
  });
});

test("sqlite: a file without our tables is a StoreError", async t => {
  const file = newFile();
  await (await SqliteStore.open(file, { time: new FakeTime() })).close();
  connection(t, file).exec("DROP TABLE budgets");
  await assert.rejects(SqliteStore.open(file, { time: new FakeTime() }), {
    name: "StoreError",
    message: /no such table/,
  });
});

test("sqlite: a path that cannot be opened is a StoreError", async () => {
  for (const path of ["/proc/budgets.db", join(import.meta.filename, "budgets.db"), folder])
    await assert.rejects(SqliteStore.open(path, { time: new FakeTime() }), {
      name: "StoreError",
      isPermanent: true,
      message: /cannot open /,
    });
});

test("sqlite: calls fail while the disk is full, and grant nothing", async t => {
  const file = newFile();
  const store = await opened(t, file, { time: new FakeTime() });
  const db = connection(t, file);
  // A trigger that aborts stands for a full disk.
  db.exec("CREATE TRIGGER full BEFORE INSERT ON budgets BEGIN SELECT RAISE(ABORT, 'disk is full'); END");
  await assert.rejects(grantedUnits(store, requestFor("k", 1, 1000)), { name: "StoreError", message: /disk is full/ });
  db.exec("DROP TRIGGER full");
  assert.equal(await grantedUnits(store, requestFor("k", 1, 1000)), 1);
});

test("sqlite: a file deleted while in use is created again, and shared with later processes", async t => {
  const file = newFile();
  const time = new FakeTime();
  const a = await opened(t, file, { time });
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
  const b = await opened(t, file, { time });
  assert.equal(await grantedUnits(b, requestFor("k", 1, 1000)), 1);
  const late = grantedUnits(a, requestFor("k", 1, 1000));
  await time.advance(5);
  assert.equal(await late, 0);
  assert.ok(existsSync(`${file}-wal`), "closing the deleted file does not remove the log of the new one");
});

for (const suffixes of [["-wal"], ["-shm"], ["-wal", "-shm"]]) {
  test(`sqlite: a file that loses its ${suffixes.join(" and ")} while in use is renamed and reported, and its budgets count as lost`, async t => {
    const file = newFile();
    const time = new FakeTime();
    const troubles: string[] = [];
    const a = await opened(t, file, { time, onTrouble: ({ message }) => troubles.push(message) });
    assert.equal(await grantedUnits(a, requestFor("k", 1, 1000)), 1);
    for (const suffix of suffixes) rmSync(file + suffix);
    await assert.rejects(a.exchange([], [requestFor("k", 1, 1000)]), /-(?:wal|shm) was moved or deleted/);
    const [message = "", ...others] = troubles;
    assert.match(message, /was renamed to .*budgets\.db\.damaged-\d+, a new file is used$/);
    assert.deepEqual(others, []);
    const [claim] = requestFor("k", 1, 1000).claims;
    assert.ok(claim !== undefined);
    const asking = a.exchange([], [{ ...requestFor("k", 1, 1000), claims: [{ ...claim, knownAgoUs: 1 }] }]);
    await time.advance(5);
    const [reply] = await asking;
    assert.ok(reply?.kind === "wait" && reply.isLost === true);
  });
}

test("sqlite: a file whose log was truncated is renamed and reported", async t => {
  const file = newFile();
  const time = new FakeTime();
  const a = await opened(t, file, { time });
  const troubles: string[] = [];
  const b = await opened(t, file, { time, onTrouble: ({ message }) => troubles.push(message) });
  assert.equal(await grantedUnits(a, requestFor("k", 2, 1000)), 1);
  truncateSync(`${file}-wal`);
  await assert.rejects(grantedUnits(b, requestFor("k", 2, 1000)), /the store .* is damaged/);
  assert.match(troubles.join("\n"), /was renamed to .*budgets\.db\.damaged-\d+, a new file is used$/);
});

test("sqlite: opening a file twice in one process keeps the locks of the first", async t => {
  const file = newFile();
  const time = new FakeTime();
  const a = await opened(t, file, { time });
  const b = await opened(t, file, { time });
  await b.close();
  const script = `const { DatabaseSync } = require("node:sqlite");
    const db = new DatabaseSync(${JSON.stringify(file)});
    db.exec("BEGIN IMMEDIATE; COMMIT");
    db.close();`;
  execFileSync(process.execPath, ["-e", script], { stdio: "ignore" });
  assert.ok(existsSync(`${file}-wal`), "another process that closes the file is not the last one, so it keeps the log");
  assert.equal(await grantedUnits(a, requestFor("k", 1, 1000)), 1);
});

/** Writes the cooldown of a host as the breakers do. */
function startCooldown(store: Store, host: string, ms: number): Promise<unknown> {
  return store.change<BreakerRecord, void>(`host ${host}`, ({ record = EMPTY_BREAKER_RECORD, nowUs }) => {
    const next = setCooldown(record, "serverCooldown", { untilUs: nowUs + ms * 1000, reason: "retry-after" }, nowUs);
    return { record: { next, keepUntilUs: nowUs + 3_600_000_000 }, result: undefined };
  });
}

async function leftMs(store: Store, host: string): Promise<number> {
  const { record, nowUs } = await store.read<BreakerRecord>(`host ${host}`);
  return ((record?.serverCooldown.untilUs ?? nowUs) - nowUs) / 1000;
}

test("sqlite: a step of the wall clock does not change a cooldown while the machine runs", async t => {
  const time = new FakeTime();
  const file = newFile();
  const [a, b] = [await opened(t, file, { time, boot: "one" }), await opened(t, file, { time, boot: "one" })];
  await startCooldown(a, "a.example", 50_000);
  time.stepWall(3_600_000);
  assert.equal(await leftMs(b, "a.example"), 50_000);
  time.stepWall(-7_200_000);
  await time.advance(10_000);
  assert.equal(await leftMs(b, "a.example"), 40_000);
});

test("sqlite: after a restart of the machine the wall clock tells the rest of a cooldown, never more", async t => {
  const time = new FakeTime();
  const file = newFile();
  const before = await opened(t, file, { time, boot: "one" });
  await startCooldown(before, "a.example", 50_000);
  await before.close();
  await time.advance(20_000);
  const after = await opened(t, file, { time, boot: "two" });
  // Up to one millisecond more, because the wall clock has whole milliseconds.
  assert.equal(Math.floor(await leftMs(after, "a.example")), 30_001);
  time.stepWall(-10_000_000);
  assert.ok((await leftMs(after, "a.example")) <= 50_001);
});

test("sqlite: rows of breaker_cooldowns are deleted one second after their end", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time });
  const hosts = () =>
    connection(t, file)
      .prepare("SELECT host FROM breaker_cooldowns ORDER BY host")
      .all()
      .map(row => row["host"]);
  await startCooldown(store, "a.example", 1000);
  await time.advance(1999);
  await startCooldown(store, "b.example", 60_000);
  assert.deepEqual(hosts(), ["a.example", "b.example"]);
  await time.advance(2);
  await startCooldown(store, "c.example", 60_000);
  assert.deepEqual(hosts(), ["b.example", "c.example"]);
  const row = connection(t, file)
    .prepare("SELECT until_wall, updated_at FROM breaker_cooldowns WHERE host = 'c.example'")
    .get();
  assert.equal(row?.["updated_at"], time.wallMs() / 1000);
  assert.equal(row?.["until_wall"], time.wallMs() / 1000 + 60);
});

test("sqlite: migration from version 1 adds the new tables and keeps the usage of a window", async t => {
  const time = new FakeTime();
  const file = newFile();
  const store = await opened(t, file, { time });
  assert.equal(await grantedUnits(store, requestFor("k", 1, 60_000)), 1);
  await store.close();
  const db = connection(t, file);
  db.exec("DROP TABLE records; DROP TABLE breaker_cooldowns; DROP TABLE budget_entries; PRAGMA user_version = 1");
  db.close();
  const again = await opened(t, file, { time });
  await startCooldown(again, "a.example", 1000);
  assert.equal(await leftMs(again, "a.example"), 1000);
  assert.equal(await grantedUnits(again, requestFor("k", 1, 60_000)), 0);
});
