import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import zlib, { zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { zstdFrames } from "./zstd-frames.ts";

const FRAMES_OF_EVERY_KIND = [
  Buffer.alloc(0),
  Buffer.from("a"),
  Buffer.from("some text "),
  Buffer.alloc(200_000, "repeated "),
  Buffer.from(Array.from({ length: 70_000 }, (_, index) => (index * index * 7919) >> 5)),
];

function skippable(bytes: number, magic = 0x184d2a50): Buffer {
  const frame = Buffer.alloc(8 + bytes, 0xfd);
  frame.writeUInt32LE(magic, 0);
  frame.writeUInt32LE(bytes, 4);
  return frame;
}

function packed(text: Buffer, hasChecksum = false): Buffer {
  return zstdCompressSync(text, { params: { [zlib.constants.ZSTD_c_checksumFlag]: hasChecksum ? 1 : 0 } });
}

function decoded(bytes: Uint8Array, chunkBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes));
  const frames = Readable.from(zstdFrames(Readable.from(chunks)));
  const decoder = zlib.createZstdDecompress();
  frames.on("error", error => decoder.destroy(error));
  return buffer(frames.pipe(decoder));
}

test("all frames of a stream are decoded, however the stream is split into chunks", async () => {
  const frame = fc.oneof(
    fc
      .constantFrom(...FRAMES_OF_EVERY_KIND)
      .chain(text => fc.boolean().map(hasChecksum => ({ text, bytes: packed(text, hasChecksum) }))),
    fc.tuple(fc.nat(100), fc.nat(15)).map(([bytes, variant]) => ({
      text: Buffer.alloc(0),
      bytes: skippable(bytes, 0x184d2a50 + variant),
    })),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 6 }), fc.integer({ min: 1, max: 70_000 }), async (frames, size) => {
      // The decoder refuses a stream that has no frame with data.
      const bytes = Buffer.concat([...frames.map(part => part.bytes), packed(Buffer.from("end"))]);
      const text = Buffer.concat([...frames.map(part => part.text), Buffer.from("end")]);
      assert.ok((await decoded(bytes, bytes.length > 2000 ? Math.max(size, 50) : size)).equals(text));
    }),
    { numRuns: 60 },
  );
});

test("bytes after a frame that are not a frame, and a frame that is not complete, are errors", async () => {
  const frame = packed(Buffer.from("some text"), true);
  for (const size of [1, 7, 1000]) {
    await assert.rejects(decoded(Buffer.concat([frame, Buffer.from("junk")]), size), /not a zstd frame/);
    for (let bytes = 1; bytes < frame.length; bytes += 1) {
      await assert.rejects(decoded(Buffer.concat([frame, frame.subarray(0, bytes)]), size), /unexpected end/);
    }
    await assert.rejects(decoded(Buffer.concat([frame, skippable(9).subarray(0, -1)]), size), /unexpected end/);
  }
});
