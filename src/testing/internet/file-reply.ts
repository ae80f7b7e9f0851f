import type { SimulatedReply, SimulatedRequest, StreamedBody } from "./exchange.ts";

export interface ServedFile {
  readonly body: Uint8Array | StreamedBody;
  readonly type: string;
  /** Without quotes; undefined if the host sends none. */
  readonly etag?: string | undefined;
  readonly modifiedMs?: number | undefined;
  readonly takesRanges?: boolean | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** A file with conditional requests (304) and ranges (206), as in RFC 9110. */
export function fileReply(request: SimulatedRequest, file: ServedFile): SimulatedReply {
  const etag = file.etag === undefined ? undefined : `"${file.etag}"`;
  const modified = file.modifiedMs === undefined ? undefined : new Date(file.modifiedMs).toUTCString();
  const headers = {
    "content-type": file.type,
    ...(etag === undefined ? {} : { etag }),
    ...(modified === undefined ? {} : { "last-modified": modified }),
    ...(file.takesRanges ? { "accept-ranges": "bytes" } : {}),
    ...file.headers,
  };
  if (isUnchanged(request, etag, file.modifiedMs)) return { status: 304, headers, body: new Uint8Array() };
  const range = file.takesRanges ? requestedRange(request, etag, modified) : undefined;
  if (range === undefined) return { status: 200, headers, body: file.body };
  return partial(file.body, headers, range);
}

function partial(body: Uint8Array | StreamedBody, headers: Record<string, string>, range: Range): SimulatedReply {
  const { length } = body;
  const start = range.start ?? Math.max(0, length - (range.end ?? 0));
  const end = range.start === undefined ? length : Math.min(length, (range.end ?? length - 1) + 1);
  if (start >= length || start >= end) {
    return { status: 416, headers: { ...headers, "content-range": `bytes */${length}` }, body: new Uint8Array() };
  }
  return {
    status: 206,
    headers: { ...headers, "content-range": `bytes ${start}-${end - 1}/${length}` },
    body: slice(body, start, end),
  };
}

/** The bytes from `start` to before `end`. */
function slice(body: Uint8Array | StreamedBody, start: number, end: number): Uint8Array | StreamedBody {
  if (body instanceof Uint8Array) return body.subarray(start, end);
  return { length: end - start, from: (from, to) => body.from(start + from, start + to) };
}

interface Range {
  /** Undefined for the last `end` bytes. */
  readonly start: number | undefined;
  readonly end: number | undefined;
}

/** Several ranges, or an invalid one, get the complete file, which RFC 9110 permits. */
function requestedRange(
  { headers }: SimulatedRequest,
  etag: string | undefined,
  modified: string | undefined,
): Range | undefined {
  const [match, start, end] = /^bytes=(\d*)-(\d*)$/.exec(headers["range"] ?? "") ?? [];
  if (match === undefined || (start === "" && end === "")) return undefined;
  const condition = headers["if-range"];
  if (condition !== undefined && condition !== etag && condition !== modified) return undefined;
  return { start: start ? Number(start) : undefined, end: end ? Number(end) : undefined };
}

function isUnchanged({ headers }: SimulatedRequest, etag: string | undefined, modifiedMs: number | undefined): boolean {
  const wantedTags = headers["if-none-match"];
  if (wantedTags !== undefined) {
    return etag !== undefined && wantedTags.split(",").some(tag => ["*", etag, `W/${etag}`].includes(tag.trim()));
  }
  const since = Date.parse(headers["if-modified-since"] ?? "");
  return modifiedMs !== undefined && Math.floor(modifiedMs / 1000) * 1000 <= since;
}
