import { BitReader } from "./bit-reader.ts";
import type { ByteSource } from "./byte-source.ts";
import { HuffmanTable } from "./huffman-table.ts";

const BLOCK_START = [0x314159, 0x265359] as const;
const STREAM_END = [0x177245, 0x385090] as const;
const BLOCK_BYTES = 100_000;
/** Symbols that share one code table. */
const GROUP_SIZE = 50;
const OUTPUT_BYTES = 65_536;
/** The format permits any number, but a length has only 20 values: an encoder needs at most 19 changes. */
const LENGTH_CHANGES_MAX = 1000;
const RUN_A = 0;
const RUN_B = 1;

/**
 * Unpacks bzip2 streams that follow each other, piece by piece. Throws a RangeError when the file is damaged: each block
 * and each stream has a checksum. A piece may be empty, so that the caller can pause after a stream without content.
 */
export function* bunzip2(bytes: ByteSource): Generator<Buffer> {
  // One array for all streams. With a new one for each, 100 kB of empty streams would take 10 seconds.
  let memory = new Uint32Array(0);
  const orderOf = (length: number) => {
    if (memory.length < length) memory = new Uint32Array(length);
    return memory.subarray(0, length);
  };
  do {
    const bits = new BitReader(bytes);
    if (bits.bits(24) !== 0x425a68) throw new RangeError("no bzip2 header");
    const level = bits.bits(8) - 0x30;
    if (level < 1 || level > 9) throw new RangeError("unknown block size");
    yield* unpackStream(bits, orderOf(level * BLOCK_BYTES));
    yield Buffer.alloc(0);
  } while (!bytes.isAtEnd);
}

/** @param order as long as the largest block */
function* unpackStream(bits: BitReader, order: Uint32Array): Generator<Buffer> {
  let combinedCrc = 0;
  for (;;) {
    const [high, low] = [bits.bits(24), bits.bits(24)];
    const expected = bits.word();
    if (high === STREAM_END[0] && low === STREAM_END[1]) {
      if (expected !== combinedCrc) throw new RangeError("checksum mismatch");
      bits.align();
      return;
    }
    if (high !== BLOCK_START[0] || low !== BLOCK_START[1])
      throw new RangeError("expected a block or the end of the stream");
    const crc = yield* unpackBlock(bits, order);
    if (crc !== expected) throw new RangeError("checksum mismatch");
    combinedCrc = (((combinedCrc << 1) | (combinedCrc >>> 31)) ^ crc) >>> 0;
  }
}

/** Yields the bytes of one block. Returns their checksum. */
function* unpackBlock(bits: BitReader, order: Uint32Array): Generator<Buffer, number> {
  if (bits.bit() === 1) throw new RangeError("randomised blocks of bzip2 0.9 are not supported");
  const origin = bits.bits(24);
  const length = readSymbols(bits, order);
  if (origin >= length) throw new RangeError("first byte outside the block");
  linkBytes(order, length);
  return yield* expandRuns(order, origin, length);
}

/** The bytes that occur in the block, in their order. */
function readAlphabet(bits: BitReader): Uint8Array {
  const used = bits.bits(16);
  const found: number[] = [];
  for (let high = 0; high < 16; high += 1) {
    if (((used >>> (15 - high)) & 1) === 0) continue;
    const part = bits.bits(16);
    for (let low = 0; low < 16; low += 1) if (((part >>> (15 - low)) & 1) === 1) found.push(high * 16 + low);
  }
  if (found.length === 0) throw new RangeError("block without bytes");
  return Uint8Array.from(found);
}

/** Which table each group of symbols uses. */
function readSelectors(bits: BitReader, tableCount: number): Uint8Array {
  const count = bits.bits(15);
  if (count === 0) throw new RangeError("block without selectors");
  const recent = Uint8Array.from({ length: tableCount }, (_, index) => index);
  const selectors = new Uint8Array(count);
  for (let at = 0; at < count; at += 1) {
    let place = 0;
    while (bits.bit() === 1) if (++place >= tableCount) throw new RangeError("unknown code table");
    selectors[at] = moveToFront(recent, place);
  }
  return selectors;
}

function readTable(bits: BitReader, symbolCount: number): HuffmanTable {
  const lengths = new Uint8Array(symbolCount);
  let length = bits.bits(5);
  for (let symbol = 0; symbol < symbolCount; symbol += 1) {
    let changes = 0;
    for (; bits.bit() === 1 && changes <= LENGTH_CHANGES_MAX; changes += 1) length += bits.bit() === 1 ? -1 : 1;
    if (length < 1 || length > 20 || changes > LENGTH_CHANGES_MAX) throw new RangeError("impossible code length");
    lengths[symbol] = length;
  }
  return new HuffmanTable(lengths);
}

/** Reads the symbols of a block into the low bytes of `order`, with runs expanded. Returns how many there are. */
function readSymbols(bits: BitReader, order: Uint32Array): number {
  const recent = readAlphabet(bits);
  const endOfBlock = recent.length + 1;
  const tableCount = bits.bits(3);
  if (tableCount < 2 || tableCount > 6) throw new RangeError("impossible number of code tables");
  const selectors = readSelectors(bits, tableCount);
  const tables = Array.from({ length: tableCount }, () => readTable(bits, recent.length + 2));
  let length = 0;
  let run = 0;
  let runUnit = 1;
  for (const selector of selectors) {
    const table = tables[selector] as HuffmanTable;
    for (let left = GROUP_SIZE; left > 0; left -= 1) {
      const symbol = table.read(bits);
      if (symbol === RUN_A || symbol === RUN_B) {
        // A run is a number whose digits are 1 and 2, the lowest one first.
        run += runUnit << symbol;
        runUnit *= 2;
        if (run > order.length) throw new RangeError("block is too long");
        continue;
      }
      if (length + run > order.length) throw new RangeError("block is too long");
      order.fill(recent[0] ?? 0, length, length + run);
      length += run;
      run = 0;
      runUnit = 1;
      if (symbol === endOfBlock) return length;
      if (length === order.length) throw new RangeError("block is too long");
      order[length++] = moveToFront(recent, symbol - 1);
    }
  }
  throw new RangeError("block without an end");
}

function moveToFront(recent: Uint8Array, place: number): number {
  const value = recent[place] ?? 0;
  recent.copyWithin(1, 0, place);
  recent[0] = value;
  return value;
}

/** Inverts the Burrows-Wheeler transform: the upper bits of each entry become the place of the next byte. */
function linkBytes(order: Uint32Array, length: number): void {
  const starts = new Uint32Array(257);
  for (let at = 0; at < length; at += 1) {
    const next = ((order[at] ?? 0) & 0xff) + 1;
    starts[next] = (starts[next] ?? 0) + 1;
  }
  for (let byte = 1; byte < 257; byte += 1) starts[byte] = (starts[byte] ?? 0) + (starts[byte - 1] ?? 0);
  for (let at = 0; at < length; at += 1) {
    const byte = (order[at] ?? 0) & 0xff;
    const place = starts[byte] ?? 0;
    starts[byte] = place + 1;
    order[place] = (order[place] ?? 0) | (at << 8);
  }
}

/** Yields the bytes of the block. After four equal bytes comes the number of further copies. Returns the checksum. */
function* expandRuns(order: Uint32Array, origin: number, length: number): Generator<Buffer, number> {
  let crc = 0xffffffff;
  let piece = Buffer.allocUnsafe(OUTPUT_BYTES);
  let filled = 0;
  let entry = order[origin] ?? 0;
  let previous = -1;
  let equal = 0;
  for (let at = 0; at < length; at += 1) {
    entry = order[entry >>> 8] ?? 0;
    const byte = entry & 0xff;
    let copies = 1;
    let value = byte;
    if (equal === 4) {
      copies = byte;
      value = previous;
      equal = 0;
      previous = -1;
    } else {
      equal = byte === previous ? equal + 1 : 1;
      previous = byte;
    }
    for (; copies > 0; copies -= 1) {
      piece[filled++] = value;
      crc = (crc << 8) ^ (CRC_TABLE[(crc >>> 24) ^ value] ?? 0);
      if (filled < OUTPUT_BYTES) continue;
      yield piece;
      piece = Buffer.allocUnsafe(OUTPUT_BYTES);
      filled = 0;
    }
  }
  if (filled > 0) yield piece.subarray(0, filled);
  return ~crc >>> 0;
}

/** CRC-32 with the highest bit first, unlike that of zlib. */
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit += 1) crc = (crc << 1) ^ (crc < 0 ? 0x04c11db7 : 0);
  return crc;
});
