import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { makeZip } from "../testing/internet/zip.ts";
import { unpack } from "./unpack.ts";

const folder = mkdtempSync(join(tmpdir(), "ontofetch-unpack-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const text = Buffer.from("format-version: 1.2\n".repeat(500));
const sha256 = createHash("sha256").update(text).digest("hex");
const from = join(folder, "in");
const to = join(folder, "out");

function opened(bytes: Uint8Array, packing: "gzip" | "zip", maxBytes = 100_000_000) {
  writeFileSync(from, bytes);
  return unpack(from, to, packing, { maxBytes });
}

test("what came packed is opened, with its own length and hash", async () => {
  assert.deepEqual(await opened(gzipSync(text), "gzip"), { bytes: text.length, sha256 });
  assert.deepEqual(readFileSync(to), text);
  assert.deepEqual(await opened(makeZip("x.obo", text), "zip"), { bytes: text.length, sha256 });
  assert.deepEqual(readFileSync(to), text);
});

test("a name that climbs out of its archive is refused, and one that is no ontology is not opened", async () => {
  await assert.rejects(opened(makeZip("../../evil.obo", text), "zip"), { code: "DOCSTOKG_DOWNLOAD" });
  await assert.rejects(opened(makeZip("readme.md", text), "zip"), /holds no ontology/);
});

test("an archive that is cut off or damaged is refused", async () => {
  const packed = gzipSync(text);
  await assert.rejects(opened(packed.subarray(0, packed.length - 9), "gzip"), /gzip file is damaged/);
  packed.fill(0, packed.length - 6, packed.length - 4);
  await assert.rejects(opened(packed, "gzip"), /gzip file is damaged/);
  const zip = makeZip("x.obo", text);
  await assert.rejects(opened(zip.subarray(0, zip.length - 30), "zip"), /zip file is damaged/);
});

test("what grows beyond its limit, or beyond all measure, is stopped while it grows", async () => {
  await assert.rejects(opened(gzipSync(text), "gzip", 1000), /unpacks to more than 1000 bytes/);
  await assert.rejects(opened(makeZip("x.obo", text), "zip", 1000), /unpacks to more than 1000 bytes/);
  const bomb = gzipSync(Buffer.alloc(40_000_000, "a"));
  await assert.rejects(opened(bomb, "gzip"), /more than 300 times its size/);
});
