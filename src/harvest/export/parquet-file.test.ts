import assert from "node:assert/strict";
import { test } from "node:test";
import { parquetReadObjects } from "hyparquet";
import type { WorkRecord } from "../manifest/manifest-reports.ts";
import { COLUMNS } from "./columns.ts";
import { parquetFile } from "./parquet-file.ts";

function recordOf(number: number): WorkRecord {
  const file = { path: `${number}.pdf`, role: "article", sha256: "ab".repeat(32), bytes: 2 ** 40 + number };
  return {
    ...{ key: `doi:10.1/${number}`, ids: { doi: `10.1/${number}` }, state: "done", reason: "ok", sources: {} },
    metadata: { title: `=\u{1F4C4} ${number}`, year: 1900 + (number % 200), isRetracted: number % 2 === 0 },
    ...{ url: undefined, resolver: "openalex", licence: undefined, version: undefined },
    files: number % 3 === 0 ? [] : [{ ...file, mediaType: "application/pdf", flag: undefined }],
  };
}

async function read(records: Iterable<WorkRecord>) {
  const parts: Uint8Array[] = [];
  for await (const part of parquetFile(records)) parts.push(part);
  const bytes = Buffer.concat(parts);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
  return { rows: await parquetReadObjects({ file }), parts: parts.length };
}

test("a parquet file has every work with typed columns, in groups that bound the memory", async () => {
  const { rows, parts } = await read(Array.from({ length: 11_000 }, (_, number) => recordOf(number)));
  assert.equal(rows.length, 11_000);
  assert.equal(parts, 4);
  assert.deepEqual(Object.keys(rows[0] ?? {}), [...COLUMNS.map(({ name }) => name), "files"]);
  for (const number of [0, 1, 5000, 10_999]) {
    const { key, title, year, is_retracted, bytes, licence, files } = rows[number] ?? {};
    const record = recordOf(number);
    const [file] = record.files;
    assert.deepEqual([key, title], [record.key, record.metadata.title]);
    assert.deepEqual([year, is_retracted], [BigInt(record.metadata.year ?? 0), record.metadata.isRetracted]);
    assert.equal(bytes ?? undefined, file && BigInt(file.bytes));
    assert.equal(licence ?? undefined, undefined);
    assert.deepEqual(files, JSON.parse(JSON.stringify(record.files)));
  }
});

test("a parquet file without works has its columns", async () => {
  assert.deepEqual((await read([])).rows, []);
});
