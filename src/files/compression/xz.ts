import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";
import type { ByteSource } from "./byte-source.ts";
import { Crc64 } from "./crc64.ts";
import { dictionaryBytes, unpackLzma2 } from "./lzma2.ts";

const HEADER = Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]);
const FOOTER = "YZ";
const LZMA2_FILTER = 0x21;
/** The format permits 9 bytes of 7 bits. With 7 bytes every number is exact here, and no file is larger than 2^49 bytes. */
const NUMBER_BYTES_MAX = 7;
/** How many bytes of padding or of an index are read before the caller can pause. The format limits neither of them. */
const PAUSE_BYTES = 65_536;
/** Two numbers of an index have at most this length. */
const ENTRY_BYTES_MAX = 2 * NUMBER_BYTES_MAX;

/** Checksum of the unpacked bytes of a block. */
interface BlockCheck {
  update(bytes: Uint8Array): void;
  digest(): Buffer;
}

/** By the number in the header of the stream: the bytes of the checksum, and how it is computed. */
const CHECKS: ReadonlyMap<number, readonly [bytes: number, make: () => BlockCheck]> = new Map([
  [0, [0, () => ({ update: () => undefined, digest: () => Buffer.alloc(0) })]],
  [1, [4, () => new Crc32()]],
  [4, [8, () => new Crc64()]],
  [10, [32, () => createHash("sha256")]],
]);

class Crc32 implements BlockCheck {
  #crc = 0;

  update(bytes: Uint8Array): void {
    this.#crc = crc32(bytes, this.#crc);
  }

  digest(): Buffer {
    return littleEndian(this.#crc);
  }
}

/** The memory of a dictionary of this length in bytes. */
type DictionaryOf = (length: number) => Buffer;

/**
 * Unpacks xz streams that follow each other, chunk by chunk. Throws a RangeError when the file is damaged, and for
 * filters other than LZMA2. A chunk may be empty, so that the caller can pause where there is no content.
 */
export function* unxz(bytes: ByteSource): Generator<Buffer> {
  // One buffer for all blocks. With a new one for each, 100 kB of tiny blocks would take 10 seconds.
  let memory = Buffer.alloc(0);
  const dictionaryOf: DictionaryOf = length => {
    if (memory.length < length) memory = Buffer.alloc(length);
    return memory.subarray(0, length);
  };
  do {
    yield* unpackStream(bytes, dictionaryOf);
    yield Buffer.alloc(0);
    yield* skipPadding(bytes);
  } while (!bytes.isAtEnd);
}

/** The sizes of all blocks, as the index repeats them. They are hashed, because a file can have millions of blocks. */
class BlockSizes {
  readonly #hash = createHash("sha256");
  count = 0;

  /** @param unpadded header, data and checksum, without padding */
  add(unpadded: number, unpacked: number): void {
    this.count += 1;
    this.#hash.update(`${unpadded} ${unpacked}\n`);
  }

  digest(): string {
    return this.#hash.digest("hex");
  }
}

function* unpackStream(bytes: ByteSource, dictionaryOf: DictionaryOf): Generator<Buffer> {
  if (!bytes.take(HEADER.length).equals(HEADER)) throw new RangeError("no xz header");
  const flags = bytes.take(2);
  expectCrc(bytes, flags);
  const check = flags[0] === 0 ? CHECKS.get(flags[1] ?? 0) : undefined;
  if (check === undefined) throw new RangeError("unknown kind of checksum");
  const blocks = new BlockSizes();
  let size = bytes.next();
  for (; size !== 0; size = bytes.next()) {
    yield* unpackBlock(bytes, (size + 1) * 4, check, dictionaryOf, blocks);
    yield Buffer.alloc(0);
  }
  const indexBytes = yield* readIndex(bytes, blocks);
  const crc = bytes.take(4);
  const footer = bytes.take(6);
  if (!crc.equals(littleEndian(crc32(footer)))) throw new RangeError("checksum mismatch in the footer");
  const isIndexSizeRight = (footer.readUInt32LE(0) + 1) * 4 === indexBytes;
  if (!isIndexSizeRight || !footer.subarray(4).equals(flags) || bytes.take(2).toString("latin1") !== FOOTER)
    throw new RangeError("the footer does not match the file");
}

function* unpackBlock(
  bytes: ByteSource,
  headerBytes: number,
  [checkBytes, makeCheck]: readonly [number, () => BlockCheck],
  dictionaryOf: DictionaryOf,
  blocks: BlockSizes,
): Generator<Buffer> {
  const startedAt = bytes.taken - 1;
  const header = Buffer.concat([Buffer.from([headerBytes / 4 - 1]), bytes.take(headerBytes - 5)]);
  expectCrc(bytes, header);
  const { dictionaryLength, packedBytes, unpackedBytes } = readBlockHeader(header);
  const check = makeCheck();
  const dataAt = bytes.taken;
  let unpacked = 0;
  for (const chunk of unpackLzma2(bytes, dictionaryOf(dictionaryLength))) {
    unpacked += chunk.length;
    check.update(chunk);
    yield chunk;
  }
  const packed = bytes.taken - dataAt;
  if ((packedBytes ?? packed) !== packed || (unpackedBytes ?? unpacked) !== unpacked)
    throw new RangeError("the size of a block differs from its header");
  expectZeros(bytes, (4 - (packed % 4)) % 4);
  if (!bytes.take(checkBytes).equals(check.digest())) throw new RangeError("checksum mismatch");
  blocks.add(dataAt - startedAt + packed + checkBytes, unpacked);
}

interface BlockHeader {
  readonly dictionaryLength: number;
  readonly packedBytes: number | undefined;
  readonly unpackedBytes: number | undefined;
}

function readBlockHeader(header: Buffer): BlockHeader {
  const flags = header[1] ?? 0;
  if ((flags & 0x3c) !== 0) throw new RangeError("a block has unknown flags");
  let at = 2;
  const next = () => {
    if (at >= header.length) throw new RangeError("a block header is too short");
    return header[at++] ?? 0;
  };
  const packedBytes = (flags & 0x40) === 0 ? undefined : readNumber(next);
  const unpackedBytes = (flags & 0x80) === 0 ? undefined : readNumber(next);
  const isOnlyLzma2 = (flags & 3) === 0 && readNumber(next) === LZMA2_FILTER && readNumber(next) === 1;
  if (!isOnlyLzma2) throw new RangeError("a filter other than LZMA2 is not supported");
  const dictionaryLength = dictionaryBytes(next());
  if (header.subarray(at).some(byte => byte !== 0)) throw new RangeError("a block header has unknown fields");
  return { dictionaryLength, packedBytes, unpackedBytes };
}

/** Compares the index with the blocks. Returns its size in bytes. Its first byte, a zero, has been taken. */
function* readIndex(bytes: ByteSource, blocks: BlockSizes): Generator<Buffer, number> {
  const startedAt = bytes.taken - 1;
  // A file can have many streams with a short index each.
  const read = Buffer.alloc(Math.min(PAUSE_BYTES, ENTRY_BYTES_MAX * (blocks.count + 2)));
  let filled = 1;
  let crc = 0;
  const next = () => {
    const byte = bytes.next();
    read[filled++] = byte;
    return byte;
  };
  if (readNumber(next) !== blocks.count) throw new RangeError("the index does not match the blocks");
  const listed = new BlockSizes();
  while (listed.count < blocks.count) {
    listed.add(readNumber(next), readNumber(next));
    if (filled + ENTRY_BYTES_MAX <= read.length) continue;
    crc = crc32(read.subarray(0, filled), crc);
    filled = 0;
    yield Buffer.alloc(0);
  }
  if (listed.digest() !== blocks.digest()) throw new RangeError("the index does not match the blocks");
  while ((bytes.taken - startedAt) % 4 !== 0) if (next() !== 0) throw new RangeError("the index is damaged");
  crc = crc32(read.subarray(0, filled), crc);
  if (!bytes.take(4).equals(littleEndian(crc))) throw new RangeError("checksum mismatch in a header");
  return bytes.taken - startedAt;
}

/** Seven bits in each byte, the lowest first; the highest bit says that another byte follows. */
function readNumber(next: () => number): number {
  let value = 0;
  for (let at = 0; at < NUMBER_BYTES_MAX; at += 1) {
    const byte = next();
    value += (byte & 0x7f) * 128 ** at;
    if (byte < 0x80) return value;
  }
  throw new RangeError("a number is too large");
}

function expectCrc(bytes: ByteSource, of: Buffer): void {
  if (!bytes.take(4).equals(littleEndian(crc32(of)))) throw new RangeError("checksum mismatch in a header");
}

function expectZeros(bytes: ByteSource, count: number): void {
  for (let left = count; left > 0; left -= 1) if (bytes.next() !== 0) throw new RangeError("padding is not zero");
}

/** Streams may be followed by zeros, four at a time. */
function* skipPadding(bytes: ByteSource): Generator<Buffer> {
  for (let skipped = 4; bytes.peek() === 0; skipped += 4) {
    expectZeros(bytes, 4);
    if (skipped % PAUSE_BYTES === 0) yield Buffer.alloc(0);
  }
}

function littleEndian(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
}
