/** Between Node's servers, of either version of HTTP, and what the services see and say. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { constants, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { Time } from "../../time/time.ts";
import type { SimulatedReply, SimulatedRequest } from "./exchange.ts";
import type { ScriptedReply } from "./script-runner.ts";

export type NodeRequest = IncomingMessage | Http2ServerRequest;
export type NodeResponse = ServerResponse | Http2ServerResponse;

const BODY_BYTES_MAX = 1_000_000;
const PIECE_BYTES = 65_536;

/** Without its body, which may still be on its way. */
export function simulatedRequestOf(request: NodeRequest, isTls: boolean, wallMs: number): SimulatedRequest {
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
    earlier: 0,
    wallMs,
  };
}

/** What is longer than any service takes is cut short; what the client breaks off is what came until then. */
export async function bodyOf(request: NodeRequest): Promise<string> {
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

/** Without a word, and with whatever else is under way on the connection. */
export function disconnect(response: NodeResponse): void {
  if ("stream" in response) response.stream.session?.destroy();
  else response.socket?.resetAndDestroy();
}

/** In the middle of a body: of HTTP/2 it is the stream that ends, and the connection goes on. */
function abortBody(response: NodeResponse): void {
  if ("stream" in response) response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
  else disconnect(response);
}

/**
 * `leave` is called when the last piece is handed over. A client cannot have it before that, and one that has it may
 * send its next request before Node tells us that ours is flushed: that one must find the place free.
 */
export async function send(
  visit: SimulatedRequest,
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
  if (!hasBody || visit.method === "HEAD" || body.length === 0) {
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

/** A slow server hands over a tenth of a second's worth at a time. */
function* piecesOf({ body }: SimulatedReply, until: number, bytesPerSecond: number): Iterable<Uint8Array> {
  const most = Math.max(1, Math.min(PIECE_BYTES, Math.ceil(bytesPerSecond / 10)));
  if (body instanceof Uint8Array) {
    for (let at = 0; at < until; at += most) yield body.subarray(at, Math.min(until, at + most));
    return;
  }
  for (const piece of body.from(0, until)) {
    for (let at = 0; at < piece.length; at += most) yield piece.subarray(at, at + most);
  }
}

/** Resolves when there is room for more, or nobody to send it to: the client's errors are not ours. */
async function write(response: NodeResponse, piece: Uint8Array): Promise<void> {
  const hasRoom = "stream" in response ? response.write(piece) : response.write(piece);
  if (hasRoom || isGone(response)) return;
  await new Promise<void>(resolve => {
    const done = () => {
      for (const event of ["drain", "close", "error"]) response.off(event, done);
      resolve();
    };
    for (const event of ["drain", "close", "error"]) response.on(event, done);
  });
}
