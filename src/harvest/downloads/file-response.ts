/** What an answer to the request for a file says, before and after its body has come. */
import type { Dispatcher } from "undici";
import { type AttemptFailure, isTransientStatus } from "../attempt-failure.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { readText } from "../response-body.ts";
import { challengeIn } from "./challenge-page.ts";
import { checkFile, type FileKind, HEAD_BYTES } from "./file-check.ts";
import type { ReceivedFile } from "./part-file.ts";

export type FailedDownload = { readonly kind: "failed"; readonly bytes: number } & AttemptFailure;

export const ACCEPT: Readonly<Record<FileKind, string>> = {
  pdf: "application/pdf, */*;q=0.1",
  xml: "application/xml, text/xml;q=0.9, */*;q=0.1",
  html: "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
};

/** Pages are asked about, not fetched; one that got here all the same is taken for what it is. */
export function fileKindOf({ kind }: Candidate): FileKind {
  return kind === "landing" ? "html" : kind;
}

export function fileFailure(candidate: Candidate, received: ReceivedFile): AttemptFailure | undefined {
  const verdict = checkFile(fileKindOf(candidate), received);
  if (verdict.kind === "bad") return { reason: verdict.reason, message: verdict.message, mayRetry: false };
  const { checksum } = candidate;
  if (checksum === undefined) return undefined;
  const hex = received[checksum.algorithm];
  if (hex === checksum.hex) return undefined;
  const message = `its ${checksum.algorithm} is ${hex}, not ${checksum.hex}`;
  return { reason: "checksum-mismatch", message, mayRetry: false };
}

export function tooLargeFailure(status: number, bytes: number, maxBytes: number): FailedDownload {
  const message = `${bytes} bytes and more, ${maxBytes} are allowed`;
  return { kind: "failed", reason: "too-large", message, status, bytes: 0, mayRetry: false };
}

/** The server has sent less than it has, or than it said. What has come is kept, and the rest is asked for. */
export function truncatedFailure(status: number, bytes: number, totalBytes: number): FailedDownload {
  const message = `${bytes} of ${totalBytes} bytes came`;
  return { kind: "failed", reason: "truncated", message, status, bytes, mayRetry: true };
}

export async function responseFailure(
  { statusCode: status, body }: Dispatcher.ResponseData<unknown>,
  byFields: string | undefined,
): Promise<FailedDownload> {
  let challenge = byFields;
  let bytes = 0;
  try {
    const page = await readText(body, HEAD_BYTES);
    challenge ??= challengeIn(page.text);
    bytes = page.bytes;
  } catch {
    // How a page that says no ended is of no interest.
  }
  const reason = challenge === undefined ? "http-status" : "challenge-page";
  const message = challenge ?? `status ${status}`;
  // Those who go on knocking at a challenge are blocked for longer.
  return {
    kind: "failed",
    reason,
    message,
    status,
    bytes,
    mayRetry: challenge === undefined && isTransientStatus(status),
  };
}
