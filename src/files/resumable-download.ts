import type { Dispatcher } from "undici";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { isDocstokgError, messageOf } from "../errors.ts";
import { BodyReader } from "./body-reader.ts";
import { contentCoding, decodedBody } from "./content-coding.ts";
import { PartialFile } from "./partial-file.ts";
import { decideRange, type RangeDecision, type ResumePoint, rangeHeaders, strongValidator } from "./range-decision.ts";
import type { ResumeRecordStore } from "./resume-record.ts";
import { type MinSpeed, SpeedCheck } from "./speed-check.ts";

/** A response of `hub.request`. */
export type DownloadResponse = Pick<Dispatcher.ResponseData<unknown>, "statusCode" | "headers" | "body">;

export interface ResumableDownloadOptions {
  /** The partial file. It stays there when the download is complete; the caller checks it and moves it. */
  readonly path: string;
  /** The resume record of this path and URL. */
  readonly record: ResumeRecordStore;
  /** Sends the request through the hub, with these header fields added. */
  readonly send: (headers: Readonly<Record<string, string>>) => Promise<DownloadResponse>;
  /** Validators of a stored copy: the server answers 304 if the file has not changed. */
  readonly knownValidators?:
    | { readonly etag?: string | undefined; readonly lastModified?: string | undefined }
    | undefined;
  readonly maxBytes: number;
  /** Number of interrupted bodies after which the download ends as `incomplete`. @default 5 */
  readonly maxInterruptions?: number | undefined;
  /** False if the headers show that the response is not the file, for example a bot check. @default always true */
  readonly mayBeFile?: ((headers: HeaderFields) => boolean) | undefined;
  /** Called after each chunk. */
  readonly onBytes?: ((bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when a body was interrupted and the rest is requested; not if the file is requested from its beginning. */
  readonly onResume?: ((bytes: number, totalBytes: number | undefined) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
  /** A body with fewer bytes in a period is interrupted: it would keep its connection for hours. @default no limit */
  readonly minSpeed?: MinSpeed | undefined;
}

/** Status and headers are those of the last response. */
export type ResumableDownload = { readonly status: number; readonly headers: HeaderFields } & (
  | {
      /** The complete file is on the disk, with the announced length. */
      readonly kind: "saved";
      readonly bytes: number;
      readonly sha256: string;
      /** Whether the server announced a length. If so, the file has this length. */
      readonly isFullLength: boolean;
      /** How many requests were sent. */
      readonly requests: number;
      /** Bytes that were on the disk before the last request and were not transferred again. */
      readonly resumedBytes: number;
    }
  | { readonly kind: "unchanged" }
  /** The body ended too early, or was longer than announced. Bytes that can be resumed stay on the disk. */
  | {
      readonly kind: "incomplete";
      readonly bytes: number;
      /** Whether a later request can begin after these bytes. */
      readonly isResumable: boolean;
      readonly requests: number;
      readonly message: string;
      /** The error of the body; undefined if the body ended without one. */
      readonly cause: unknown;
    }
  /** The file is larger than `maxBytes`; the partial file is deleted. `bytes` is the announced length, if any. */
  | { readonly kind: "too-large"; readonly bytes: number | undefined }
  /** The response is not the file. */
  | { readonly kind: "response"; readonly beginning: string }
);

const MAX_INTERRUPTIONS = 5;
const BEGINNING_BYTES_MAX = 16_384;

/**
 * Downloads a file to the disk and resumes where an earlier request or an earlier process was interrupted. The file is
 * never held in memory, and bytes are joined only under the same strong validator.
 * Rejects with the error of `send`, with the signal's reason, or with a DownloadError if the disk fails. Bytes that can be
 * resumed stay on the disk.
 */
export async function downloadFile(options: ResumableDownloadOptions): Promise<ResumableDownload> {
  const partial = await PartialFile.open(options.path, options.record);
  let isSaved = false;
  try {
    const result = await transfer(options, partial);
    isSaved = result.kind === "saved";
    return result;
  } finally {
    await partial.close();
    if (!isSaved && partial.resumePoint === undefined) await partial.discard();
  }
}

async function transfer(options: ResumableDownloadOptions, partial: PartialFile): Promise<ResumableDownload> {
  const { maxInterruptions = MAX_INTERRUPTIONS, signal, mayBeFile, onResume, minSpeed } = options;
  let interruptions = 0;
  for (let requests = 1; ; requests += 1) {
    signal?.throwIfAborted();
    const { resumePoint } = partial;
    // A range request has If-Range in case the file has changed, so the other validators are not sent with it.
    const response = await options.send(
      resumePoint === undefined ? conditionalHeaders(options) : rangeHeaders(resumePoint),
    );
    const { statusCode: status, headers } = response;
    // Created before anything is awaited, so that no chunk is lost.
    const body = new BodyReader(decodedBody(response.body, headers));
    try {
      const decision = mayBeFile?.(headers) === false ? OTHER : decideBodyUse(status, headers, resumePoint);
      if (decision.kind === "unchanged" || decision.kind === "other") {
        const beginning = await readBeginning(body, minSpeed);
        return decision.kind === "unchanged"
          ? { kind: "unchanged", status, headers }
          : { kind: "response", status, headers, beginning };
      }
      if (decision.kind === "mismatch") {
        await readBeginning(body, minSpeed);
        // Deleted before the next request: if that request is refused, a later call must not repeat the range. The next
        // request has no range, so its response cannot be a mismatch.
        await partial.discard();
        continue;
      }
      const resumedBytes = decision.kind === "full" ? 0 : partial.bytes;
      if (decision.kind === "complete") {
        await readBeginning(body, minSpeed);
        return {
          kind: "saved",
          status,
          headers,
          ...(await partial.finish()),
          isFullLength: true,
          requests,
          resumedBytes,
        };
      }
      const { totalBytes } = decision;
      const failure = await receiveFile(body, headers, decision, partial, options);
      if (failure === undefined) {
        const isFullLength = totalBytes !== undefined;
        return { kind: "saved", status, headers, ...(await partial.finish()), isFullLength, requests, resumedBytes };
      }
      if (failure.kind === "too-large") {
        await partial.discard();
        return { ...failure, status, headers };
      }
      signal?.throwIfAborted();
      interruptions += 1;
      // An error of the hub, such as a passed deadline, would end the next request too.
      if (interruptions >= maxInterruptions || isDocstokgError(failure.cause))
        return { status, headers, ...resumeState(partial), requests, ...failure };
      if (partial.resumePoint !== undefined) onResume?.(partial.bytes, totalBytes);
    } finally {
      // Also if the disk fails: an open body would keep its connection and its slot.
      body.drop();
    }
  }
}

/** Writes a body to the partial file: the complete file, or the rest of it. Undefined if it is complete. */
async function receiveFile(
  body: BodyReader,
  headers: HeaderFields,
  { kind, totalBytes }: RangeDecision & { readonly kind: "full" | "rest" },
  partial: PartialFile,
  options: ResumableDownloadOptions,
): Promise<Interruption | TooLarge | undefined> {
  if (totalBytes !== undefined && totalBytes > options.maxBytes) return { kind: "too-large", bytes: totalBytes };
  if (kind === "full") {
    const validator = isEncoded(headers) ? undefined : strongValidator(headers);
    await partial.restart(validator === undefined ? undefined : { validator, totalBytes });
  }
  return copyBody(body, partial, { ...options, totalBytes });
}

function resumeState({ bytes, resumePoint }: PartialFile): { readonly bytes: number; readonly isResumable: boolean } {
  return { bytes, isResumable: resumePoint !== undefined };
}

const OTHER = { kind: "other" } as const;

/** Lengths and ranges of an encoded response count encoded bytes, so the decoded file cannot be compared or resumed. */
function decideBodyUse(status: number, headers: HeaderFields, resumePoint: ResumePoint | undefined): RangeDecision {
  const decision = decideRange(status, headers, resumePoint);
  if (!isEncoded(headers)) return decision;
  if (decision.kind === "full") return { kind: "full", totalBytes: undefined };
  return decision.kind === "rest" ? { kind: "mismatch", reason: "206 of an encoded response" } : decision;
}

function isEncoded(headers: HeaderFields): boolean {
  return contentCoding(headers) !== undefined;
}

function conditionalHeaders({ knownValidators }: ResumableDownloadOptions): Readonly<Record<string, string>> {
  const { etag, lastModified } = knownValidators ?? {};
  if (etag !== undefined) return { "if-none-match": etag };
  return lastModified === undefined ? {} : { "if-modified-since": lastModified };
}

interface TooLarge {
  readonly kind: "too-large";
  readonly bytes: number | undefined;
}

interface Interruption {
  readonly kind: "incomplete";
  readonly message: string;
  readonly cause: unknown;
}

/** Undefined if the body ended at its announced length, or at any length if none was announced. */
async function copyBody(
  body: BodyReader,
  partial: PartialFile,
  { maxBytes, totalBytes, onBytes, minSpeed }: ResumableDownloadOptions & { readonly totalBytes: number | undefined },
): Promise<Interruption | TooLarge | undefined> {
  let received = 0;
  const speed = minSpeed && new SpeedCheck(minSpeed, body, () => received);
  try {
    for (;;) {
      let chunk: Buffer | undefined;
      try {
        chunk = await body.next();
      } catch (error) {
        const cause = speed?.error ?? error;
        return { kind: "incomplete", message: messageOf(cause), cause };
      }
      if (chunk === undefined) break;
      if (partial.bytes + chunk.length > maxBytes) return { kind: "too-large", bytes: undefined };
      received += chunk.length;
      const append = () => partial.append(chunk);
      await (speed === undefined ? append() : speed.exclude(append));
      onBytes?.(partial.bytes, totalBytes);
    }
  } finally {
    speed?.stop();
  }
  const { bytes } = partial;
  if (totalBytes === undefined || bytes === totalBytes) return undefined;
  // The wrong bytes cannot be found, so all are deleted.
  if (bytes > totalBytes) await partial.discard();
  return { kind: "incomplete", message: `received ${bytes} of ${totalBytes} bytes`, cause: undefined };
}

/** The start of a body that is not a file, for messages. The rest is not read. */
async function readBeginning(body: BodyReader, minSpeed: MinSpeed | undefined): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const speed = minSpeed && new SpeedCheck(minSpeed, body, () => bytes);
  try {
    for (let chunk = await body.next(); chunk !== undefined; chunk = await body.next()) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= BEGINNING_BYTES_MAX) break;
    }
  } catch (error) {
    if (isDocstokgError(error)) throw error;
    // An incomplete error page is enough: the status is known.
  } finally {
    speed?.stop();
  }
  return Buffer.concat(chunks).subarray(0, BEGINNING_BYTES_MAX).toString("utf8");
}
