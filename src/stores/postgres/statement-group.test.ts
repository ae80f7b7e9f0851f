import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import { PostgresServer, whyNoPostgres } from "../../../test/harvest/postgres-server.ts";
import { loadPgDriver, type SqlParameter } from "./postgres-driver.ts";

describe("statements that are sent together", { skip: whyNoPostgres() }, () => {
  let server: PostgresServer;
  before(async () => {
    server = await PostgresServer.start();
    await server.query("CREATE TABLE notes (id bigint PRIMARY KEY, text text)");
  });
  after(() => server?.stop());

  const connected = async (t: TestContext) => {
    const driver = await loadPgDriver({ url: server.url(), schema: "public", idleInTransactionMs: 0 });
    const client = driver.client();
    client.on("error", () => undefined);
    await client.connect();
    t.after(() => client.end());
    return (...statements: (readonly [text: string, ...values: SqlParameter[]])[]) =>
      driver.runGroup(
        client,
        statements.map(([text, ...values]) => ({ text, values })),
      );
  };
  const INSERT = "INSERT INTO notes (id, text) VALUES ($1, $2)";

  test("each has its own rows, with values of their types", async t => {
    const run = await connected(t);
    const texts = ['a "quoted" text', "back\\slash", "{a,b}", "NULL", "", "a\0b", null];
    const sql = "SELECT $1::bigint AS number, $2::boolean AS flag, $3::text[] AS texts, $4::text AS text";
    for (let time = 0; time < 2; time += 1) {
      const results = await run([sql, 7, true, texts, "ü\0"], ["SELECT 1 WHERE false"], [sql, 8, false, [], null]);
      assert.deepEqual(results, [
        [{ number: 7, flag: true, texts: texts.map(text => text?.replace("\0", "") ?? null), text: "ü" }],
        [],
        [{ number: 8, flag: false, texts: [], text: null }],
      ]);
    }
  });

  test("they are one transaction, and each sees what the earlier ones have changed", async t => {
    const run = await connected(t);
    const transaction = "SELECT pg_current_xact_id()::text AS id, (SELECT count(*) FROM notes) AS count";
    const results = await run([transaction], [INSERT, 1, "a"], [transaction]);
    const [before, , later] = results.map(([row]) => row);
    assert.deepEqual(later, { id: before?.["id"], count: Number(before?.["count"]) + 1 });
  });

  test("if one fails, none has taken effect", async t => {
    const run = await connected(t);
    await assert.rejects(run([INSERT, 10, "a"], [INSERT, 10, "b"], [INSERT, 11, "c"]), { code: "23505" });
    assert.deepEqual(await server.query("SELECT id FROM notes WHERE id >= 10"), []);
  });
});
