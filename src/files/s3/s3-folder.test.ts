import assert from "node:assert/strict";
import { test } from "node:test";
import { s3For } from "../../../test/harvest/s3-server.ts";
import { S3Folder } from "./s3-folder.ts";

test("an object is copied whatever characters its key has", async t => {
  const { s3 } = await s3For(t);
  const folder = await S3Folder.open("s3://papers/a+b & c/100%/ü~(x)!'*", "--out");
  t.after(() => folder.close());
  for (const name of ["plain", "1+1=2", "a b", "50%2B", "x;y:@,$&", "ä'(1)*!~"]) {
    await folder.writeText(name, `text of ${name}`);
    await folder.copy(name, `${name}.changed`);
    assert.equal(await folder.readText(`${name}.changed`), `text of ${name}`);
  }
  assert.equal(s3.keys().length, 12);
});
