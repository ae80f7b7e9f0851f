import type { IncomingMessage } from "node:http";

const BODY_MAX = 4096;

/** The JSON of a small request. Rejects with a RangeError for a large or malformed one. */
export async function jsonBody(request: IncomingMessage): Promise<unknown> {
  if (!/^application\/json\b/.test(request.headers["content-type"] ?? ""))
    throw new RangeError("the content type must be application/json");
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > BODY_MAX) throw new RangeError(`the body must have at most ${BODY_MAX} bytes`);
    chunks.push(chunk);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw new RangeError("the body is not JSON");
  }
}
