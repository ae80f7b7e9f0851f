import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { contentCoding, decodedBody } from "./content-coding.ts";

const TEXT = Buffer.from("a text that is long enough to be compressed ".repeat(200));

/** Chunks of 100 bytes, as a network delivers them. */
function bodyOf(bytes: Uint8Array): Readable {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 100) chunks.push(bytes.subarray(at, at + 100));
  return Readable.from(chunks, { objectMode: false });
}

test("every coding of the web is decoded, under both names of the field", async () => {
  const encoded: readonly (readonly [string, Uint8Array])[] = [
    ["gzip", gzipSync(TEXT)],
    ["X-GZIP", gzipSync(TEXT)],
    ["br", brotliCompressSync(TEXT)],
    ["deflate", deflateSync(TEXT)],
    ["deflate", deflateRawSync(TEXT)],
    ["zstd", zstdCompressSync(TEXT)],
    ["zstd", Buffer.concat([zstdCompressSync(TEXT.subarray(0, 99)), zstdCompressSync(TEXT.subarray(99))])],
  ];
  for (const [coding, bytes] of encoded) {
    assert.deepEqual(await buffer(decodedBody(bodyOf(bytes), { "content-encoding": coding })), TEXT, coding);
    assert.deepEqual(await buffer(decodedBody(bodyOf(bytes), { "x-content-encoding": coding })), TEXT, coding);
  }
});

test("a list of codings is decoded from the last one to the first, and one with an unknown or too many is passed as it is", async () => {
  const twice = brotliCompressSync(gzipSync(TEXT));
  for (const coding of ["gzip, br", "GZIP,BR", "gzip, identity, br"])
    assert.deepEqual(await buffer(decodedBody(bodyOf(twice), { "content-encoding": coding })), TEXT, coding);
  for (const coding of ["compress, br", "br, br, br, br"])
    assert.deepEqual(await buffer(decodedBody(bodyOf(twice), { "content-encoding": coding })), twice, coding);
});

test("a body without a coding, with an unknown one or labelled by mistake is passed as it is", async () => {
  for (const coding of [undefined, "identity", "", "compress", "constructor", "gzip"]) {
    const fields = coding === undefined ? {} : { "content-encoding": coding };
    assert.deepEqual(await buffer(decodedBody(bodyOf(TEXT), fields)), TEXT, coding);
  }
  assert.equal(contentCoding({ "content-encoding": "identity" }), undefined);
  assert.equal((await buffer(decodedBody(bodyOf(Buffer.alloc(0)), { "content-encoding": "gzip" }))).length, 0);
});

test("a truncated or damaged body is an error of the stream", async () => {
  const packed = gzipSync(TEXT);
  await assert.rejects(buffer(decodedBody(bodyOf(packed.subarray(0, 60)), { "content-encoding": "gzip" })));
  const junk = Buffer.concat([zstdCompressSync(TEXT), Buffer.from("junk")]);
  await assert.rejects(buffer(decodedBody(bodyOf(junk), { "content-encoding": "zstd" })), /not a zstd frame/);
  const broken = new Readable({
    read() {
      this.push(packed.subarray(0, 50));
      this.destroy(new Error("connection lost"));
    },
  });
  await assert.rejects(buffer(decodedBody(broken, { "content-encoding": "gzip" })), /connection lost/);
});

test("destroying the decoded stream destroys the body, and a compression bomb is decoded only as far as it is read", async () => {
  const body = bodyOf(gzipSync(Buffer.alloc(200_000_000)));
  const decoded = decodedBody(body, { "content-encoding": "gzip" });
  let read = 0;
  for await (const chunk of decoded) {
    read += chunk.length;
    if (read > 100_000) break;
  }
  assert.ok(decoded.destroyed);
  await new Promise(resolve => (body.closed ? resolve(undefined) : body.once("close", resolve)));
  assert.ok(read < 2_000_000, `${read} bytes`);
});
