/** Turns the results of a download into the failures that the manifest records. */
import { hashFile } from "../../files/file-hash.ts";
import type { ResumableDownload } from "../../files/resumable-download.ts";
import { type AttemptFailure, failureOf, isTransientStatus } from "../attempt-failure.ts";
import { challengeIn, challengeInFields } from "../challenge-page.ts";
import { isExcludedSite } from "../resolvers/excluded-site.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { plainHeaders } from "../response-body.ts";
import { checkFile, checkOtherFile, type FileFlag, type FileKind, type StoredKind } from "./file-check.ts";
import { readSample } from "./file-sample.ts";

export type FailedDownload = { readonly kind: "failed"; readonly bytes: number } & AttemptFailure;

type ResultOf<Kind extends ResumableDownload["kind"]> = ResumableDownload & { readonly kind: Kind };

const ACCEPT: Readonly<Record<FileKind, string>> = {
  pdf: "application/pdf, */*;q=0.1",
  xml: "application/xml, text/xml;q=0.9, */*;q=0.1",
  html: "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
};

/** The `Accept` field of a request for a candidate. */
export function acceptFor(candidate: Candidate): string {
  return isOtherFile(candidate) ? "*/*" : ACCEPT[fileKindOf(candidate)];
}

/** Landing pages are read by a resolver and not downloaded; one that gets here counts as HTML. */
function fileKindOf({ kind }: Candidate): FileKind {
  return kind === "pdf" || kind === "xml" ? kind : "html";
}

function isOtherFile({ kind, role = "article" }: Candidate): boolean {
  return kind === "file" || role !== "article";
}

/**
 * Checks a complete file by its bytes and by the checksum that the service has published. Resolves to the failure, or to
 * the kind of a valid file and what is unusual about it.
 */
export async function checkDownload(
  candidate: Candidate,
  path: string,
  { sha256, bytes, isFullLength }: Pick<ResultOf<"saved">, "sha256" | "bytes" | "isFullLength">,
): Promise<
  { readonly failure: AttemptFailure } | { readonly fileKind: StoredKind; readonly flag: FileFlag | undefined }
> {
  const sample = await readSample(path, bytes, isFullLength);
  const name = candidate.name ?? URL.parse(candidate.url)?.pathname ?? "";
  const result = isOtherFile(candidate)
    ? checkOtherFile(candidate.role ?? "supplement", name, sample)
    : checkFile(fileKindOf(candidate), sample);
  if (result.kind === "bad") return { failure: { reason: result.reason, message: result.message, mayRetry: false } };
  const { checksum } = candidate;
  const { fileKind, flag } = result;
  if (checksum === undefined) return { fileKind, flag };
  const { algorithm } = checksum;
  const hex = algorithm === "sha256" ? sha256 : await hashFile(path, undefined, algorithm);
  if (hex === checksum.hex) return { fileKind, flag };
  const message = `${algorithm} is ${hex}, expected ${checksum.hex}`;
  return { failure: { reason: "checksum-mismatch", message, mayRetry: false } };
}

export function tooLargeFailure({ status, bytes }: ResultOf<"too-large">, maxBytes: number): FailedDownload {
  const size = bytes === undefined ? "" : `${bytes} bytes, `;
  const message = `${size}larger than the limit of ${maxBytes} bytes (--max-bytes)`;
  return { kind: "failed", reason: "too-large", message, status, bytes: 0, mayRetry: false };
}

/** The received bytes stay on the disk if they can be resumed. */
export function incompleteFailure(result: ResultOf<"incomplete">): FailedDownload {
  const { status, bytes, message, cause, isResumable } = result;
  if (cause !== undefined) {
    const failure = failureOf(cause);
    // From its beginning the file would be as slow again.
    const mayRetry = failure.mayRetry && (isResumable || failure.reason !== "too-slow");
    return { kind: "failed", ...failure, mayRetry, status, bytes };
  }
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
