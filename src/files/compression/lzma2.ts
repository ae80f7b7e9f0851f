import type { ByteSource } from "./byte-source.ts";
import { LzmaDecoder } from "./lzma-decoder.ts";

/** The dictionary of `xz -9`. A larger one would let a small file claim gigabytes of memory. */
const DICTIONARY_BYTES_MAX = 64 * 2 ** 20;

/** The dictionary size that the property byte of an LZMA2 filter means. Throws a RangeError above 64 MiB. */
export function dictionaryBytes(property: number): number {
  const bytes = property > 40 ? Number.POSITIVE_INFINITY : (2 | (property & 1)) * 2 ** ((property >>> 1) + 11);
  if (bytes > DICTIONARY_BYTES_MAX)
    throw new RangeError(`the dictionary is larger than ${DICTIONARY_BYTES_MAX / 2 ** 20} MiB`);
  return bytes;
}

/** Unpacks the chunks of one LZMA2 stream. Throws a RangeError when they are damaged. */
export function* unpackLzma2(bytes: ByteSource, dictionary: Buffer): Generator<Buffer> {
  const decoder = new LzmaDecoder(bytes, dictionary);
  let needsDictionary = true;
  let needsProperties = true;
  for (let control = bytes.next(); control !== 0; control = bytes.next()) {
    // The first chunk, and each one that says so, begins with an empty dictionary.
    if (control === 1 || control >= 0xe0) {
      decoder.resetDictionary();
      needsDictionary = false;
    } else if (needsDictionary) throw new RangeError("the first chunk needs an empty dictionary");
    if (control >= 0x80) {
      const unpackedBytes = ((control & 0x1f) << 16) + uint16(bytes) + 1;
      const packedBytes = uint16(bytes) + 1;
      const reset = (control >>> 5) & 3;
      if (reset >= 2) {
        decoder.setProperties(bytes.next());
        needsProperties = false;
      } else if (needsProperties) throw new RangeError("a chunk without properties");
      if (reset >= 1) decoder.resetState();
      yield decoder.unpackChunk(unpackedBytes, packedBytes);
    } else if (control <= 2) yield decoder.copyChunk(uint16(bytes) + 1);
    else throw new RangeError("unknown kind of chunk");
  }
}

function uint16(bytes: ByteSource): number {
  return bytes.next() * 256 + bytes.next();
}
