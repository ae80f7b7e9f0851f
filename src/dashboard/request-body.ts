import type { IncomingMessage } from "node:http";

const BODY_BYTES_MAX = 4096;

/** Frameworks and their body parsers may read the body before they call a handler, and set `body`. */
type ParsedRequest = IncomingMessage & { readonly body?: unknown };

/** The JSON of a small request. Rejects with a RangeError for a large or malformed one. */
export async function jsonBody(request: ParsedRequest): Promise<unknown> {
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? ""))
    throw new RangeError("the content type must be application/json");
  const body = request.readableEnded ? request.body : await bytesOf(request);
  if (body === undefined)
    throw new RangeError("the body was read before the dashboard was called: pass it as request.body");
  if (typeof body !== "string" && !Buffer.isBuffer(body)) return body;
  try {
    return JSON.parse(body.toString());
  } catch {
    throw new RangeError("the body is not JSON");
  }
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_BYTES_MAX) throw new RangeError(`the body must have at most ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
