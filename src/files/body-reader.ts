import type { Readable } from "node:stream";

/** As much as is taken ahead of a slow disk. */
const AHEAD_BYTES = 1_048_576;

/**
 * A body piece by piece, with everything that has come: a stream that fails drops what it had buffered, and of a file
 * that breaks off every byte at hand is one that need not be sent again. Here a failure is told behind the last piece.
 */
export class BodyPieces {
  readonly #body: Readable;
  readonly #pieces: Buffer[] = [];
  #bytes = 0;
  #end: { readonly error?: unknown } | undefined;
  #wake: (() => void) | undefined;

  constructor(body: Readable) {
    this.#body = body;
    body.on("data", (piece: Buffer) => {
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      if (this.#bytes >= AHEAD_BYTES) body.pause();
      this.#wake?.();
    });
    body.once("end", () => this.#over({}));
    // Stays, because a body that is let go of early may fail once more.
    body.on("error", (error: unknown) => this.#over({ error }));
    body.once("close", () => this.#over({ error: new Error("the body was closed before its end") }));
  }

  /** Undefined at the end. Rejects with what the body failed with. */
  async next(): Promise<Buffer | undefined> {
    while (this.#pieces.length === 0 && this.#end === undefined) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
    const piece = this.#pieces.shift();
    if (piece === undefined) {
      if (this.#end !== undefined && "error" in this.#end) throw this.#end.error;
      return undefined;
    }
    this.#bytes -= piece.length;
    if (this.#bytes < AHEAD_BYTES && this.#body.isPaused()) this.#body.resume();
    return piece;
  }

  /** Lets go of what is left. */
  drop(): void {
    this.#body.destroy();
  }

  #over(end: { readonly error?: unknown }): void {
    this.#end ??= end;
    this.#wake?.();
  }
}
