const INITIAL_BYTES = 2 ** 16;
/** A character of a string becomes at most 3 bytes. */
const BYTES_PER_CHARACTER_MAX = 3;

/**
 * Queued lines as bytes, the oldest first. Bytes cost the garbage collector nothing, while thousands of queued strings
 * would be copied by it several times.
 */
export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  #start = 0;
  #end = 0;

  /** Appends a line that consists of these parts. Returns its length in bytes. */
  append(head: string, rest: string): number {
    this.#reserve((head.length + rest.length) * BYTES_PER_CHARACTER_MAX);
    const from = this.#end;
    this.#end += this.#bytes.write(head, this.#end);
    this.#end += this.#bytes.write(rest, this.#end);
    return this.#end - from;
  }

  /** Removes the oldest bytes and returns a copy of them. */
  take(length: number): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(this.#start, this.#start + length));
    this.#start += length;
    if (this.#start === this.#end) this.#clear();
    return taken;
  }

  #clear(): void {
    this.#start = 0;
    this.#end = 0;
    if (this.#bytes.length > INITIAL_BYTES) this.#bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const used = this.#end - this.#start;
    const isHalfFree = this.#start >= this.#bytes.length / 2;
    const target = isHalfFree && used + length <= this.#bytes.length ? this.#bytes : larger(used + length);
    this.#bytes.copy(target, 0, this.#start, this.#end);
    this.#bytes = target;
    this.#start = 0;
    this.#end = used;
  }
}

function larger(bytes: number): Buffer<ArrayBuffer> {
  return Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(2 * bytes)));
}
