import type { Dispatcher } from "undici";
import { DownloadError, isDocstokgError } from "../errors.ts";
import type { HeaderFields } from "../http/stages/stage.ts";
import { BodyReader } from "./body-reader.ts";
import { PartialFile } from "./partial-file.ts";
import { decideRange, rangeHeaders, strongValidator } from "./range-decision.ts";

/** An answer as `hub.request` gives it. */
export type DownloadResponse = Pick<Dispatcher.ResponseData<unknown>, "statusCode" | "headers" | "body">;

export interface ResumableDownloadOptions {
  /** Whose bytes they are: what an earlier run has left is gone on with for the same URL only. */
  readonly url: string;
  /** Where they gather, with a note beside them. They stay there when all has come, for the caller to judge and move. */
  readonly path: string;
  /** Sends the request with these fields added: through a hub, as an artifact, with redirects followed. */
  readonly send: (fields: Readonly<Record<string, string>>) => Promise<DownloadResponse>;
  /** What is kept of an earlier answer: asks for the file only if it has changed since. */
  readonly knownValidators?:
    | { readonly etag?: string | undefined; readonly lastModified?: string | undefined }
    | undefined;
  readonly maxBytes: number;
  /** Requests in all, where bodies break off. @default 5 */
  readonly attempts?: number | undefined;
  /** Told after each piece. */
  readonly onBytes?: ((bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Told when a body broke off, and is asked for again. */
  readonly onResume?: ((bytes: number, totalBytes: number | undefined) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export type ResumableDownload =
  | {
      readonly kind: "saved";
      readonly bytes: number;
      readonly sha256: string;
      /** Of the last answer. */
      readonly headers: HeaderFields;
      /** How often the file was asked for. */
      readonly requests: number;
      /** Bytes that did not have to be sent again, because they were at hand. */
      readonly resumedBytes: number;
    }
  | { readonly kind: "unchanged"; readonly headers: HeaderFields }
  /** No file: a refusal, an error, a redirect that was not followed. `text` is how it begins. */
  | { readonly kind: "answered"; readonly status: number; readonly headers: HeaderFields; readonly text: string };

const ATTEMPTS = 5;
const TEXT_BYTES_MAX = 16_384;

/**
 * Streams a file to the disk, and goes on where it broke off: with this run's half or with that of a run that was
 * killed. Nothing is buffered, nothing is put together that a strong validator does not vouch for, and what comes back
 * as saved has the announced length, its hash, and is on the disk.
 * Rejects with a DownloadError, with a refusal of the hub, or with the signal's reason; the half stays for the next time.
 */
export async function downloadFile(options: ResumableDownloadOptions): Promise<ResumableDownload> {
  const { url, path, maxBytes, attempts = ATTEMPTS, signal } = options;
  const partial = await PartialFile.open(path, url);
  let resumedBytes = 0;
  let mayResume = true;
  try {
    for (let request = 1; ; request += 1) {
      signal?.throwIfAborted();
      const resumePoint = mayResume ? partial.resumePoint : undefined;
      const answer = await options.send({
        ...conditions(options, resumePoint === undefined),
        ...rangeHeaders(resumePoint),
      });
      const { statusCode, headers } = answer;
      // At once: what comes while the disk is asked for room must not be lost.
      const body = new BodyReader(answer.body);
      const decision = decideRange(statusCode, headers, resumePoint);
      if (decision.kind === "unchanged" || decision.kind === "other") {
        const text = await readTextPrefix(body);
        if (partial.bytes === 0) await partial.discard();
        if (decision.kind === "unchanged") return { kind: "unchanged", headers };
        return { kind: "answered", status: statusCode, headers, text };
      }
      if (decision.kind === "mismatch") {
        await readTextPrefix(body);
        if (request >= attempts) throw new DownloadError(`${hostOf(url)} answers with ${decision.reason}`);
        mayResume = false;
        continue;
      }
      let totalBytes = resumePoint?.totalBytes;
      resumedBytes = decision.kind === "whole" ? 0 : partial.bytes;
      if (decision.kind === "complete") await readTextPrefix(body);
      else {
        totalBytes = decision.totalBytes;
        if ((totalBytes ?? 0) > maxBytes) {
          body.drop();
          await partial.discard();
          throw tooLargeError(url, totalBytes, maxBytes);
        }
        if (decision.kind === "whole") await partial.restart(strongValidator(headers), totalBytes);
        const problem = await copyBody(body, partial, { ...options, totalBytes });
        if (problem !== undefined) {
          signal?.throwIfAborted();
          if (request < attempts) {
            mayResume = true;
            options.onResume?.(partial.bytes, totalBytes);
            continue;
          }
          throw new DownloadError(`${hostOf(url)} broke off ${request} times: ${problem.message}`, {
            cause: problem.cause,
          });
        }
      }
      const { bytes } = partial;
      return { kind: "saved", bytes, sha256: await partial.finish(), headers, requests: request, resumedBytes };
    }
  } finally {
    await partial.close();
  }
}

/** Not together with a range: what changed is wanted whole, and If-Range sees to that. */
function conditions({ knownValidators }: ResumableDownloadOptions, isWhole: boolean): Readonly<Record<string, string>> {
  const fields: Record<string, string> = {};
  if (!isWhole) return fields;
  if (knownValidators?.etag !== undefined) fields["if-none-match"] = knownValidators.etag;
  else if (knownValidators?.lastModified !== undefined) fields["if-modified-since"] = knownValidators.lastModified;
  return fields;
}

interface TransferProblem {
  readonly message: string;
  readonly cause?: unknown;
}

/** Undefined when the body has come to its announced end; otherwise how it broke off. */
async function copyBody(
  body: BodyReader,
  partial: PartialFile,
  { url, maxBytes, totalBytes, onBytes }: ResumableDownloadOptions & { readonly totalBytes: number | undefined },
): Promise<TransferProblem | undefined> {
  try {
    for (;;) {
      let chunk: Buffer | undefined;
      try {
        chunk = await body.next();
      } catch (cause) {
        // What the hub decided against is no accident of the network.
        if (isDocstokgError(cause)) throw cause;
        return { message: cause instanceof Error ? cause.message : String(cause), cause };
      }
      if (chunk === undefined) break;
      if (partial.bytes + chunk.length > maxBytes) {
        await partial.discard();
        throw tooLargeError(url, undefined, maxBytes);
      }
      await partial.append(chunk);
      onBytes?.(partial.bytes, totalBytes);
    }
  } finally {
    body.drop();
  }
  if (totalBytes === undefined || partial.bytes === totalBytes) return undefined;
  if (partial.bytes < totalBytes) return { message: `${partial.bytes} of ${totalBytes} bytes came` };
  await partial.discard();
  throw new DownloadError(`${hostOf(url)} sent ${partial.bytes} bytes although it had announced ${totalBytes}`);
}

/** How a body that is no file begins; the rest of it is not read. */
async function readTextPrefix(body: BodyReader): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= TEXT_BYTES_MAX) break;
    }
  } catch (error) {
    if (isDocstokgError(error)) throw error;
    // An error page that breaks off has said what it is by its status.
  } finally {
    body.drop();
  }
  return Buffer.concat(chunks).subarray(0, TEXT_BYTES_MAX).toString("utf8");
}

function tooLargeError(url: string, bytes: number | undefined, maxBytes: number): DownloadError {
  const length = bytes === undefined ? "" : ` of ${bytes} bytes`;
  return new DownloadError(`${hostOf(url)} sends a file${length} where at most ${maxBytes} are wanted`);
}

/** The host alone: a query may hold a key. */
function hostOf(url: string): string {
  return URL.parse(url)?.host ?? "the server";
}
