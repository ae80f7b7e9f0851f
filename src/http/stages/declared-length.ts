import { Readable } from "node:stream";
import { type Dispatcher, errors } from "undici";
import { joinedHeader } from "../headers.ts";

type Body = Dispatcher.DispatchOptions["body"];

/**
 * A body that fails when it gives more bytes than the Content-Length of its request. undici fails there too, but it waits
 * first until the rest of the body is closed. That of Node's fetch never is, so the call would hold its slot forever.
 */
export function withDeclaredLength(body: Body, headers: readonly string[]): Body {
  if (!isIterable(body)) return body;
  const length = joinedHeader(headers, "content-length");
  // undici sends any iterable body, but its types name only streams.
  return length === undefined ? body : (boundedChunks(body, Number(length)) as unknown as Readable);
}

function isIterable(body: unknown): body is AsyncIterable<unknown> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body && !(body instanceof Readable);
}

async function* boundedChunks(body: AsyncIterable<unknown>, length: number): AsyncGenerator<unknown, void> {
  const chunks = body[Symbol.asyncIterator]();
  let bytes = 0;
  let isOpen = false;
  try {
    for (;;) {
      isOpen = false;
      const { done, value } = await chunks.next();
      if (done === true) return;
      isOpen = true;
      bytes += byteLength(value);
      if (bytes > length) throw new errors.RequestContentLengthMismatchError();
      yield value;
    }
  } finally {
    // Not awaited, because it may never settle.
    if (isOpen) chunks.return?.().catch(ignored);
  }
}

function byteLength(chunk: unknown): number {
  return chunk instanceof Uint8Array ? chunk.byteLength : Buffer.byteLength(String(chunk));
}

function ignored(): void {
  // The request has failed already, and its error is what the caller gets.
}
