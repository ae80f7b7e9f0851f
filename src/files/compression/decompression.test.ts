import assert from "node:assert/strict";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { crc32 } from "node:zlib";
import fc from "fast-check";
import { sampleText } from "../../../test/files/compression-sample.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { ByteSource } from "./byte-source.ts";
import { bunzip2 } from "./bzip2.ts";
import { decompressed, type OwnPacking } from "./decompression.ts";
import { unxz } from "./xz.ts";

const fixtures = join(import.meta.dirname, "../../../test/fixtures/compression");
const folder = temporaryFolder("compression");

async function unpacked(path: string, packing: OwnPacking): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of decompressed(path, packing, () => undefined)) pieces.push(piece);
  return Buffer.concat(pieces);
}

function unpackedBytes(bytes: Uint8Array, packing: OwnPacking): Promise<Buffer> {
  const path = join(folder, "packed");
  writeFileSync(path, bytes);
  return unpacked(path, packing);
}

const packedFiles = [
  ["blocks.bz2", "bzip2", "two blocks"],
  ["crc64.xz", "xz", "one block with CRC-64"],
  ["blocks.xz", "xz", "three blocks with CRC-32 and other literal contexts"],
  ["small-dictionary.xz", "xz", "a dictionary that is smaller than the text, with SHA-256"],
] as const;

for (const [file, packing, what] of packedFiles) {
  describe(`${packing}: ${what}`, () => {
    const bytes = readFileSync(join(fixtures, file));

    test("gives the bytes that were packed, also when two streams follow each other", async () => {
      assert.ok((await unpacked(join(fixtures, file), packing)).equals(sampleText()));
      const twice = await unpackedBytes(Buffer.concat([bytes, bytes]), packing);
      assert.ok(twice.equals(Buffer.concat([sampleText(), sampleText()])));
    });

    test("a file with one changed byte is refused, or gives the same bytes", async () => {
      const change = fc.record({ at: fc.nat(bytes.length - 1), by: fc.integer({ min: 1, max: 255 }) });
      await fc.assert(
        fc.asyncProperty(change, async ({ at, by }) => {
          const damaged = Buffer.from(bytes);
          damaged[at] = (damaged[at] ?? 0) ^ by;
          const result = await unpackedBytes(damaged, packing).catch((error: unknown) => error);
          if (result instanceof Buffer) assert.ok(result.equals(sampleText()), `byte ${at} changed by ${by}`);
          else assert.ok(result instanceof RangeError, String(result));
        }),
        { numRuns: 60 },
      );
    });

    test("a file that ends too early is refused", async () => {
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: bytes.length - 1 }), length =>
          assert.rejects(unpackedBytes(bytes.subarray(0, length), packing), RangeError),
        ),
        { numRuns: 40 },
      );
    });
  });
}

test("xz: zeros between streams and after them are skipped, four at a time", async () => {
  const bytes = readFileSync(join(fixtures, "crc64.xz"));
  const padded = Buffer.concat([bytes, Buffer.alloc(8), bytes, Buffer.alloc(4)]);
  assert.equal((await unpackedBytes(padded, "xz")).length, 2 * sampleText().length);
  await assert.rejects(unpackedBytes(Buffer.concat([bytes, Buffer.alloc(3)]), "xz"), /unexpected end of the file/);
});

test("xz: a filter for programs, and a dictionary above 64 MiB, are refused by name", async () => {
  await assert.rejects(unpacked(join(fixtures, "other-filter.xz"), "xz"), /a filter other than LZMA2 is not supported/);
  const { dictionaryBytes } = await import("./lzma2.ts");
  assert.equal(dictionaryBytes(28), 64 * 2 ** 20);
  for (const property of [29, 40, 41, 255]) assert.throws(() => dictionaryBytes(property), /larger than 64 MiB/);
});

/** The unpacked length, and how many turns the event loop had meanwhile. */
async function turnsDuring(bytes: Uint8Array, packing: OwnPacking): Promise<readonly [length: number, turns: number]> {
  let turns = 0;
  let isDone = false;
  const count = () => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  const { length } = await unpackedBytes(bytes, packing);
  isDone = true;
  return [length, turns];
}

test("bzip2: many streams without content do not block the event loop", async () => {
  const stream = Buffer.from("BZh9\x17\x72\x45\x38\x50\x90\0\0\0\0", "latin1");
  const [length, turns] = await turnsDuring(Buffer.concat(new Array<Buffer>(500).fill(stream)), "bzip2");
  assert.equal(length, 0);
  assert.ok(turns >= 500, `${turns} turns`);
});

test("xz: many blocks without content do not block the event loop", async () => {
  const [length, turns] = await turnsDuring(xzOfEmptyBlocks(500), "xz");
  assert.equal(length, 0);
  assert.ok(turns >= 500, `${turns} turns`);
});

/** The most packed bytes that a decoder reads between two pauses. */
function longestStep(bytes: Uint8Array, decoder: typeof unxz): number {
  const path = join(folder, "packed");
  writeFileSync(path, bytes);
  const fd = openSync(path, "r");
  try {
    const source = new ByteSource(fd);
    let longest = 0;
    let before = 0;
    for (const _ of decoder(source)) {
      longest = Math.max(longest, source.taken - before);
      before = source.taken;
    }
    assert.equal(source.taken, bytes.length);
    return Math.max(longest, source.taken - before);
  } finally {
    closeSync(fd);
  }
}

test("xz: long padding and a long index are read with pauses", () => {
  const padded = Buffer.concat([xzOfEmptyBlocks(1), Buffer.alloc(2 ** 22), xzOfEmptyBlocks(1), Buffer.alloc(2 ** 21)]);
  assert.ok(longestStep(padded, unxz) <= 2 ** 16 + 100);
  assert.ok(longestStep(xzOfEmptyBlocks(50_000), unxz) <= 2 ** 16 + 100);
});

test("xz: an index that does not match the blocks is refused", async () => {
  const index = (file: Buffer) => file.length - 12 - 8;
  for (const change of [1, 2, 3]) {
    const damaged = xzOfEmptyBlocks(1);
    const at = index(damaged) + change;
    damaged[at] = (damaged[at] ?? 0) + 1;
    await assert.rejects(unpackedBytes(damaged, "xz"), /the index does not match the blocks/);
  }
});

test("bzip2: a code length that changes again and again is refused before the rest is read", () => {
  const start = "BZh9\x31\x41\x59\x26\x53\x59";
  // A checksum, no randomising, the origin, one byte in the alphabet, two tables, one selector, the length 1.
  const bits = [
    "0".repeat(32 + 1 + 24),
    `1${"0".repeat(15)}1${"0".repeat(15)}`,
    "010",
    "000000000000001",
    "0",
    "00001",
  ].join("");
  const endless = `${bits}${"1011".repeat(2 ** 20)}`;
  const bytes = endless.match(/.{8}/g)?.map(byte => Number.parseInt(byte, 2)) ?? [];
  const path = join(folder, "endless.bz2");
  writeFileSync(path, Buffer.concat([Buffer.from(start, "latin1"), Buffer.from(bytes)]));
  const fd = openSync(path, "r");
  const source = new ByteSource(fd);
  assert.throws(() => [...bunzip2(source)], /impossible code length/);
  closeSync(fd);
  assert.ok(source.taken < 10_000, `${source.taken} bytes`);
});

/** A stream without checksums, whose blocks are empty and have a dictionary of 64 MiB. */
function xzOfEmptyBlocks(count: number): Buffer {
  const withCrc = (bytes: readonly number[]) => {
    const data = Buffer.from(bytes);
    const crc = Buffer.alloc(4);
    crc.writeUInt32LE(crc32(data));
    return [data, crc];
  };
  const block = [...withCrc([2, 0, 0x21, 1, 28, 0, 0, 0]), Buffer.alloc(4)];
  const blocks = Array.from({ length: count }, () => block).flat();
  const number = count < 128 ? [count] : [(count & 0x7f) | 0x80, ((count >>> 7) & 0x7f) | 0x80, count >>> 14];
  const index = [0, ...number, ...Array.from({ length: count }, () => [13, 0]).flat()];
  while (index.length % 4 !== 0) index.push(0);
  const header = [Buffer.from("\xfd7zXZ\0", "latin1"), ...withCrc([0, 0])];
  const sizeOfIndex = [0, 8, 16, 24].map(shift => ((index.length / 4) >>> shift) & 0xff);
  // The checksum of the footer stands before it.
  const footer = [...withCrc([...sizeOfIndex, 0, 0]).reverse(), Buffer.from("YZ")];
  return Buffer.concat([...header, ...blocks, ...withCrc(index), ...footer]);
}

test("random bytes after a valid header are refused", async () => {
  const heads = {
    bzip2: Buffer.from("BZh9\x31\x41\x59\x26\x53\x59", "latin1"),
    xz: readFileSync(join(fixtures, "crc64.xz")).subarray(0, 24),
  };
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom("bzip2" as const, "xz" as const),
      fc.uint8Array({ minLength: 0, maxLength: 3000 }),
      (packing, rest) => assert.rejects(unpackedBytes(Buffer.concat([heads[packing], rest]), packing), RangeError),
    ),
    { numRuns: 100 },
  );
});
