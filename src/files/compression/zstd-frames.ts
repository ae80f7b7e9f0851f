/** The frames of a zstd stream (RFC 8878, 3.1). A stream may have several, and frames that a decoder skips. */

const MAGIC = 0xfd2fb528;
/** The last four bits of the magic number of a skippable frame may have any value. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const MAGIC_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
const CHECKSUM_BYTES = 4;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4];
const CONTENT_SIZE_BYTES = [0, 2, 4, 8];

/** What the next bytes are. `skipped` bytes are not passed on. */
type FramePart =
  | "magic"
  | "skippable-size"
  | "skipped"
  | "descriptor"
  | "header"
  | "block-header"
  | "block"
  | "checksum";

/**
 * Passes the bytes of a zstd stream on, without skippable frames, in pieces that end where a frame ends. The decoder of
 * Node ignores the rest of a piece after the end of a frame.
 * @throws RangeError if bytes after a frame are not a frame, or if the stream ends inside a frame.
 */
export async function* zstdFrames(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const splitter = new FrameSplitter();
  for await (const chunk of chunks) yield* splitter.split(chunk);
  splitter.end();
}

class FrameSplitter {
  #part: FramePart = "magic";
  /** How many bytes of the part are missing. */
  #missing = MAGIC_BYTES;
  /** The bytes of the part so far, as a little-endian number. Of long parts it is not used. */
  #value = 0;
  /** The factor of the next byte in `#value`. */
  #factor = 1;
  #hasChecksum = false;
  #isLastBlock = false;
  /** Whether the bytes before the next part end a frame. */
  #isFrameEnd = false;
  /** The first bytes of a magic number: not passed on before it is known that the frame is not skipped. */
  #heldBack: number[] = [];

  *split(chunk: Uint8Array): Generator<Uint8Array> {
    let start = 0;
    for (let at = 0; at < chunk.length; ) {
      const part = this.#part;
      if (part === "block" || part === "skipped") {
        const bytes = Math.min(this.#missing, chunk.length - at);
        this.#missing -= bytes;
        at += bytes;
      } else {
        this.#takeByte(chunk[at] ?? 0);
        at += 1;
      }
      if (part === "magic" || part === "skippable-size" || part === "skipped") start = at;
      if (this.#missing === 0) this.#nextPart();
      if (part === "magic" && this.#part === "descriptor") yield Uint8Array.from(this.#heldBack.splice(0));
      if (!this.#isFrameEnd) continue;
      this.#isFrameEnd = false;
      if (at > start) yield chunk.subarray(start, at);
      start = at;
    }
    if (start < chunk.length) yield chunk.subarray(start);
  }

  end(): void {
    if (this.#part !== "magic" || this.#heldBack.length > 0) throw new RangeError("unexpected end of the file");
  }

  #takeByte(byte: number): void {
    if (this.#part === "magic") this.#heldBack.push(byte);
    this.#value += byte * this.#factor;
    this.#factor *= 256;
    this.#missing -= 1;
  }

  #nextPart(): void {
    const value = this.#value;
    switch (this.#part) {
      case "magic":
        this.#endMagic(value);
        return;
      case "skippable-size":
        this.#begin("skipped", value);
        return;
      case "descriptor":
        this.#hasChecksum = (value & 0b100) !== 0;
        this.#begin("header", headerBytes(value));
        return;
      case "header":
        this.#begin("block-header", BLOCK_HEADER_BYTES);
        return;
      case "block-header": {
        this.#isLastBlock = (value & 1) !== 0;
        // A block of type 1 is one byte, which the decoder repeats.
        this.#begin("block", ((value >> 1) & 3) === 1 ? 1 : value >> 3);
        return;
      }
      case "block":
        if (!this.#isLastBlock) this.#begin("block-header", BLOCK_HEADER_BYTES);
        else if (this.#hasChecksum) this.#begin("checksum", CHECKSUM_BYTES);
        else this.#endFrame();
        return;
      case "checksum":
        this.#endFrame();
        return;
      default:
        this.#begin("magic", MAGIC_BYTES);
    }
  }

  #endMagic(magic: number): void {
    if (magic === MAGIC) this.#begin("descriptor", 1);
    else if (magic - (magic % 16) === SKIPPABLE_MAGIC) {
      this.#heldBack = [];
      this.#begin("skippable-size", 4);
    } else throw new RangeError("bytes that are not a zstd frame");
  }

  #endFrame(): void {
    this.#isFrameEnd = true;
    this.#begin("magic", MAGIC_BYTES);
  }

  #begin(part: FramePart, bytes: number): void {
    this.#part = part;
    this.#missing = bytes;
    this.#value = 0;
    this.#factor = 1;
    if (bytes === 0) this.#nextPart();
  }
}

/** The length of the frame header after the descriptor: window, dictionary id and content size. */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 0b10_0000) !== 0;
  const contentSize = CONTENT_SIZE_BYTES[descriptor >> 6] ?? 0;
  const size = contentSize === 0 && isSingleSegment ? 1 : contentSize;
  return (isSingleSegment ? 0 : 1) + (DICTIONARY_ID_BYTES[descriptor & 3] ?? 0) + size;
}
