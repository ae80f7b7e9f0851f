import type { ClientRequest, IncomingMessage } from "node:http";

/**
 * Calls `count` with the number of body bytes that the client writes. It replaces methods instead of listening, because a
 * request has no event for what was written.
 */
export function countSent(request: ClientRequest, count: (bytes: number) => void): void {
  const { write, end } = request;
  const counted = (chunk: unknown, encoding: unknown) => {
    if (typeof chunk === "string") count(Buffer.byteLength(chunk, isEncoding(encoding) ? encoding : "utf8"));
    else if (chunk instanceof Uint8Array) count(chunk.byteLength);
  };
  request.write = ((...values: unknown[]) => {
    counted(values[0], values[1]);
    return Reflect.apply(write, request, values);
  }) as ClientRequest["write"];
  request.end = ((...values: unknown[]) => {
    counted(values[0], values[1]);
    return Reflect.apply(end, request, values);
  }) as ClientRequest["end"];
}

/**
 * Calls `count` with the number of body bytes that the parser delivers. A listener for `data` would start the stream
 * before the client reads it.
 */
export function countReceived(response: IncomingMessage, count: (bytes: number) => void): void {
  const { push } = response;
  response.push = (chunk, encoding) => {
    if (chunk instanceof Uint8Array) count(chunk.byteLength);
    return push.call(response, chunk, encoding);
  };
}

function isEncoding(value: unknown): value is BufferEncoding {
  return typeof value === "string" && Buffer.isEncoding(value);
}
