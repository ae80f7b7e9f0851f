/** Converts between Node's requests and responses (HTTP/1.1 and HTTP/2) and those of the simulated services. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { Time } from "../../time/time.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import type { ScriptedReply } from "./script-runner.ts";

export type ServerRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

const BODY_BYTES_MAX = 1_000_000;
const PIECE_BYTES = 65_536;

/** The body is empty here, because it may not have arrived yet; see `bodyOf`. */
export function simulatedRequestOf(request: ServerRequest, isTls: boolean, wallMs: number): SimulatedRequest {
  const headers: Record<string, string | undefined> = {};
  for (const [name, value] of Object.entries(request.headers))
    headers[name] = Array.isArray(value) ? value.join(", ") : value;
  const authority = headers[":authority"] ?? headers["host"] ?? "";
  const target = request.url ?? "/";
  const mark = target.indexOf("?");
  const search = mark < 0 || mark === target.length - 1 ? "" : target.slice(mark);
  return {
    method: request.method ?? "GET",
    isTls,
    host: authority.toLowerCase().replace(/:\d+$/, ""),
    path: mark < 0 ? target : target.slice(0, mark),
    search,
    query: new URLSearchParams(search),
    headers,
    body: "",
    earlierRequests: 0,
    wallMs,
  };
}

/** At most 1 MB, which is more than any service accepts. Empty if the client aborts the request. */
export async function bodyOf(request: ServerRequest): Promise<string> {
  if (request.method === "GET" || request.method === "HEAD") return "";
  const pieces: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const piece of request) {
      bytes += piece.length;
      if (bytes > BODY_BYTES_MAX) break;
      pieces.push(piece);
    }
  } catch {
    return "";
  }
  return Buffer.concat(pieces).toString();
}

function isGone(response: NodeResponse): boolean {
  return "stream" in response ? response.stream.destroyed : response.destroyed;
}

/** Closes the connection without a response. This also ends all other requests on the connection. */
export function disconnect(response: NodeResponse): void {
  if ("stream" in response) response.stream.session?.destroy();
  else response.socket?.resetAndDestroy();
}

/** Ends a response inside its body. With HTTP/2 only the stream ends; the connection stays open. */
function abortBody(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else disconnect(response);
}

/**
 * Sends a reply. `release` frees the concurrency slot of the request. It is called just before the last piece is
 * written, because a client that has the last piece may send its next request before Node reports the end.
 */
export async function send(
  request: SimulatedRequest,
  response: NodeResponse,
  { reply, bytesPerSecond }: ScriptedReply,
  release: (() => void) | undefined,
  time: Time,
): Promise<void> {
  const { status, headers, body, cutAtBytes } = reply;
  const hasBody = status !== 304 && status !== 204;
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  if (hasBody) response.setHeader("content-length", String(body.length));
  if (!hasBody || request.method === "HEAD" || body.length === 0) {
    release?.();
    response.end();
    return;
  }
  const until = Math.min(body.length, cutAtBytes ?? body.length);
  let sent = 0;
  for (const piece of piecesOf(reply, until, bytesPerSecond)) {
    if (isGone(response)) return;
    sent += piece.length;
    if (sent === body.length) {
      release?.();
      response.end(piece);
      return;
    }
    await write(response, piece);
    if (Number.isFinite(bytesPerSecond)) await time.sleep((piece.length / bytesPerSecond) * 1000);
  }
  abortBody(response);
}

/** With a limited speed, each piece has the bytes that may be sent in 100 ms. */
function* piecesOf({ body }: SimulatedReply, until: number, bytesPerSecond: number): Iterable<Uint8Array> {
  const pieceBytes = Math.max(1, Math.min(PIECE_BYTES, Math.ceil(bytesPerSecond / 10)));
  if (body instanceof Uint8Array) {
    for (let at = 0; at < until; at += pieceBytes) yield body.subarray(at, Math.min(until, at + pieceBytes));
    return;
  }
  for (const piece of body.from(0, until)) {
    for (let at = 0; at < piece.length; at += pieceBytes) yield piece.subarray(at, at + pieceBytes);
  }
}

/** Resolves when the buffer has space again, or when the client has disconnected. */
async function write(response: NodeResponse, piece: Uint8Array): Promise<void> {
  // The branches differ only in their types: TypeScript cannot call the write of the union.
  const hasCapacity = "stream" in response ? response.write(piece) : response.write(piece);
  if (hasCapacity || isGone(response)) return;
  await new Promise<void>(resolve => {
    const done = () => {
      for (const event of ["drain", "close", "error"]) response.off(event, done);
      resolve();
    };
    for (const event of ["drain", "close", "error"]) response.on(event, done);
  });
}
