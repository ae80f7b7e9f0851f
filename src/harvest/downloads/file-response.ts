/** What an answer to the request for a file says, before and after its body has come. */
import type { Dispatcher } from "undici";
import { isPassing, type Trouble } from "../attempt-failure.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { readText } from "../response-body.ts";
import { challengeIn } from "./challenge-page.ts";
import { type FileKind, HEAD_BYTES, judgeFile } from "./file-check.ts";
import type { ReceivedFile } from "./part-file.ts";

export type FailedFetch = { readonly kind: "failed"; readonly bytes: number } & Trouble;

export const ACCEPT: Readonly<Record<FileKind, string>> = {
  pdf: "application/pdf, */*;q=0.1",
  xml: "application/xml, text/xml;q=0.9, */*;q=0.1",
  html: "text/html, application/xhtml+xml;q=0.9, */*;q=0.1",
};

/** Pages are asked about, not fetched; one that got here all the same is taken for what it is. */
export function kindOf({ kind }: Candidate): FileKind {
  return kind === "landing" ? "html" : kind;
}

export function wrongWith(candidate: Candidate, received: ReceivedFile): Trouble | undefined {
  const verdict = judgeFile(kindOf(candidate), received);
  if (verdict.kind === "bad") return { reason: verdict.reason, message: verdict.message, mayPass: false };
  const { checksum } = candidate;
  if (checksum === undefined) return undefined;
  const hex = received[checksum.algorithm];
  if (hex === checksum.hex) return undefined;
  const message = `its ${checksum.algorithm} is ${hex}, not ${checksum.hex}`;
  return { reason: "checksum-mismatch", message, mayPass: false };
}

export function tooLarge(status: number, bytes: number, maxBytes: number): FailedFetch {
  const message = `${bytes} bytes and more, ${maxBytes} are allowed`;
  return { kind: "failed", reason: "too-large", message, status, bytes: 0, mayPass: false };
}

/** The server has sent less than it has, or than it said. What has come is kept, and the rest is asked for. */
export function broughtLess(status: number, bytes: number, totalBytes: number): FailedFetch {
  const message = `${bytes} of ${totalBytes} bytes came`;
  return { kind: "failed", reason: "truncated", message, status, bytes, mayPass: true };
}

export async function refusedBy(
  { statusCode: status, body }: Dispatcher.ResponseData<unknown>,
  byFields: string | undefined,
): Promise<FailedFetch> {
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
  return { kind: "failed", reason, message, status, bytes, mayPass: challenge === undefined && isPassing(status) };
}
