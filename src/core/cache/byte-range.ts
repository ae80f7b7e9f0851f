/** Byte ranges of requests and responses (RFC 9110, section 14). Only single ranges: several in one request are rare. */
import { parseHttpDate } from "../text/http-date.ts";
import { firstValue, type HeaderFields } from "./stored-fields.ts";

/** `bytes=0-499`, `bytes=500-` or `bytes=-500`, as requested. */
export type RequestedRange =
  | { readonly kind: "from"; readonly first: number; readonly last: number | undefined }
  | { readonly kind: "suffix"; readonly count: number };

/** A part of a representation: `start` inclusive, `end` exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/** A part and the length of the complete representation. */
export interface ContentRange extends ByteRange {
  readonly length: number;
}

/** Undefined for several ranges, another unit and invalid text. The server decides about such a request. */
export function parseRange(value: string | undefined): RequestedRange | undefined {
  const [, first = "", last = ""] = /^bytes=(\d{0,15})-(\d{0,15})$/i.exec(value?.trim() ?? "") ?? [];
  if (first === "") return last === "" ? undefined : { kind: "suffix", count: Number(last) };
  if (last === "") return { kind: "from", first: Number(first), last: undefined };
  return Number(first) <= Number(last) ? { kind: "from", first: Number(first), last: Number(last) } : undefined;
}

/** The bytes that a range means in a representation of this length; undefined when it cannot be satisfied. */
export function resolveRange(range: RequestedRange, length: number): ByteRange | undefined {
  if (range.kind === "suffix") {
    return range.count === 0 || length === 0 ? undefined : { start: Math.max(0, length - range.count), end: length };
  }
  const { first, last } = range;
  return first < length ? { start: first, end: Math.min(length, (last ?? length) + 1) } : undefined;
}

/** The `Content-Range` of a 206. Undefined when it is invalid, or does not give the length of the representation. */
export function parseContentRange(value: string | readonly string[] | undefined): ContentRange | undefined {
  const [, first, last, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/i.exec(firstValue(value) ?? "") ?? [];
  const range = { start: Number(first), end: Number(last) + 1, length: Number(total) };
  return range.start < range.end && range.end <= range.length ? range : undefined;
}

export function formatContentRange({ start, end, length }: ContentRange): string {
  return `bytes ${start}-${end - 1}/${length}`;
}

/** A tag that identifies the bytes of a representation; undefined without one. */
export function strongTag(headers: HeaderFields): string | undefined {
  const tag = firstValue(headers["etag"]);
  return tag?.startsWith('"') ? tag : undefined;
}

/**
 * Whether an `If-Range` names the stored representation, so that a part of it may be served. A date must be equal and at
 * least a second before the response: a resource may change twice within one second.
 */
export function matchesIfRange(ifRange: string, stored: HeaderFields, referenceMs: number): boolean {
  const wanted = ifRange.trim();
  if (wanted.includes('"')) return wanted === strongTag(stored);
  const modified = firstValue(stored["last-modified"]);
  const modifiedMs = parseHttpDate(modified ?? "", referenceMs);
  const dateMs = parseHttpDate(firstValue(stored["date"]) ?? "", referenceMs);
  return wanted === modified && modifiedMs !== undefined && dateMs !== undefined && dateMs - modifiedMs >= 1000;
}

/** The union of two parts; undefined when there is a gap between them. */
export function joinRanges(one: ByteRange, other: ByteRange): ByteRange | undefined {
  if (one.end < other.start || other.end < one.start) return undefined;
  return { start: Math.min(one.start, other.start), end: Math.max(one.end, other.end) };
}
