import { DownloadError } from "../../errors.ts";
import { withDiskErrors } from "../../files/disk-errors.ts";
import { dropBody } from "../../files/drop-body.ts";
import { sha256Of } from "../../files/file-hash.ts";
import { removePartialFile } from "../../files/partial-file.ts";
import { type DownloadResponse, downloadFile, type ResumableDownload } from "../../files/resumable-download.ts";
import type { ResumeRecordStore } from "../../files/resume-record.ts";
import type { MinSpeed } from "../../files/speed-check.ts";
import type { Hub } from "../../http/hub.ts";
import type { Time } from "../../time/time.ts";
import { challengeInFields } from "../challenge-page.ts";
import type { Cookies } from "../cookies.ts";
import type { AttemptRecord, ListedWork } from "../manifest/manifest.ts";
import type { DownloadedFile, KnownSource, PartialDownload, StoredFile } from "../manifest/manifest-files.ts";
import type { DoneReason } from "../reason.ts";
import { redactedUrl } from "../redacted-url.ts";
import type { Redirect } from "../resolver-query.ts";
import type { Candidate, ResolverResponse } from "../resolvers/resolver.ts";
import { plainHeaders, redirectTarget } from "../response-body.ts";
import {
  acceptFor,
  checkDownload,
  type FailedDownload,
  incompleteFailure,
  responseFailure,
  tooLargeFailure,
} from "./download-failure.ts";
import { ExclusiveActions } from "./exclusive-actions.ts";
import { type FileFlag, MEDIA_TYPES, type StoredKind } from "./file-check.ts";
import { readPageStart } from "./file-sample.ts";
import { filePathFor, type Layout } from "./layout.ts";
import { finishDownload, moveDownload, type RecordingOptions } from "./recovery.ts";

export interface DownloadOptions extends RecordingOptions {
  readonly hub: Pick<Hub, "request">;
  readonly cookies: Cookies;
  readonly layout: Layout;
  readonly maxBytes: number;
  /** How long a request may wait at the gate. If it would wait longer, the hub refuses it and it is queued again. */
  readonly maxWaitMs: number;
  /** A slower body is interrupted, and resumed later if its server allows it. */
  readonly minSpeed: MinSpeed;
  readonly time: Time;
}

/** One candidate of one work. */
export interface DownloadRequest {
  readonly work: ListedWork;
  readonly candidate: Candidate;
  readonly resolver: string;
  /** The URL of the candidate, or where redirects have led. */
  readonly url: string;
  readonly signal: AbortSignal;
  /** The kind of the step, and when it began, for the attempt that is recorded with the file. */
  readonly step: AttemptRecord["step"];
  readonly startedUs: number;
  /** See `DownloadedFile`. */
  readonly ofSeveral?: DownloadedFile["ofSeveral"];
}

export interface StoredDownload {
  readonly kind: "stored";
  readonly reason: DoneReason;
  readonly downloaded: DownloadedFile;
  /** What was recorded with the file. */
  readonly attempt: AttemptRecord;
}

export type DownloadResult =
  | StoredDownload
  | Redirect
  | (FailedDownload & {
      /** The HTML page that the server has sent instead of the file: it may link to the file. */
      readonly page?: ResolverResponse | undefined;
    });

type SavedDownload = ResumableDownload & { readonly kind: "saved" };

/** Time limit for a complete response. A slow server may need minutes for a large file. */
const DEADLINE_MS = 60 * 60_000;

/** Downloads the files of works: to a partial file first, then checked, moved to its path and recorded in the manifest. */
export class Downloads {
  readonly #options: DownloadOptions;
  /** Files with the same bytes are stored one after the other, to become one file. So are files with the same path. */
  readonly #storing = new ExclusiveActions();

  constructor(options: DownloadOptions) {
    this.#options = options;
  }

  /**
   * Sends one request, or stores the body of a response that was received already. When this resolves with "stored", the
   * file is in the manifest. Rejects with the refusal of the hub, with an error of the network, with the signal's reason,
   * or with a DownloadError if the disk cannot be written.
   */
  async fetch(request: DownloadRequest, received?: DownloadResponse): Promise<DownloadResult> {
    const { hub, manifest, fileStore, cookies, run, maxWaitMs, maxBytes, minSpeed } = this.#options;
    const { url, work, candidate, signal } = request;
    let unusedResponse = received;
    let setsCookies = false;
    const urlHash = sha256Of(url);
    const known = await manifest.files.knownDownload(urlHash, work.id);
    const source = known.source !== undefined && (await fileStore.has(known.source.file)) ? known.source : undefined;
    // Another work of this run has the same URL: no second request.
    if (source?.run === run) {
      if (received !== undefined) dropBody(received.body);
      return this.#reuseFile(request, source, "duplicate", undefined);
    }
    const part = await this.#partFor(known.part);
    const record = this.#resumeRecord(urlHash, work.id, part, known.part);
    const result = await downloadFile({
      path: fileStore.parts.pathOf(part),
      record,
      knownValidators: source,
      maxBytes,
      // An interrupted work goes back to the queue of its host, so that another host can use the worker.
      maxInterruptions: 1,
      mayBeFile: headers => challengeInFields(plainHeaders(headers)) === undefined,
      signal,
      minSpeed,
      send: async headers => {
        const response = unusedResponse;
        unusedResponse = undefined;
        if (response !== undefined) return response;
        const accept = acceptFor(candidate);
        const call = { role: "artifact", maxWaitMs, deadlineMs: DEADLINE_MS, signal } as const;
        const answered = await hub.request(url, {
          ...call,
          headers: { accept, ...cookies.fieldsFor(url), ...headers },
        });
        setsCookies = cookies.keep(url, answered.headers);
        return answered;
      },
    });
    switch (result.kind) {
      case "saved":
        return this.#checkAndStore(request, result, part, record, known.ofWork);
      case "unchanged":
        return source === undefined
          ? responseFailure({ ...result, beginning: "" })
          : this.#reuseFile(request, source, "not-modified", result.status);
      case "response":
        return redirectOrFailure(result, url, setsCookies);
      case "too-large":
        return tooLargeFailure(result, maxBytes);
      case "incomplete":
        return incompleteFailure(result);
    }
  }

  /** The name of the partial file. If another process has begun the file, this process continues in a copy of it. */
  async #partFor(begun: PartialDownload | undefined): Promise<string> {
    const { manifest, fileStore } = this.#options;
    const { files } = manifest;
    if (begun === undefined) return files.newPartName();
    if (files.isOwnPart(begun.file)) return begun.file;
    const part = files.newPartName();
    await withDiskErrors(fileStore.parts.pathOf(part), () => fileStore.parts.copy(begun.file, part));
    await files.savePart({ ...begun, file: part });
    await this.#onDisk(() => fileStore.parts.delete(begun.file));
    return part;
  }

  /** Keeps the resume record of a partial file in the manifest. A record that was read already is not read again. */
  #resumeRecord(urlHash: string, work: number, part: string, begun: PartialDownload | undefined): ResumeRecordStore {
    const { files } = this.#options.manifest;
    let isKept = begun !== undefined;
    return {
      load: async () => {
        const { validator, totalBytes } = begun ?? {};
        return validator === undefined ? undefined : { validator, totalBytes };
      },
      save: async record => {
        isKept = true;
        await files.savePart({ urlHash, work, file: part, ...record, destination: undefined });
      },
      delete: async () => {
        if (isKept) await files.deletePart(urlHash, work);
        isKept = false;
      },
    };
  }

  async #checkAndStore(
    request: DownloadRequest,
    saved: SavedDownload,
    part: string,
    record: ResumeRecordStore,
    filesOfWork: readonly StoredFile[],
  ): Promise<DownloadResult> {
    const { fileStore, layout } = this.#options;
    const { status, bytes } = saved;
    const path = fileStore.parts.pathOf(part);
    const check = await withDiskErrors(path, () => checkDownload(request.candidate, path, saved));
    if ("failure" in check) {
      const { reason } = check.failure;
      // A page that links to its files is no challenge, also if a form in it has a CAPTCHA. The reader of pages decides.
      const isPage = reason === "html-instead" || reason === "challenge-page";
      const page = isPage ? await withDiskErrors(path, () => readPageStart(path)) : undefined;
      await removePartialFile(path, record);
      const response = page && { url: request.url, status, headers: plainHeaders(saved.headers), body: page };
      return { kind: "failed", ...check.failure, status, bytes, ...(response && { page: response }) };
    }
    const { work, candidate } = request;
    const target = filePathFor(layout, work, check.fileKind, saved.sha256, candidate.role);
    const store = () => this.#store(request, saved, part, filesOfWork, check, target);
    return fileStore.isContentAddressed ? store() : this.#storing.run([saved.sha256, target], store);
  }

  async #store(
    request: DownloadRequest,
    { sha256, bytes, headers, status }: SavedDownload,
    part: string,
    filesOfWork: readonly StoredFile[],
    { fileKind: kind, flag }: { readonly fileKind: StoredKind; readonly flag: FileFlag | undefined },
    target: string,
  ): Promise<StoredDownload> {
    const { manifest, fileStore } = this.#options;
    const { work, url, candidate, resolver, ofSeveral } = request;
    const urlHash = sha256Of(url);
    const { licence, version, role } = candidate;
    const origin = { urlHash, url: redactedUrl(url), resolver, licence, version, role, ofSeveral };
    const { etag, "last-modified": lastModified } = plainHeaders(headers);
    const validators = { etag, lastModified };
    const stored = { sha256, bytes, mediaType: MEDIA_TYPES[kind], flag, ...origin, ...validators };
    const isArticle = (role ?? "article") === "article";
    const mayDisplace = isArticle && !fileStore.isContentAddressed;
    const others = filesOfWork.filter(other => other.sha256 !== sha256);
    const displaced = mayDisplace ? await this.#onDisk(() => this.#displacedBy(others, target)) : undefined;
    let replaces: string | undefined;
    for (;;) {
      const path = displaced === undefined ? await this.#onDisk(() => fileStore.availablePath(target, stored)) : target;
      const downloaded: DownloadedFile = { ...stored, path, displaced, replaces };
      // If the process dies from here on, `recoverParts` completes the move.
      const complete = { urlHash, work: work.id, file: part, validator: undefined, totalBytes: undefined };
      const sameBytes = await manifest.files.savePart({ ...complete, destination: downloaded });
      if (sameBytes !== undefined && (await this.#onDisk(() => fileStore.has(sameBytes)))) {
        await this.#onDisk(() => fileStore.parts.delete(part));
        return this.#recordFile(request, "duplicate", { ...sameBytes, ...origin, ...validators }, status);
      }
      if (sameBytes?.path !== replaces) {
        // The manifest has these bytes, but their file is missing. `Manifest.finish` must know which path is replaced.
        replaces = sameBytes?.path;
        continue;
      }
      if (await this.#onDisk(() => this.#move(part, downloaded, target)))
        return this.#recordFile(request, "ok", downloaded, status);
    }
  }

  /** For the file store alone: an error of the manifest must not name the output folder. */
  #onDisk<Value>(access: () => Promise<Value>): Promise<Value> {
    return withDiskErrors(this.#options.fileStore.name, access);
  }

  /** False if another process has used the path for another work meanwhile. Then another path is tried. */
  async #move(part: string, downloaded: DownloadedFile, target: string): Promise<boolean> {
    const { fileStore } = this.#options;
    const { path, displaced } = downloaded;
    try {
      await moveDownload(fileStore, part, downloaded);
      return true;
    } catch (error) {
      const isTaken = displaced === undefined && (await fileStore.availablePath(target, downloaded)) !== path;
      if (isTaken && error instanceof DownloadError) return false;
      throw error;
    }
  }

  /** The earlier file of the work, if it has this path: it gets a numbered path, so that the newest has no number. */
  async #displacedBy(filesOfWork: readonly StoredFile[], target: string): Promise<DownloadedFile["displaced"]> {
    const { fileStore } = this.#options;
    const earlier = filesOfWork.find(({ path }) => path === target);
    if (earlier === undefined || !(await fileStore.has(earlier))) return undefined;
    return { sha256: earlier.sha256, path: await fileStore.availablePath(target, earlier, 2) };
  }

  /** Writes the metadata file of the work, and records its file in the manifest. */
  async #recordFile(
    { work, step, resolver, url, startedUs }: DownloadRequest,
    reason: DoneReason,
    downloaded: DownloadedFile,
    status: number | undefined,
  ): Promise<StoredDownload> {
    const { time } = this.#options;
    const { sha256 } = downloaded;
    const bytes = status === 200 || status === 206 ? downloaded.bytes : 0;
    const elapsedMs = (time.monotonicUs() - startedUs) / 1000;
    const attempt: AttemptRecord = { step, resolver, url, status, reason, bytes, sha256, elapsedMs };
    const recorded = await finishDownload(this.#options, { id: work.id, described: work }, reason, downloaded, attempt);
    return { kind: "stored", reason, downloaded: recorded, attempt };
  }

  /** Records a stored file as the file of the work. No bytes were downloaded. */
  async #reuseFile(
    request: DownloadRequest,
    { file, etag, lastModified }: KnownSource,
    reason: DoneReason,
    status: number | undefined,
  ): Promise<DownloadResult> {
    const { url, candidate, resolver, ofSeveral } = request;
    const { licence, version, role } = candidate;
    const origin = { urlHash: sha256Of(url), url: redactedUrl(url), resolver, licence, version, role, ofSeveral };
    return this.#recordFile(request, reason, { ...file, ...origin, etag, lastModified }, status);
  }
}

function redirectOrFailure(
  result: ResumableDownload & { readonly kind: "response" },
  url: string,
  setsCookies: boolean,
): DownloadResult {
  const { status, headers } = result;
  const target = redirectTarget(status, plainHeaders(headers)["location"], url);
  if (target === undefined) return responseFailure(result);
  if ("problem" in target)
    return { kind: "failed", reason: "redirects", message: target.problem, status, bytes: 0, mayRetry: false };
  return { kind: "redirect", url: target.url, status, setsCookies };
}
