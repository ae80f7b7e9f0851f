import type { Readable } from "node:stream";
import { type Dispatcher, errors } from "undici";
import { isBodyStream } from "../body-stream.ts";
import { joinedHeader } from "../headers.ts";

type Body = Dispatcher.DispatchOptions["body"];

/**
 * A body that reports its own failure: `onFailed` is called before undici gets the error. Streams are watched by the
 * outermost stage, so this is for other bodies that undici iterates over, such as those of Node's fetch.
 *
 * It fails when it gives more bytes than the Content-Length of its request. undici fails there too, but it waits first until
 * the rest of the body is closed. That of Node's fetch never is, so the call would hold its slot forever.
 */
export function watchedBody(body: Body, headers: readonly string[], onFailed: () => void): Body {
  if (!isIterable(body)) return body;
  const length = Number(joinedHeader(headers, "content-length") ?? Number.POSITIVE_INFINITY);
  // undici sends any iterable body, but its types name only streams.
  return watchedChunks(body, length, onFailed) as unknown as Readable;
}

function isIterable(body: unknown): body is AsyncIterable<unknown> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body && !isBodyStream(body);
}

async function* watchedChunks(
  body: AsyncIterable<unknown>,
  length: number,
  onFailed: () => void,
): AsyncGenerator<unknown, void> {
  const chunks = body[Symbol.asyncIterator]();
  let bytes = 0;
  let isOpen = false;
  try {
    for (;;) {
      const { done, value } = await nextOf(chunks, onFailed);
      isOpen = done !== true;
      if (!isOpen) return;
      bytes += byteLength(value);
      if (bytes > length) throw new errors.RequestContentLengthMismatchError();
      yield value;
      isOpen = false;
    }
  } finally {
    // Not awaited, because it may never settle.
    if (isOpen) chunks.return?.().catch(ignored);
  }
}

async function nextOf(chunks: AsyncIterator<unknown>, onFailed: () => void): Promise<IteratorResult<unknown>> {
  try {
    return await chunks.next();
  } catch (error) {
    onFailed();
    throw error;
  }
}

function byteLength(chunk: unknown): number {
  if (chunk instanceof Uint8Array) return chunk.byteLength;
  return typeof chunk === "string" ? Buffer.byteLength(chunk) : 0;
}

function ignored(): void {
  // The request has failed already, and its error is what the caller gets.
}
