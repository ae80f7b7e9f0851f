/** Turns the results of a download into the failures that the manifest records. */
import { hashFile } from "../../files/file-hash.ts";
import type { ResumableDownload } from "../../files/resumable-download.ts";
import { type AttemptFailure, failureOf, isTransientStatus } from "../attempt-failure.ts";
import { challengeIn, challengeInFields } from "../challenge-page.ts";
import { isExcludedSite } from "../resolvers/excluded-site.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { plainHeaders } from "../response-body.ts";
import { checkFile, type FileFlag, type FileKind } from "./file-check.ts";
import { readSample } from "./file-sample.ts";

export type FailedDownload = { readonly kind: "failed"; readonly bytes: number } & AttemptFailure;

type ResultOf<Kind extends ResumableDownload["kind"]> = ResumableDownload & { readonly kind: Kind };

export const ACCEPT: Readonly<Record<FileKind, string>> = {
  pdf: "application/pdf, */*;q=0.1",
  xml: "application/xml, text/xml;q=0.9, */*;q=0.1",
  html: "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
};

/** Landing pages are read by a resolver and not downloaded; one that gets here counts as HTML. */
export function fileKindOf({ kind }: Candidate): FileKind {
  return kind === "landing" ? "html" : kind;
}

/**
 * Checks a complete file by its bytes and by the checksum that the service has published. Resolves to the failure, or to
 * what is unusual about a valid file.
 */
export async function checkDownload(
  candidate: Candidate,
  path: string,
  { sha256, bytes, isFullLength }: Pick<ResultOf<"saved">, "sha256" | "bytes" | "isFullLength">,
): Promise<{ readonly failure: AttemptFailure } | { readonly flag: FileFlag | undefined }> {
  const result = checkFile(fileKindOf(candidate), await readSample(path, bytes, isFullLength));
  if (result.kind === "bad") return { failure: { reason: result.reason, message: result.message, mayRetry: false } };
  const { checksum } = candidate;
  if (checksum === undefined) return { flag: result.flag };
  const { algorithm } = checksum;
  const hex = algorithm === "sha256" ? sha256 : await hashFile(path, undefined, algorithm);
  if (hex === checksum.hex) return { flag: result.flag };
  const message = `${algorithm} is ${hex}, expected ${checksum.hex}`;
  return { failure: { reason: "checksum-mismatch", message, mayRetry: false } };
}

export function tooLargeFailure({ status, bytes }: ResultOf<"too-large">, maxBytes: number): FailedDownload {
  const size = bytes === undefined ? "" : `${bytes} bytes, `;
  const message = `${size}larger than the limit of ${maxBytes} bytes (--max-bytes)`;
  return { kind: "failed", reason: "too-large", message, status, bytes: 0, mayRetry: false };
}

/** The received bytes stay on the disk if they can be resumed. */
export function incompleteFailure({ status, bytes, message, cause }: ResultOf<"incomplete">): FailedDownload {
  if (cause !== undefined) return { kind: "failed", ...failureOf(cause), status, bytes };
  return { kind: "failed", reason: "truncated", message, status, bytes, mayRetry: true };
}

export function responseFailure({ status, headers, beginning }: Omit<ResultOf<"response">, "kind">): FailedDownload {
  const challenge = challengeInFields(plainHeaders(headers)) ?? challengeIn(beginning);
  const bytes = Buffer.byteLength(beginning);
  if (isExcludedSite(status, headers, beginning))
    return { kind: "failed", reason: "no-copy", message: "excluded from the archive", status, bytes, mayRetry: false };
  return {
    kind: "failed",
    reason: challenge === undefined ? "http-status" : "challenge-page",
    message: challenge ?? `status ${status}`,
    status,
    bytes,
    // Hosts block clients that repeat a challenged request.
    mayRetry: challenge === undefined && isTransientStatus(status, headers),
  };
}
