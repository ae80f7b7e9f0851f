import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../../test/harvest/postgres-server.ts";
import { loadPgDriver } from "../../../stores/postgres/postgres-driver.ts";
import { systemTime } from "../../../time/system-time.ts";
import { CommitMarks } from "./commit-marks.ts";
import { PostgresManifest } from "./postgres-manifest.ts";

const NOT_NULL_VIOLATION = { code: "23502" };

describe("marks of transactions", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server?.stop());

  test("a transaction that the server begins after it was looked up fails, also when its row has a later mark", async t => {
    const url = server.url({ schema: "marks" });
    await (await PostgresManifest.open(url, systemTime)).close();
    const client = (await loadPgDriver({ url, schema: "marks", idleInTransactionMs: 0 })).client();
    await client.connect();
    t.after(() => client.end());
    const marks = new CommitMarks();
    const committed = marks.next();
    await client.query(marks.textFor(committed));
    assert.equal(await marks.isCommitted(client, committed), true);
    marks.release(committed);
    const late = marks.next();
    assert.equal(await marks.isCommitted(client, late), false);
    await assert.rejects(client.query(marks.textFor(late)), NOT_NULL_VIOLATION);
    marks.release(late);
    const later = marks.next();
    assert.equal(later.slot, late.slot);
    await client.query(marks.textFor(later));
    await assert.rejects(client.query(marks.textFor(late)), NOT_NULL_VIOLATION);
    assert.equal(await marks.isCommitted(client, later), true);
  });
});
