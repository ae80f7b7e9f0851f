import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { sampleText } from "../../test/files/compression-sample.ts";
import { makeZip } from "../testing/internet/zip.ts";
import type { Packing } from "./format.ts";
import { unpack } from "./unpack.ts";

const fixtures = join(import.meta.dirname, "../../test/fixtures/compression");
const folder = mkdtempSync(join(tmpdir(), "ontofetch-unpack-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const text = Buffer.from("format-version: 1.2\n".repeat(500));
const sha256 = createHash("sha256").update(text).digest("hex");
const from = join(folder, "in");
const to = join(folder, "out");

function opened(bytes: Uint8Array, packing: Packing, maxBytes = 100_000_000) {
  writeFileSync(from, bytes);
  return unpack(from, to, packing, { maxBytes });
}

test("an unpacked file has its own length and hash", async () => {
  assert.deepEqual(await opened(gzipSync(text), "gzip"), { bytes: text.length, sha256 });
  assert.deepEqual(readFileSync(to), text);
  assert.deepEqual(await opened(makeZip({ "x.obo": text }), "zip"), { bytes: text.length, sha256 });
  assert.deepEqual(readFileSync(to), text);
});

test("an archive entry with a path outside the archive is refused, and so is an archive without an ontology", async () => {
  await assert.rejects(opened(makeZip({ "../../evil.obo": text }), "zip"), { code: "DOCSTOKG_DOWNLOAD" });
  await assert.rejects(
    opened(makeZip({ "readme.md": text }), "zip"),
    /contains no file with a known ontology extension/,
  );
});

test("a zip file with backslashes in its names is unpacked", async () => {
  assert.deepEqual(await opened(makeZip({ "a\\x.obo": text }), "zip"), { bytes: text.length, sha256 });
  await assert.rejects(opened(makeZip({ "..\\x.obo": text }), "zip"), { code: "DOCSTOKG_DOWNLOAD" });
});

test("a truncated or damaged archive is refused", async () => {
  const packed = gzipSync(text);
  await assert.rejects(opened(packed.subarray(0, packed.length - 9), "gzip"), /gzip file is damaged/);
  packed.fill(0, packed.length - 6, packed.length - 4);
  await assert.rejects(opened(packed, "gzip"), /gzip file is damaged/);
  const zip = makeZip({ "x.obo": text });
  await assert.rejects(opened(zip.subarray(0, zip.length - 30), "zip"), /zip file is damaged/);
});

test("unpacking stops when the size limit or the compression ratio is exceeded", async () => {
  await assert.rejects(opened(gzipSync(text), "gzip", 1000), /unpacked size exceeds 1000 bytes \(max_file_mb\)/);
  await assert.rejects(
    opened(makeZip({ "x.obo": text }), "zip", 1000),
    /unpacked size exceeds 1000 bytes \(max_file_mb\)/,
  );
  const bomb = gzipSync(Buffer.alloc(40_000_000, "a"));
  await assert.rejects(opened(bomb, "gzip"), /compression ratio exceeds 300/);
});

/** A tar file in the format that every tar program writes. */
function makeTar(files: Readonly<Record<string, Buffer>>): Buffer {
  return tarOf(Object.entries(files).map(([name, content]) => ({ name, content, type: "0" })));
}

function tarOf(entries: readonly { readonly name: string; readonly content: Buffer; readonly type: string }[]): Buffer {
  const parts = entries.flatMap(({ name, content, type }) => {
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write("0000644\0", 100);
    header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
    header.write(`        ${type}`, 148);
    header.write("ustar\x0000", 257);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
    return [header, content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

test("a tar file with a name of more than 100 bytes is unpacked, in the form of GNU and of POSIX", async () => {
  const name = `${"folder/".repeat(20)}x.obo`;
  const file = { name: name.slice(0, 100), content: text, type: "0" };
  const gnu = { name: "././@LongLink", content: Buffer.from(`${name}\0`), type: "L" };
  const record = (pair: string) => `${pair.length + 4} ${pair}\n`;
  const records = record("comment=an ontology") + record(`path=${name}`).replace(/^\d+/, String(name.length + 10));
  const posix = { name: "PaxHeader/x", content: Buffer.from(records), type: "x" };
  const readme = { name: "readme.md", content: Buffer.from("x"), type: "0" };
  for (const header of [gnu, posix]) {
    assert.deepEqual(await opened(tarOf([header, file, readme]), "tar"), { bytes: text.length, sha256 });
    assert.equal((await opened(tarOf([header, readme, file]), "tar")).bytes, readme.content.length);
  }
  for (const content of ["no length", "1e-300 path=a\n", "1 path=a\n", "9999", "9".repeat(70_000)]) {
    const odd = { ...posix, content: Buffer.from(content) };
    assert.deepEqual(await opened(tarOf([odd, { ...file, name: "x.obo" }]), "tar"), { bytes: text.length, sha256 });
  }
});

test("the only ontology of a tar file is taken, and a damaged tar file is refused", async () => {
  const tar = makeTar({ "a/readme.txt": Buffer.from("x"), "a/x.obo": text });
  assert.deepEqual(await opened(tar, "tar"), { bytes: text.length, sha256 });
  assert.deepEqual(readFileSync(to), text);
  await assert.rejects(
    opened(makeTar({ "a.obo": text, "b.obo": text }), "tar"),
    /contains 2 ontologies \(a\.obo, b\.obo\)/,
  );
  await assert.rejects(opened(tar.subarray(0, 1600), "tar"), /ends inside a file/);
  tar.fill(0x41, 0, 10);
  await assert.rejects(opened(tar, "tar"), /invalid header/);
});

test("bzip2, xz and zstd files are unpacked, with the same limits; a damaged one is refused by name", async () => {
  const sample = sampleText();
  const expected = { bytes: sample.length, sha256: createHash("sha256").update(sample).digest("hex") };
  const packed = {
    bzip2: readFileSync(join(fixtures, "blocks.bz2")),
    xz: readFileSync(join(fixtures, "crc64.xz")),
    zstd: zstdCompressSync(sample),
  };
  for (const [packing, bytes] of Object.entries(packed) as [Packing, Buffer][]) {
    assert.deepEqual(await opened(bytes, packing), expected, packing);
    assert.deepEqual(readFileSync(to), sample);
    await assert.rejects(opened(bytes, packing, 1000), /unpacked size exceeds 1000 bytes/);
    await assert.rejects(opened(bytes.subarray(0, -9), packing), new RegExp(`the ${packing} file is damaged`));
  }
});

test("a zstd file with several frames is unpacked completely, and one with other bytes at its end is refused", async () => {
  const [first, second] = [Buffer.from("format-version: 1.2\n"), sampleText()];
  const frames = Buffer.concat([zstdCompressSync(first), zstdCompressSync(second)]);
  const all = Buffer.concat([first, second]);
  assert.equal((await opened(frames, "zstd")).bytes, all.length);
  assert.deepEqual(readFileSync(to), all);
  await assert.rejects(
    opened(Buffer.concat([frames, Buffer.from("junk")]), "zstd"),
    /the zstd file is damaged: bytes that are not a zstd frame/,
  );
});
