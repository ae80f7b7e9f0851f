/** A chunk costs about a hundred bytes in addition to its content. Chunks of this length do not need to be joined. */
const SMALL_BYTES = 1024;
/** So many small chunks in a row are joined. */
const JOINED_CHUNKS = 64;

/**
 * The body of a response while it arrives. Small chunks are joined, because a server may send single bytes, which would
 * take a hundred times the memory of the body.
 */
export class CollectedBody {
  readonly #chunks: Buffer[] = [];
  /** Number of small chunks at the end. */
  #small = 0;

  get chunks(): readonly Buffer[] {
    return this.#chunks;
  }

  /** The chunk must not be changed afterwards. */
  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#small = chunk.length < SMALL_BYTES ? this.#small + 1 : 0;
    if (this.#small < JOINED_CHUNKS) return;
    this.#chunks.push(Buffer.concat(this.#chunks.splice(-JOINED_CHUNKS)));
    this.#small = 0;
  }
}
