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

test("records that are wanted while a statement is in flight share the next one", async () => {
  const sent: (readonly string[])[] = [];
  const replies: (() => void)[] = [];
  const query = async (_: string, [names]: readonly [readonly string[]]) => {
    sent.push(names);
    await new Promise<void>(resolve => replies.push(resolve));
    return [
      { rows: names.map(name => ({ record: JSON.stringify(name), keep_until_us: 9e15, version: 1, now_us: 1 })) },
    ];
  };
  const records = new PostgresRecords({ query } as unknown as PostgresClient, undefined);
  const read = async (name: string) => (await records.read(name)).record;
  const first = [read("a"), read("b")];
  await Promise.resolve();
  const second = [read("b"), read("c"), read("c")];
  replies.shift()?.();
  assert.deepEqual(await Promise.all(first), ["a", "b"]);
  replies.shift()?.();
  assert.deepEqual(await Promise.all(second), ["b", "c", "c"]);
  assert.deepEqual(sent, [
    ["a", "b"],
    ["b", "c"],
  ]);
});
