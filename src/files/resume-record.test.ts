import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { temporaryFolder } from "../../test/temporary-folder.ts";
import { sha256Of } from "./file-hash.ts";
import { resumeRecordBeside } from "./resume-record.ts";

const URL_OF_FILE = "https://example.org/file?key=secret";

async function partialPath(): Promise<string> {
  const folder = temporaryFolder("record");
  return join(folder, "file.part");
}

test("a record is loaded as it was saved, for the same URL only", async () => {
  const path = await partialPath();
  const records = resumeRecordBeside(path, URL_OF_FILE);
  for (const totalBytes of [12, undefined]) {
    await records.save({ validator: '"a"', totalBytes });
    assert.deepEqual(await records.load(), { validator: '"a"', totalBytes });
    assert.equal(await resumeRecordBeside(path, "https://example.org/other").load(), "other-url");
  }
  await records.delete();
  await records.delete();
  assert.equal(await records.load(), undefined);
});

test("a record that is not valid is ignored", async () => {
  const path = await partialPath();
  const valid = { version: 1, url_sha256: sha256Of(URL_OF_FILE), validator: '"a"', total_bytes: 5 };
  const loaded = async (record: unknown) => {
    await writeFile(`${path}.json`, typeof record === "string" ? record : JSON.stringify(record));
    return resumeRecordBeside(path, URL_OF_FILE).load();
  };
  assert.deepEqual(await loaded(valid), { validator: '"a"', totalBytes: 5 });
  for (const wrong of [
    { ...valid, total_bytes: "5" },
    { ...valid, total_bytes: 1.5 },
    { ...valid, total_bytes: undefined },
    { ...valid, validator: 7 },
    { ...valid, version: 2 },
    "{",
    "null",
    "",
  ])
    assert.equal(await loaded(wrong), undefined);
});
