import type { Envelope, EventBody } from "../events.ts";
import { EventEncoder } from "./event-encoder.ts";
import { NO_SPACE } from "./json-bytes.ts";

const INITIAL_BYTES = 2 ** 16;

/**
 * Queued events as lines of JSON, the oldest first. Bytes cost the garbage collector nothing, while thousands of queued
 * objects or strings would be copied by it several times.
 */
export class LineBuffer {
  readonly #encoder = new EventEncoder();
  #bytes: Buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES);
  /** Lines before it were taken: they are written, or are being written. */
  #start = 0;
  #end = 0;
  /** The bytes that `take` has returned must not change until `release`. */
  #isTaken = false;

  /** Appends a line. Returns its length in bytes. */
  append(body: EventBody, envelope: Envelope): number {
    const end = this.#encoder.encode(body, envelope, this.#bytes, this.#end);
    if (end === NO_SPACE) {
      this.#grow();
      return this.append(body, envelope);
    }
    const length = end - this.#end;
    this.#end = end;
    return length;
  }

  /** Removes the oldest bytes and returns them. They are valid until `release`. */
  take(length: number): Buffer {
    const taken = this.#bytes.subarray(this.#start, this.#start + length);
    this.#start += length;
    this.#isTaken = true;
    return taken;
  }

  /** The bytes that were taken are no longer needed. */
  release(): void {
    this.#isTaken = false;
    if (this.#start < this.#end) return;
    // After a burst the memory is returned step by step, so that regular bursts need no allocation.
    if (this.#bytes.length > INITIAL_BYTES && this.#end < this.#bytes.length / 4)
      this.#bytes = Buffer.allocUnsafeSlow(this.#bytes.length / 2);
    this.#start = 0;
    this.#end = 0;
  }

  /**
   * Makes space after the lines. If at least half of the buffer is free at its start, the lines are moved there, otherwise
   * to a buffer twice as long. While bytes are taken, the lines are moved to a new buffer in any case.
   */
  #grow(): void {
    const used = this.#end - this.#start;
    const isHalfFree = this.#start >= this.#bytes.length / 2;
    const target =
      isHalfFree && !this.#isTaken ? this.#bytes : Buffer.allocUnsafeSlow(this.#bytes.length * (isHalfFree ? 1 : 2));
    this.#bytes.copy(target, 0, this.#start, this.#end);
    this.#bytes = target;
    this.#start = 0;
    this.#end = used;
  }
}
