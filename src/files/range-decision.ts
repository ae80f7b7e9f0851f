/**
 * Decides whether a response continues a partial file (RFC 9110, sections 13 and 14). Pure, so that every unusual
 * response is one line in a test. Bytes of two responses are joined only under the same strong validator.
 */

import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { parseHttpDate } from "../core/text/http-date.ts";
import { fieldLine } from "../http/headers.ts";

/** The year 2026: decides the century of dates with a two-digit year. */
const TWO_DIGIT_YEAR_BASE_MS = 1_767_225_600_000;

/** The bytes that an interrupted download has left. */
export interface ResumePoint {
  readonly bytes: number;
  /** A strong ETag or date of the version these bytes belong to. */
  readonly validator: string;
  /** Undefined if the server did not announce the length. */
  readonly totalBytes: number | undefined;
}

/** How the body of a response is used. */
export type RangeDecision =
  /** The body is the file from its beginning: drop the partial file. */
  | { readonly kind: "full"; readonly totalBytes: number | undefined }
  /** The body is the missing rest: append it to the partial file. */
  | { readonly kind: "rest"; readonly totalBytes: number | undefined }
  /** The partial file is complete already. */
  | { readonly kind: "complete" }
  /** The file has not changed since the validators of the request (304). */
  | { readonly kind: "unchanged" }
  /** The body does not continue the partial file: request the file from its beginning. */
  | { readonly kind: "mismatch"; readonly reason: string }
  /** The response is not the file: an error, a redirect, a part that was not requested and is not the complete file. */
  | { readonly kind: "other" };

/**
 * The validator for `If-Range`: a strong ETag, or a Last-Modified at least one second older than the response. A younger
 * date could cover two changes within the same second.
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

/** Empty if there is nothing to resume. */
export function rangeHeaders(resumePoint: ResumePoint | undefined): Readonly<Record<string, string>> {
  if (resumePoint === undefined || resumePoint.bytes === 0) return {};
  return { range: `bytes=${resumePoint.bytes}-`, "if-range": resumePoint.validator };
}

/** @param resumePoint of the request; undefined if it was sent without `Range` */
export function decideRange(
  status: number,
  headers: HeaderFields,
  resumePoint: ResumePoint | undefined,
): RangeDecision {
  if (status === 200) return { kind: "full", totalBytes: contentLength(headers) };
  if (status === 304) return { kind: "unchanged" };
  if (status === 206)
    return resumePoint === undefined ? decideUnrequestedPart(headers) : decidePartialContent(headers, resumePoint);
  if (status === 416 && resumePoint !== undefined) {
    const [, total] = /^bytes \*\/(\d+)$/.exec(fieldLine(headers["content-range"]) ?? "") ?? [];
    // Complete only if three numbers are equal: the length announced with the validator, the length in this response,
    // and the bytes received.
    if (total !== undefined && Number(total) === resumePoint.bytes && resumePoint.totalBytes === resumePoint.bytes) {
      return { kind: "complete" };
    }
    return { kind: "mismatch", reason: `no content at offset ${resumePoint.bytes} (416)` };
  }
  return { kind: "other" };
}

/** Some servers send every file as a part, also without `Range`. The part counts if it is the complete file. */
function decideUnrequestedPart(headers: HeaderFields): RangeDecision {
  const [, last, total] = /^bytes 0-(\d+)\/(\d+)$/.exec(fieldLine(headers["content-range"]) ?? "") ?? [];
  const isComplete = total !== undefined && Number(last) + 1 === Number(total);
  return isComplete ? { kind: "full", totalBytes: Number(total) } : { kind: "other" };
}

function decidePartialContent(headers: HeaderFields, resumePoint: ResumePoint): RangeDecision {
  const field = fieldLine(headers["content-range"]) ?? "";
  const [, first, last, total] = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(field) ?? [];
  if (first === undefined)
    return { kind: "mismatch", reason: `206 with an invalid Content-Range: ${JSON.stringify(field)}` };
  if (Number(first) !== resumePoint.bytes)
    return { kind: "mismatch", reason: `206 starting at ${first}, expected ${resumePoint.bytes}` };
  const changed = changedField(headers, resumePoint.validator);
  if (changed !== undefined) return { kind: "mismatch", reason: `206 of another version (${changed} differs)` };
  const totalBytes = total === "*" || total === undefined ? undefined : Number(total);
  if (resumePoint.totalBytes !== undefined && totalBytes !== undefined && totalBytes !== resumePoint.totalBytes) {
    return { kind: "mismatch", reason: `206 with total length ${totalBytes}, expected ${resumePoint.totalBytes}` };
  }
  // A server may send less than the requested range; the rest is requested again.
  return Number(last) < Number(first)
    ? { kind: "mismatch", reason: "206 whose range ends before it begins" }
    : { kind: "rest", totalBytes: totalBytes ?? resumePoint.totalBytes };
}

/**
 * The field that shows that a 206 is of another version than the validator; undefined if no field does. Some servers
 * honour Range and ignore If-Range, so the fields are compared here too. The weak prefix of a tag does not count: servers
 * that compress on the fly add it.
 */
function changedField(headers: HeaderFields, validator: string): "ETag" | "Last-Modified" | undefined {
  const [, weak, tag] = /^(W\/)?("[^"]*")$/.exec(fieldLine(headers["etag"]) ?? "") ?? [];
  if (validator.startsWith('"')) return tag !== undefined && tag !== validator ? "ETag" : undefined;
  if (tag !== undefined && weak === undefined) return "ETag";
  const modified = fieldLine(headers["last-modified"]);
  if (modified === undefined) return undefined;
  const instant = (date: string) => parseHttpDate(date, TWO_DIGIT_YEAR_BASE_MS);
  return instant(modified) === instant(validator) ? undefined : "Last-Modified";
}

/** Undefined if absent (chunked encoding) or not a number. */
function contentLength(headers: HeaderFields): number | undefined {
  const text = fieldLine(headers["content-length"]);
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
