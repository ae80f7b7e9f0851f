import { randomBytes } from "node:crypto";
import type { Dispatcher } from "undici";
import { DownloadError } from "../../errors.ts";
import { decideRange, type ResumePoint, rangeHeaders, strongValidator } from "../../files/range-decision.ts";
import type { Hub } from "../../http/hub.ts";
import { failureOf } from "../attempt-failure.ts";
import type { ListedWork, Manifest } from "../manifest/manifest.ts";
import { type DownloadedFile, type KnownSource, type PartialDownload, urlHashOf } from "../manifest/manifest-files.ts";
import type { DoneReason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { discardBody, plainHeaders, redirectTarget } from "../response-body.ts";
import { challengeInFields } from "./challenge-page.ts";
import { MEDIA_TYPES } from "./file-check.ts";
import {
  ACCEPT,
  type FailedDownload,
  fileFailure,
  fileKindOf,
  responseFailure,
  tooLargeFailure,
  truncatedFailure,
} from "./file-response.ts";
import type { FileStore } from "./file-store.ts";
import { filePathFor, type Layout } from "./layout.ts";
import { PartFile, type ReceivedFile } from "./part-file.ts";

export interface DownloadOptions {
  readonly hub: Pick<Hub, "request">;
  readonly manifest: Manifest;
  readonly fileStore: FileStore;
  readonly layout: Layout;
  readonly maxBytes: number;
  /** The longest a request may be held at the gate; whoever would wait longer is told so, and comes again. */
  readonly maxWaitMs: number;
  readonly run: number;
}

/** What to get, for whom. */
export interface DownloadRequest {
  readonly work: ListedWork;
  readonly candidate: Candidate;
  readonly resolver: string;
  /** Where the candidate is by now, after redirects. */
  readonly url: string;
  readonly signal: AbortSignal;
}

export type DownloadResult =
  | {
      readonly kind: "arrived";
      readonly reason: DoneReason;
      readonly arrival: DownloadedFile;
      readonly status?: number;
    }
  | { readonly kind: "redirect"; readonly url: string; readonly status: number }
  | FailedDownload;

/** A whole file, body included; a slower one is given up, so that no server holds us for a day with a byte a minute. */
const DEADLINE_MS = 30 * 60_000;

/** Brings files in: streamed to a part, hashed, judged, and only then put in their place and into the manifest. */
export class Downloads {
  readonly #options: DownloadOptions;
  /** Files are put in their places one after the other, so that the same bytes from two addresses become one file. */
  #storing: Promise<unknown> = Promise.resolve();

  constructor(options: DownloadOptions) {
    this.#options = options;
  }

  /**
   * What has arrived is in the manifest by then. Rejects with what the hub refuses, with the signal's reason, and with a
   * DownloadError when the disk is at fault.
   */
  async fetch(request: DownloadRequest): Promise<DownloadResult> {
    const { manifest, fileStore, run } = this.#options;
    const place = urlHashOf(request.url);
    const known = manifest.files.source(place);
    const source = known !== undefined && fileStore.has(known.file) ? known : undefined;
    // What came from the very same address a moment ago is not asked for again.
    if (source?.run === run) return this.#reuseFile(request, source, "duplicate", undefined);
    const part = source === undefined ? manifest.files.part(place) : undefined;
    const resumePoint = part === undefined ? undefined : this.#resumePointOf(part);
    const response = await this.#send(request, source, resumePoint);
    const { statusCode: status, body } = response;
    const headers = plainHeaders(response.headers);
    const redirectUrl = redirectTarget(status, headers["location"], request.url);
    if (redirectUrl !== undefined || (status === 304 && source !== undefined)) {
      await body.dump();
      return redirectUrl !== undefined
        ? { kind: "redirect", url: redirectUrl, status }
        : this.#reuseFile(request, source as KnownSource, "not-modified", status);
    }
    const challenge = challengeInFields(headers);
    if (
      challenge === undefined &&
      part !== undefined &&
      resumePoint !== undefined &&
      (status === 206 || status === 416)
    )
      return this.#resume(request, response, part.file, resumePoint);
    if (status !== 200 || challenge !== undefined) return responseFailure(response, challenge);
    return this.#receiveFromStart(request, response, headers, part?.file);
  }

  #resumePointOf({ file, validator }: PartialDownload): ResumePoint | undefined {
    const bytes = this.#options.fileStore.partBytes(file);
    return bytes === 0 || validator === undefined ? undefined : { bytes, validator, totalBytes: undefined };
  }

  /** Finishes what a run that died had begun to put in its place, and removes what is of no use. Answers how many. */
  async recover(): Promise<number> {
    const { manifest, fileStore, run } = this.#options;
    let finished = 0;
    for (const { place, work, file, validator, shelving } of manifest.files.parts()) {
      if (shelving !== undefined && (await this.#finishMove(file, shelving))) {
        manifest.finish(run, work, "ok", shelving);
        finished += 1;
      } else if (validator === undefined) await this.#deletePart(place, file);
    }
    await fileStore.removeUnknownParts(new Set(manifest.files.parts().map(({ file }) => file)));
    return finished;
  }

  /** False when the file is not there any more, or another one has taken its place: then it is fetched again. */
  async #finishMove(file: string, shelving: DownloadedFile): Promise<boolean> {
    const { fileStore } = this.#options;
    if (fileStore.partBytes(file) !== shelving.bytes && !fileStore.has(shelving)) return false;
    try {
      await fileStore.moveIntoPlace(file, shelving.path, shelving.sha256);
      return true;
    } catch (error) {
      if (error instanceof DownloadError) return false;
      throw error;
    }
  }

  #send(
    { url, candidate, signal }: DownloadRequest,
    source: KnownSource | undefined,
    resumePoint: ResumePoint | undefined,
  ): Promise<Dispatcher.ResponseData<unknown>> {
    const headers: Record<string, string> = { accept: ACCEPT[fileKindOf(candidate)], ...rangeHeaders(resumePoint) };
    if (source?.etag !== undefined) headers["if-none-match"] = source.etag;
    else if (source?.lastModified !== undefined) headers["if-modified-since"] = source.lastModified;
    const { hub, maxWaitMs } = this.#options;
    return hub.request(url, { role: "artifact", maxWaitMs, deadlineMs: DEADLINE_MS, headers, signal });
  }

  async #resume(
    request: DownloadRequest,
    response: Dispatcher.ResponseData<unknown>,
    file: string,
    resumePoint: ResumePoint,
  ): Promise<DownloadResult> {
    const { fileStore } = this.#options;
    const { statusCode: status, headers, body } = response;
    // How long the file is was never noted; a server that has our length of it, and vouches for the rest, has said it now.
    const arrival = decideRange(
      status,
      headers,
      status === 416 ? { ...resumePoint, totalBytes: resumePoint.bytes } : resumePoint,
    );
    if (arrival.kind === "rest") {
      return this.#receive(request, response, await resumed(fileStore, file), file, arrival.totalBytes);
    }
    await body.dump();
    // Nothing is missing: whoever fetched it died before he could look at it.
    if (arrival.kind === "complete") return this.#complete(request, response, await resumed(fileStore, file), file);
    // It is not as we remember it: from the beginning, then.
    await this.#deletePart(urlHashOf(request.url), file);
    return this.fetch(request);
  }

  async #receiveFromStart(
    request: DownloadRequest,
    response: Dispatcher.ResponseData<unknown>,
    headers: Readonly<Record<string, string>>,
    oldFile: string | undefined,
  ): Promise<DownloadResult> {
    const { manifest, fileStore, maxBytes } = this.#options;
    const declared = Number(headers["content-length"] ?? 0);
    if (declared > maxBytes) {
      discardBody(response.body);
      return tooLargeFailure(response.statusCode, declared, maxBytes);
    }
    const file = oldFile ?? `${randomBytes(12).toString("hex")}.part`;
    const validator = strongValidator(response.headers);
    // Known before the first byte is there, so that a part without a name cannot be left behind.
    manifest.files.savePart({
      place: urlHashOf(request.url),
      work: request.work.id,
      file,
      validator,
      shelving: undefined,
    });
    return this.#receive(
      request,
      response,
      await withDiskErrors(() => PartFile.create(fileStore.partPath(file))),
      file,
    );
  }

  async #receive(
    request: DownloadRequest,
    response: Dispatcher.ResponseData<unknown>,
    part: PartFile,
    file: string,
    totalBytes?: number,
  ): Promise<DownloadResult> {
    const { statusCode: status, body } = response;
    const place = urlHashOf(request.url);
    const { manifest, maxBytes } = this.#options;
    try {
      for await (const chunk of body) {
        if (part.bytes + chunk.length > maxBytes) {
          await part.close();
          await this.#deletePart(place, file);
          return tooLargeFailure(status, part.bytes + chunk.length, maxBytes);
        }
        await withDiskErrors(() => part.append(chunk));
      }
    } catch (error) {
      await part.close();
      const isOfUse = manifest.files.part(place)?.validator !== undefined && part.bytes > 0;
      if (!isOfUse) await this.#deletePart(place, file);
      if (error instanceof DownloadError || request.signal.aborted) throw error;
      return { kind: "failed", ...failureOf(error), status, bytes: part.bytes };
    }
    if (totalBytes !== undefined && part.bytes < totalBytes) {
      await part.close();
      return truncatedFailure(status, part.bytes, totalBytes);
    }
    return this.#complete(request, response, part, file);
  }

  async #complete(
    request: DownloadRequest,
    { statusCode: status, headers }: Dispatcher.ResponseData<unknown>,
    part: PartFile,
    file: string,
  ): Promise<DownloadResult> {
    const place = urlHashOf(request.url);
    const received = await withDiskErrors(() => part.finish());
    const failure = fileFailure(request.candidate, received);
    if (failure !== undefined) {
      await this.#deletePart(place, file);
      return { kind: "failed", ...failure, status, bytes: received.bytes };
    }
    const shelved = this.#storing.then(() => this.#store(request, received, plainHeaders(headers), file));
    this.#storing = shelved.catch(() => undefined);
    return { ...(await shelved), status };
  }

  async #store(
    { work, url, candidate, resolver }: DownloadRequest,
    { sha256, bytes }: ReceivedFile,
    headers: Readonly<Record<string, string>>,
    file: string,
  ): Promise<DownloadResult & { readonly kind: "arrived" }> {
    const { manifest, fileStore, layout } = this.#options;
    const kind = fileKindOf(candidate);
    const place = urlHashOf(url);
    const { licence, version } = candidate;
    const origin = { place, url: redactedUrl(url), resolver, licence, version };
    const validators = { etag: headers["etag"], lastModified: headers["last-modified"] };
    const sameBytes = manifest.files.file(sha256);
    if (sameBytes !== undefined && fileStore.has(sameBytes)) {
      await this.#deletePart(place, file);
      return this.#recordFile(work, "duplicate", { ...sameBytes, ...origin, ...validators });
    }
    return withDiskErrors(async () => {
      const path = await fileStore.availablePath(filePathFor(layout, work, kind, sha256), sha256);
      const arrival: DownloadedFile = { sha256, path, bytes, mediaType: MEDIA_TYPES[kind], ...origin, ...validators };
      // From here on the file is not lost: whoever finds this goes on with it.
      manifest.files.savePart({ place, work: work.id, file, validator: undefined, shelving: arrival });
      await fileStore.moveIntoPlace(file, path, sha256);
      return this.#recordFile(work, "ok", arrival);
    });
  }

  /** Into the manifest, and away with what else was begun for the work. */
  async #recordFile(
    { id }: ListedWork,
    reason: DoneReason,
    arrival: DownloadedFile,
  ): Promise<DownloadResult & { readonly kind: "arrived" }> {
    const { manifest, run } = this.#options;
    for (const { place, file } of manifest.files.partsOf(id)) {
      if (place !== arrival.place) await this.#deletePart(place, file);
    }
    manifest.finish(run, id, reason, arrival);
    return { kind: "arrived", reason, arrival };
  }

  async #reuseFile(
    { work, url, candidate, resolver }: DownloadRequest,
    { file, etag, lastModified }: KnownSource,
    reason: DoneReason,
    status: number | undefined,
  ): Promise<DownloadResult> {
    const { licence, version } = candidate;
    const origin = { place: urlHashOf(url), url: redactedUrl(url), resolver, licence, version };
    const arrived = await this.#recordFile(work, reason, { ...file, ...origin, etag, lastModified });
    return status === undefined ? arrived : { ...arrived, status };
  }

  async #deletePart(place: string, file: string): Promise<void> {
    const { manifest, fileStore } = this.#options;
    manifest.files.deletePart(place);
    await fileStore.deletePart(file);
  }
}

function resumed(fileStore: FileStore, file: string): Promise<PartFile> {
  return withDiskErrors(() => PartFile.resume(fileStore.partPath(file)));
}

/** What the disk refuses is nobody's fault out there, and the next file would fare no better. */
async function withDiskErrors<Value>(act: () => Promise<Value>): Promise<Value> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DownloadError) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new DownloadError(`a file cannot be written: ${code}`, { cause: error });
  }
}
