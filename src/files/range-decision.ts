/**
 * Whether half a file may be gone on with (RFC 9110, 13 and 14): pure, so that every odd answer is a line in a test.
 * Two halves belong together only when the server vouches for it by a strong validator.
 */
import { parseHttpDate } from "../core/text/http-date.ts";
import { fieldLine } from "../http/headers.ts";
import type { HeaderFields } from "../http/stages/stage.ts";

/** Decides the century of dates with two digits for a year, which nobody has sent for decades: 2026. */
const TWO_DIGIT_YEAR_BASE_MS = 1_767_225_600_000;

/** What is at hand of a file. */
export interface ResumePoint {
  readonly bytes: number;
  /** An ETag or a date that stands for exactly these bytes. */
  readonly validator: string;
  /** Undefined where the server never said. */
  readonly totalBytes: number | undefined;
}

/** What an answer brings. */
export type RangeDecision =
  /** The file from its beginning, whatever is at hand. */
  | { readonly kind: "whole"; readonly totalBytes: number | undefined }
  /** What is missing, to be put behind what is at hand. */
  | { readonly kind: "rest"; readonly totalBytes: number | undefined }
  /** Nothing: all of it is at hand. */
  | { readonly kind: "complete" }
  /** Nothing: the condition of the request holds. */
  | { readonly kind: "unchanged" }
  /** A part that does not fit: to be asked for from the beginning. */
  | { readonly kind: "mismatch"; readonly reason: string }
  /** No file at all. */
  | { readonly kind: "other" };

/**
 * The validator that may stand in `If-Range`: an ETag that is not weak, or a Last-Modified that is older than its answer
 * by a second or more, so that no second change can hide in it.
 */
export function strongValidator(headers: HeaderFields): string | undefined {
  const etag = fieldLine(headers["etag"]);
  if (etag !== undefined) return /^"[^"]*"$/.test(etag) ? etag : undefined;
  const modified = fieldLine(headers["last-modified"]);
  const servedMs = parseHttpDate(fieldLine(headers["date"]) ?? "", TWO_DIGIT_YEAR_BASE_MS);
  const modifiedMs = parseHttpDate(modified ?? "", TWO_DIGIT_YEAR_BASE_MS);
  if (modifiedMs === undefined || servedMs === undefined) return undefined;
  return servedMs - modifiedMs >= 1000 ? modified : undefined;
}

/** The fields that ask for the rest; none where there is nothing to go on with. */
export function rangeHeaders(resumePoint: ResumePoint | undefined): Readonly<Record<string, string>> {
  if (resumePoint === undefined || resumePoint.bytes === 0) return {};
  return { range: `bytes=${resumePoint.bytes}-`, "if-range": resumePoint.validator };
}

/** `half` is what the request named in its `Range`; undefined when it had none. */
export function decideRange(
  status: number,
  headers: HeaderFields,
  resumePoint: ResumePoint | undefined,
): RangeDecision {
  if (status === 200) return { kind: "whole", totalBytes: contentLength(headers) };
  if (status === 304) return { kind: "unchanged" };
  if (status === 206) return decidePartialContent(headers, resumePoint);
  if (status === 416 && resumePoint !== undefined) {
    const [, total] = /^bytes \*\/(\d+)$/.exec(fieldLine(headers["content-range"]) ?? "") ?? [];
    // Of the same length, and of the length that was announced with its validator: nothing is missing.
    if (total !== undefined && Number(total) === resumePoint.bytes && resumePoint.totalBytes === resumePoint.bytes) {
      return { kind: "complete" };
    }
    return { kind: "mismatch", reason: `the server has no bytes from ${resumePoint.bytes} on` };
  }
  return { kind: "other" };
}

function decidePartialContent(headers: HeaderFields, resumePoint: ResumePoint | undefined): RangeDecision {
  if (resumePoint === undefined) return { kind: "mismatch", reason: "a part that nobody asked for" };
  const field = fieldLine(headers["content-range"]) ?? "";
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(field) ?? [];
  if (first === undefined) return { kind: "mismatch", reason: `a part without a place: ${JSON.stringify(field)}` };
  if (Number(first) !== resumePoint.bytes)
    return { kind: "mismatch", reason: `a part from ${first} instead of ${resumePoint.bytes}` };
  const validator = strongValidator(headers);
  if (validator?.startsWith('"') && validator !== resumePoint.validator) {
    return { kind: "mismatch", reason: "a part of another version" };
  }
  const totalBytes = total === "*" || total === undefined ? undefined : Number(total);
  if (resumePoint.totalBytes !== undefined && totalBytes !== undefined && totalBytes !== resumePoint.totalBytes) {
    return { kind: "mismatch", reason: `a part of ${totalBytes} bytes in all instead of ${resumePoint.totalBytes}` };
  }
  // A server may give less than was asked for; the rest is asked for again.
  return Number(last) < Number(first)
    ? { kind: "mismatch", reason: "a part that ends before it begins" }
    : { kind: "rest", totalBytes: totalBytes ?? resumePoint.totalBytes };
}

/** Undefined for a body in another encoding of transfer, and for what is no number. */
function contentLength(headers: HeaderFields): number | undefined {
  const text = fieldLine(headers["content-length"]);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
