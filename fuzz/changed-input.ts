import type { Random } from "../sim/random.ts";

/** Longer inputs are cut: a parser that is slow on them is found by its cost per byte, and short inputs run faster. */
const BYTES_MAX = 8192;

/** Bytes that parsers treat in a special way. */
const SPECIAL = [0x00, 0x09, 0x0a, 0x0d, 0x20, 0x22, 0x27, 0x2c, 0x3a, 0x3b, 0x5c, 0x7b, 0x7d, 0x7f, 0x80, 0xc3, 0xff];
const NUMBERS = ["0", "-1", "1", "00", "1e9", "9007199254740993", "4294967296", "0.1", "NaN", "Infinity", "１"];

type Change = (input: Buffer, random: Random, words: readonly string[], other: Buffer) => Buffer;

const CHANGES: readonly Change[] = [
  (input, random) => spliced(input, at(input, random), random.whole(1, 16), Buffer.alloc(0)),
  (input, random) => spliced(input, at(input, random), 1, Buffer.from([random.whole(0, 255)])),
  (input, random) => spliced(input, at(input, random), random.whole(0, 1), Buffer.from([random.pick(SPECIAL)])),
  (input, random, words) => spliced(input, at(input, random), 0, Buffer.from(random.pick(words))),
  (input, random, words) =>
    spliced(input, at(input, random), random.whole(1, 8), Buffer.from(random.pick([...words, ...NUMBERS]))),
  (input, random) => {
    const part = partOf(input, random);
    return spliced(input, at(input, random), 0, part);
  },
  (input, random) => {
    const part = partOf(input, random).subarray(0, 32);
    return spliced(input, at(input, random), 0, Buffer.concat(Array.from({ length: random.whole(2, 64) }, () => part)));
  },
  (input, random, _words, other) => spliced(input, at(input, random), random.whole(0, 64), partOf(other, random)),
  (input, random, _words, other) =>
    Buffer.concat([input.subarray(0, at(input, random)), other.subarray(at(other, random))]),
];

/** An input that differs from `input` by a few random changes. `other` is a second input of the corpus to take parts of. */
export function changedInput(input: Buffer, random: Random, words: readonly string[], other: Buffer): Buffer {
  let changed = input;
  for (let count = random.whole(1, 5); count > 0; count -= 1)
    changed = random.pick(CHANGES)(changed, random, words.length === 0 ? NUMBERS : words, other);
  return changed.subarray(0, BYTES_MAX);
}

function at(input: Buffer, random: Random): number {
  return random.whole(0, input.length);
}

function partOf(input: Buffer, random: Random): Buffer {
  const start = at(input, random);
  return input.subarray(start, start + random.whole(1, 128));
}

function spliced(input: Buffer, start: number, removed: number, added: Uint8Array): Buffer {
  return Buffer.concat([input.subarray(0, start), added, input.subarray(start + removed)]);
}
