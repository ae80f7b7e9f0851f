import {
  type ContentRange,
  formatContentRange,
  joinRanges,
  matchesIfRange,
  parseContentRange,
  parseRange,
  resolveRange,
  strongTag,
} from "../../core/cache/byte-range.ts";
import type { HeaderFields } from "../../core/cache/stored-fields.ts";
import { fieldLine, joinedHeader } from "../headers.ts";
import type { OutgoingRequest } from "../stages/stage.ts";
import type { StoredHead } from "./cache-reply.ts";
import type { FoundResponse } from "./cache-store.ts";

/** A head and the body that belongs to it. */
export interface HeadAndBody {
  readonly head: StoredHead;
  readonly body: Buffer;
}

type RangeRequest = Pick<OutgoingRequest, "method" | "headers">;

/** Whether a stored response has the bytes that the request asks for. A 206 answers only requests with a range. */
export function hasRequestedBytes(request: RangeRequest, found: FoundResponse): boolean {
  const range = requestedRange(request);
  if (range === undefined) return found.status !== 206;
  // A part of an encoded body cannot be decoded.
  if (isEncoded(found.headers)) return false;
  if (found.status !== 206) return true;
  const stored = parseContentRange(found.headers["content-range"]);
  const wanted = stored && resolveRange(range, stored.length);
  if (stored === undefined || wanted === undefined || !isIfRangeMet(request, found.headers, found.receivedMs))
    return false;
  return stored.start <= wanted.start && wanted.end <= stored.end;
}

/**
 * The part of a stored response that the request asks for: a 206, or a 416 when there are no such bytes. Returns the
 * stored response unchanged for a request without a range, and when `If-Range` names another representation.
 */
export function requestedPart(request: RangeRequest, head: StoredHead, body: Buffer): HeadAndBody {
  const range = requestedRange(request);
  const { status, headers } = head;
  if (range === undefined || (status !== 200 && status !== 206) || isEncoded(headers)) return { head, body };
  const stored =
    status === 206 ? parseContentRange(headers["content-range"]) : { start: 0, end: body.length, length: body.length };
  if (stored === undefined || !isIfRangeMet(request, headers, 0)) return { head, body };
  const wanted = resolveRange(range, stored.length);
  if (wanted === undefined) return { head: unsatisfiable(head, stored.length), body: NO_BYTES };
  if (wanted.start < stored.start || wanted.end > stored.end) return { head, body };
  return {
    head: partHead(head, { ...wanted, length: stored.length }),
    body: body.subarray(wanted.start - stored.start, wanted.end - stored.start),
  };
}

/**
 * A 206 in the form in which it is stored: joined with the stored part of the same representation, and a 200 once no byte
 * is missing. Undefined when it is not stored, because its length is not the announced one or a complete response is
 * stored already.
 */
export function storablePart(
  head: StoredHead,
  chunks: readonly Buffer[],
  stored: FoundResponse | undefined,
): HeadAndBody | undefined {
  const range = parseContentRange(head.headers["content-range"]);
  const body = Buffer.concat(chunks);
  if (range === undefined || body.length !== range.end - range.start) return undefined;
  const tag = strongTag(head.headers);
  const storedTag = stored && strongTag(stored.headers);
  const isSame = tag !== undefined && tag === storedTag;
  if (stored !== undefined && stored.status !== 206) {
    const isReplaced = tag !== undefined && storedTag !== undefined && !isSame;
    return isReplaced ? withRange(head, range, body) : undefined;
  }
  const known = isSame ? parseContentRange(stored?.headers["content-range"]) : undefined;
  const knownBody = stored?.body();
  const union = known?.length === range.length ? joinRanges(known, range) : undefined;
  if (known === undefined || knownBody === undefined || union === undefined) return withRange(head, range, body);
  const before = knownBody.subarray(0, Math.max(0, range.start - known.start));
  const after = knownBody.subarray(Math.min(knownBody.length, Math.max(0, range.end - known.start)));
  return withRange(head, { ...union, length: range.length }, Buffer.concat([before, body, after]));
}

/** The head of the complete response of this length, made from the head of a part. */
export function completeHead({ headers }: Pick<StoredHead, "headers">, length: number): StoredHead {
  const { "content-range": _, ...rest } = headers;
  return { status: 200, statusText: "OK", headers: { ...rest, "content-length": String(length) } };
}

function withRange(head: StoredHead, range: ContentRange, body: Buffer): HeadAndBody {
  const isComplete = range.start === 0 && range.end === range.length;
  return { head: isComplete ? completeHead(head, range.length) : partHead(head, range), body };
}

function partHead({ headers }: StoredHead, range: ContentRange): StoredHead {
  return {
    status: 206,
    statusText: "Partial Content",
    headers: {
      ...headers,
      "content-range": formatContentRange(range),
      "content-length": String(range.end - range.start),
    },
  };
}

function unsatisfiable({ headers }: StoredHead, length: number): StoredHead {
  return {
    status: 416,
    statusText: "Range Not Satisfiable",
    headers: { ...headers, "content-range": `bytes */${length}`, "content-length": "0" },
  };
}

function requestedRange({ method, headers }: RangeRequest) {
  return method === "GET" ? parseRange(joinedHeader(headers, "range")) : undefined;
}

function isIfRangeMet({ headers }: RangeRequest, stored: HeaderFields, referenceMs: number): boolean {
  const ifRange = joinedHeader(headers, "if-range");
  return ifRange === undefined || matchesIfRange(ifRange, stored, referenceMs);
}

function isEncoded(headers: HeaderFields): boolean {
  const encoding = fieldLine(headers["content-encoding"]);
  return encoding !== undefined && encoding.trim().toLowerCase() !== "identity";
}

const NO_BYTES = Buffer.alloc(0);
