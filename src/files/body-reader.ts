import type { Readable } from "node:stream";

/** As much as is taken ahead of a slow disk. */
const READ_AHEAD_BYTES = 1_048_576;

/**
 * A body piece by piece, with everything that has come: a stream that fails drops what it had buffered, and of a file
 * that breaks off every byte at hand is one that need not be sent again. Here a failure is told behind the last piece.
 */
export class BodyReader {
  readonly #body: Readable;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(body: Readable) {
    this.#body = body;
    body.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#bytes += chunk.length;
      if (this.#bytes >= READ_AHEAD_BYTES) body.pause();
      this.#wake?.();
    });
    body.once("end", () => this.#finish({}));
    // Stays, because a body that is let go of early may fail once more.
    body.on("error", (error: unknown) => this.#finish({ error }));
    body.once("close", () => this.#finish({ error: new Error("the body was closed before its end") }));
  }

  /** Undefined at the end. Rejects with what the body failed with. */
  async next(): Promise<Buffer | undefined> {
    while (this.#chunks.length === 0 && this.#end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    const chunk = this.#chunks.shift();
    if (chunk === undefined) {
      if (this.#end !== undefined && "error" in this.#end) throw this.#end.error;
      return undefined;
    }
    this.#bytes -= chunk.length;
    if (this.#bytes < READ_AHEAD_BYTES && this.#body.isPaused()) this.#body.resume();
    return chunk;
  }

  /** Lets go of what is left. */
  drop(): void {
    this.#body.destroy();
  }

  #finish(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake?.();
  }
}
