import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import fc from "fast-check";
import { sampleText } from "../../../test/files/compression-sample.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { decompressed, type OwnPacking } from "./decompression.ts";

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
