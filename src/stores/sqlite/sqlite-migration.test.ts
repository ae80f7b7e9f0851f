import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { type BreakerRecord, runningCooldown } from "../../core/breaker/breaker-record.ts";
import type { SharedSlots } from "../../core/limits/shared-slots.ts";
import { FakeTime } from "../../testing/fake-time.ts";
import type { LeaseRequest } from "../store.ts";
import { SqliteStore } from "./sqlite-store.ts";

const folder = temporaryFolder("migration");

/** Written out and not imported: this is what files on disk look like, whatever the code says today. */
const VERSION_2 = `
  CREATE TABLE budgets (
    key TEXT PRIMARY KEY NOT NULL,
    state TEXT NOT NULL,
    stamps BLOB NOT NULL,
    boot TEXT NOT NULL,
    machine_us INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
  );
  CREATE TABLE processes (
    name TEXT PRIMARY KEY NOT NULL,
    pid INTEGER NOT NULL,
    boot TEXT NOT NULL,
    seen_us INTEGER NOT NULL,
    seen_ms INTEGER NOT NULL
  );
  CREATE TABLE notes (
    name TEXT PRIMARY KEY NOT NULL,
    note TEXT NOT NULL,
    keep_until_us INTEGER NOT NULL,
    keep_until_ms INTEGER NOT NULL,
    boot TEXT NOT NULL,
    machine_us INTEGER NOT NULL,
    wall_ms INTEGER NOT NULL
  );
  CREATE INDEX notes_by_end ON notes (keep_until_us);
  CREATE TABLE breaker_cooldowns (
    host TEXT PRIMARY KEY NOT NULL,
    until_wall REAL NOT NULL,
    reason TEXT NOT NULL,
    updated_at REAL NOT NULL
  );
  CREATE INDEX breaker_cooldowns_by_end ON breaker_cooldowns (until_wall);
  PRAGMA application_id = ${0x64_74_6b_62};
  PRAGMA user_version = 2;
`;
const BOOT = "one";
const KEY = "lane a.example metadata";
/** When the file was written: by the clock of the machine, and by the wall clock. */
const WRITTEN = { machineUs: 7_000_000, wallMs: 1_007_000 };

/** A file of version 2 with the rows that its program wrote. */
function versionTwoFile(name: string): string {
  const file = join(folder, name);
  const db = new DatabaseSync(file);
  db.exec(VERSION_2);
  const note = db.prepare("INSERT INTO notes VALUES (?, ?, ?, ?, ?, ?, ?)");
  const keep = (subject: string, text: string) =>
    note.run(subject, text, 3_607_000_000, 4_607_000, BOOT, WRITTEN.machineUs, WRITTEN.wallMs);
  keep(
    "host a.example",
    `{"epoch":0,"asked":{"serial":7000000,"untilUs":57000000,"reason":"retry-after"},
      "ordered":{"serial":0,"untilUs":0,"reason":""},"circuits":{}}`,
  );
  keep(
    "host b.example",
    String.raw`{"epoch":0,"asked":{"serial":0,"untilUs":0,"reason":""},
      "ordered":{"serial":7000000,"untilUs":97000000,"reason":"cli-open:\"asked\":"},"circuits":{}}`,
  );
  keep(
    "resolver lov",
    `{"epoch":0,"asked":{"serial":0,"untilUs":0,"reason":""},"ordered":{"serial":0,"untilUs":0,"reason":""},
      "circuits":{"":{"serial":7000000,"isClosed":false,"untilUs":67000000,"reopened":0,"probes":[]}}}`,
  );
  keep(
    `slots ${KEY}`,
    `{"p1":{"held":1,"limit":1,"leaseUntilUs":37000000,"hungrySinceUs":7000000,"hungryUntilUs":8000000}}`,
  );
  keep("process p1", `{"pid":1,"snapshot":{"lanes":[]}}`);
  keep("hold ols:a.example", `{"untilUs":57000000}`);
  // Two units of three were written, at 6 s and at 7 s, and process p1 waits for more.
  const state = `{"windows":[{"limit":3,"spanUs":60000000,"grain":1,"capacity":4}],"lengthsUs":[60000000],
    "members":{"p1":{"claim":{"key":"${KEY}","windows":[{"limit":3,"windowUs":60000000,"spanUs":60000000}],"spacingUs":0},
    "pending":0,"leaseUs":37000000,"served":2,"isHungry":true,"backUs":37000000}},
    "log":{"written":2,"pending":0,"lastUs":7000000},"ringSizes":[4]}`;
  const stamps = new Uint8Array(new Float64Array([6_000_000, 6_000_000, 7_000_000, 6_000_000]).buffer);
  db.prepare("INSERT INTO budgets VALUES (?, ?, ?, ?, ?, ?)").run(
    KEY,
    state,
    stamps,
    BOOT,
    WRITTEN.machineUs,
    WRITTEN.wallMs,
  );
  db.prepare("INSERT INTO breaker_cooldowns VALUES ('b.example', 1097, 'cli-open:x', 1007)").run();
  db.close();
  return file;
}

/** Opened by this version three seconds after the file was written. */
async function migrated(
  t: TestContext,
  file: string,
): Promise<{ readonly store: SqliteStore; readonly time: FakeTime }> {
  const time = new FakeTime({ wallMs: 1_000_000 });
  await time.advance(10_000);
  const store = await SqliteStore.open(file, { time, boot: BOOT });
  t.after(() => store.close());
  return { store, time };
}

async function cooldownOf(store: SqliteStore, host: string): Promise<{ readonly reason: string; readonly ms: number }> {
  const { record, nowUs } = await store.read<BreakerRecord>(`host ${host}`);
  const cooldown = record && runningCooldown(record, nowUs);
  return { reason: cooldown?.reason ?? "", ms: ((cooldown?.untilUs ?? nowUs) - nowUs) / 1000 };
}

function lease(least: number, most: number): LeaseRequest {
  const windows = [{ limit: 3, windowUs: 60_000_000, spanUs: 60_000_000 }];
  return { claims: [{ key: KEY, windows, spacingUs: 0 }], least, most };
}

test("sqlite: migration from version 2 keeps every cooldown and open circuit", async t => {
  const { store } = await migrated(t, versionTwoFile("cooldowns.db"));
  assert.deepEqual(await cooldownOf(store, "a.example"), { reason: "retry-after", ms: 47_000 });
  assert.deepEqual(await cooldownOf(store, "b.example"), { reason: 'cli-open:"asked":', ms: 87_000 });
  const { record: resolver } = await store.read<BreakerRecord>("resolver lov");
  assert.equal(resolver?.circuits[""]?.untilUs, 67_000_000);
  assert.equal(resolver?.serverCooldown.untilUs, 0);
  const { record: held } = await store.read("hold ols:a.example");
  assert.deepEqual(held, { untilUs: 57_000_000 });
});

test("sqlite: migration from version 2 keeps the usage of a window", async t => {
  const { store, time } = await migrated(t, versionTwoFile("usage.db"));
  const [reply] = await store.exchange([], [lease(2, 2)]);
  assert.deepEqual(reply, { kind: "wait", waitMs: 56_000, key: KEY, isStricter: false });
  // One unit is free, also for a process that was not known when the file was written.
  assert.equal((await store.exchange([], [lease(1, 3)]))[0]?.kind, "granted");
  await time.advance(55_999);
  assert.equal((await store.exchange([], [lease(1, 1)]))[0]?.kind, "wait");
  await time.advance(1);
  assert.equal((await store.exchange([], [lease(1, 1)]))[0]?.kind, "granted");
});

test("sqlite: migration from version 2 keeps slot leases and drops status records of processes", async t => {
  const { store } = await migrated(t, versionTwoFile("slots.db"));
  const { record: slots } = await store.read<SharedSlots>(`slots ${KEY}`);
  assert.deepEqual(slots, {
    p1: { held: 1, limit: 1, leaseUntilUs: 37_000_000, waitingSinceUs: 7_000_000, waitingUntilUs: 8_000_000 },
  });
  assert.deepEqual(await store.list("process "), []);
});

test("sqlite: migration from version 2 keeps the table for other tools and renames no other", async t => {
  const file = versionTwoFile("tables.db");
  await migrated(t, file);
  const db = new DatabaseSync(file);
  t.after(() => db.close());
  const tables = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all();
  assert.deepEqual(
    tables.map(({ name }) => name),
    ["breaker_cooldowns", "budget_entries", "budgets", "processes", "records"],
  );
  assert.equal(db.prepare("PRAGMA user_version").get()?.["user_version"], 4);
  assert.equal(
    db.prepare("SELECT until_wall FROM breaker_cooldowns WHERE host = 'b.example'").get()?.["until_wall"],
    1097,
  );
  const states = db.prepare("SELECT state FROM budgets").all();
  assert.doesNotMatch(JSON.stringify(states), /isHungry|backUs|served/);
});
