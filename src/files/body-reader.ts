import type { Readable } from "node:stream";

/** How far the reader may be ahead of a slow disk. */
const READ_AHEAD_BYTES = 1_048_576;
/** Memory that a chunk takes beside its bytes, at least: a server may send single bytes. */
const CHUNK_OVERHEAD_BYTES = 256;

const CLOSED = "the response body closed before it was complete";

/**
 * Reads a response body chunk by chunk. A Node stream that fails drops the chunks in its own buffer, and a resumed
 * download would have to request them again. This reader takes the chunks at once, and reports a failure after the last
 * of them was read. While the stream is paused (`READ_AHEAD_BYTES`), a failure still drops the chunks in its buffer.
 */
export class BodyReader {
  readonly #body: Readable;
  #chunks: Buffer[] = [];
  #bufferedBytes = 0;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(body: Readable) {
    this.#body = body;
    body.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#bufferedBytes += chunk.length + CHUNK_OVERHEAD_BYTES;
      if (this.#bufferedBytes >= READ_AHEAD_BYTES) body.pause();
      this.#wake?.();
    });
    body.once("end", () => this.#finish({}));
    // Never removed: a body that is destroyed early may emit a second error.
    body.on("error", (error: unknown) => this.#finish({ error }));
    body.once("close", () => this.#finish({ error: new Error(CLOSED) }));
    // A body that has failed already emits nothing any more.
    if (body.destroyed) this.#finish({ error: body.errored ?? new Error(CLOSED) });
  }

  /** All bytes that have arrived since the last call; undefined at the end. Rejects with the error of the body. */
  async next(): Promise<Buffer | undefined> {
    while (this.#chunks.length === 0 && this.#end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    const chunks = this.#chunks;
    const [first] = chunks;
    if (first === undefined) {
      if (this.#end !== undefined && "error" in this.#end) throw this.#end.error;
      return undefined;
    }
    this.#chunks = [];
    this.#bufferedBytes = 0;
    if (this.#body.isPaused()) this.#body.resume();
    return chunks.length === 1 ? first : Buffer.concat(chunks);
  }

  /** Ends the body without reading the rest, which frees its connection. */
  drop(): void {
    this.#body.destroy();
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake?.();
  }
}
