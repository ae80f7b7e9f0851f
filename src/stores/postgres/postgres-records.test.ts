import assert from "node:assert/strict";
import { test } from "node:test";
import type { PostgresClient } from "./postgres-client.ts";
import { PostgresRecords } from "./postgres-records.ts";

test("a record that cannot be parsed counts as missing, and the others are listed", async () => {
  const row = { keep_until_us: 9e15, version: 5, now_us: 1000, is_written: false };
  const rows = [
    { ...row, name: "host a", record: "{broken" },
    { ...row, name: "host b", record: "{}" },
  ];
  const client = { query: async () => [{ rows }] } as unknown as PostgresClient;
  const records = new PostgresRecords(client, undefined);
  assert.equal((await records.read("host a")).record, undefined);
  assert.equal(await records.change("host a", ({ record }) => ({ result: record })), undefined);
  assert.deepEqual(
    (await records.list("host ")).map(({ name }) => name),
    ["host b"],
  );
});
