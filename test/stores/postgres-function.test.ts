/** The shared budget is implemented in TypeScript and in PL/pgSQL. Both must give the same replies to random traces. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { callText, repliesOf } from "../../src/stores/postgres/exchange-call.ts";
import { loadPgDriver, type PgSingleClient } from "../../src/stores/postgres/postgres-driver.ts";
import { prepareTables } from "../../src/stores/postgres/postgres-tables.ts";
import { GIVEN_UP } from "../../src/stores/postgres/schema/exchange-sql.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../../src/stores/store.ts";
import { PostgresServer, whyNoPostgres } from "../harvest/postgres-server.ts";
import { assertSame, crowded, LEASE, mixed, reporting, SECOND, type TracedExchange } from "./budget-traces.ts";

const SCHEMA = "traces";

describe("the function", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  let client: PgSingleClient;
  let runs = 0;
  let number = 0;

  before(async () => {
    server = await PostgresServer.start();
    const url = `postgres://docstokg@127.0.0.1:${server.port}/postgres`;
    client = (await loadPgDriver({ url, schema: SCHEMA, idleInTransactionMs: 0 })).client();
    await client.connect();
    await prepareTables(client, SCHEMA);
    await client.query("SET synchronous_commit = off");
  });
  after(async () => {
    await client.end();
    await server.stop();
  });

  async function inDatabase(
    process: string,
    nowUs: number,
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[] = [],
    dead: readonly string[] = [],
  ): Promise<readonly LeaseReply[]> {
    const named = (key: string) => `run${runs} ${key}`;
    const call = {
      settlements: settlements.map(each => ({ ...each, keys: each.keys.map(named) })),
      requests: requests.map(each => ({
        ...each,
        claims: each.claims.map(claim => ({ ...claim, key: named(claim.key) })),
      })),
      reports: reports.map(each => ({ ...each, claim: { ...each.claim, key: named(each.claim.key) } })),
      dead,
    };
    number += 1;
    const { rows } = await client.query("SELECT reply FROM exchange($1, $2, $3, $4, $5, false, $6)", [
      ...[process, number, LEASE, callText(call), nowUs, nowUs],
    ]);
    return repliesOf(requests, rows[0]?.["reply"] as readonly number[]);
  }

  const begin = (): TracedExchange => {
    runs += 1;
    return inDatabase;
  };

  test("the function and SharedBudget give the same replies when processes join, are reported dead, return or change their claims", () =>
    assertSame(begin, mixed, 300));

  test("the function and SharedBudget agree which waiting process comes next", () => assertSame(begin, crowded, 300));

  test("the function and SharedBudget count the same after reports of what was sent without the store", () =>
    assertSame(begin, reporting, 300));

  test("a clock that is set back makes waits longer and grants nothing early", async () => {
    runs += 1;
    const windows = [{ limit: 2, windowUs: SECOND, spanUs: SECOND }];
    const ask: LeaseRequest = { claims: [{ key: "x", windows, spacingUs: 0 }], least: 1, most: 2 };
    const nowUs = 1_700_000_000_000_000;
    assert.deepEqual(await inDatabase("a", nowUs, [], [ask]), [{ kind: "granted", units: 2, isStricter: false }]);
    const settled: Settlement = { keys: ["x"], written: 2, returned: 0 };
    const wait = { kind: "wait", key: "x", isStricter: false };
    assert.deepEqual(await inDatabase("a", nowUs - 3600 * SECOND, [settled], [ask]), [{ ...wait, waitMs: 1000 }]);
    assert.deepEqual(await inDatabase("a", nowUs - 3599.6 * SECOND, [], [ask]), [{ ...wait, waitMs: 600 }]);
    assert.equal((await inDatabase("a", nowUs - 3599 * SECOND, [], [ask]))[0]?.kind, "granted");
  });

  test("a clock that is set back does not make a budget look lost", async () => {
    runs += 1;
    const windows = [{ limit: 9, windowUs: SECOND, spanUs: SECOND }];
    const ask = (knownAgoUs?: number): LeaseRequest => ({
      claims: [{ key: "x", windows, spacingUs: 0, knownAgoUs }],
      ...{ least: 1, most: 1 },
    });
    const granted = [{ kind: "granted", units: 1, isStricter: false }];
    const nowUs = 1_700_000_000_000_000;
    assert.deepEqual(await inDatabase("a", nowUs, [], [ask()]), granted);
    assert.deepEqual(await inDatabase("a", nowUs - 2 * SECOND, [], [ask(0.3 * SECOND)]), granted);
    assert.deepEqual(await inDatabase("a", nowUs - SECOND, [], [ask(1.3 * SECOND)]), granted);
    // Nothing is known about a process that has not asked for longer than a lease.
    const lost = { kind: "wait", waitMs: 0.001, key: "x", isStricter: false, isLost: true };
    assert.deepEqual(await inDatabase("a", nowUs - SECOND, [], [ask(LEASE + 2 * SECOND)]), [lost]);
  });

  test("an exchange that its process has given up has no effect", async () => {
    runs += 1;
    const windows = [{ limit: 1, windowUs: SECOND, spanUs: SECOND }];
    const ask: LeaseRequest = { claims: [{ key: "x", windows, spacingUs: 0 }], least: 1, most: 1 };
    // The process asks about its exchange while that still waits for a lock, and goes on without it.
    await client.query("SELECT * FROM resume($1, $2)", ["late", number + 2]);
    await assert.rejects(inDatabase("late", 1_700_000_000_000_000, [], [ask]), { code: GIVEN_UP });
    number += 1;
    assert.equal((await inDatabase("late", 1_700_000_000_000_000, [], [ask]))[0]?.kind, "granted");
  });

  test("an exchange that was given up has no effect also after a sweep", async () => {
    runs += 1;
    const windows = [{ limit: 9, windowUs: SECOND, spanUs: SECOND }];
    const ask: LeaseRequest = { claims: [{ key: "x", windows, spacingUs: 0 }], least: 1, most: 1 };
    await inDatabase("idle", 1_600_000_000_000_000, [], [ask]);
    for (const process of ["new", "idle"]) {
      await client.query("SELECT * FROM resume($1, $2)", [process, number + 1]);
      await client.query("SELECT sweep(clock_us(), $1)", [LEASE]);
      await assert.rejects(inDatabase(process, 1_700_000_000_000_000, [], [ask]), { code: GIVEN_UP }, process);
    }
  });
});
