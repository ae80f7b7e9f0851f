import { copyFile, mkdir, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { HeaderFields } from "../core/cache/stored-fields.ts";
import { DownloadError, isDocstokgError } from "../errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { FileLock } from "../files/file-lock.ts";
import { removePartialFile } from "../files/partial-file.ts";
import { downloadFile, type ResumableDownload } from "../files/resumable-download.ts";
import { resumeRecordBeside } from "../files/resume-record.ts";
import { fieldLine } from "../http/headers.ts";
import type { Time } from "../time/time.ts";
import { type CheckDepth, inspectFile } from "./file-inspection.ts";
import { claimedFormat, targetFormatOf } from "./format.ts";
import { isSameSource, type LockEntry } from "./lockfile.ts";
import { announcedFields, buildManifest } from "./manifest-builder.ts";
import type { MirrorCopy } from "./mirrors.ts";
import type { OntologyStore, StoredVersion } from "./ontology-store.ts";
import { describeError, type PlanEntry } from "./planner.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import { releaseProblem } from "./release-check.ts";
import { bioportalRefusal } from "./resolvers/bioportal.ts";
import { unpackLayers } from "./unpacked-file.ts";
import { hasKnownImports, isOtherMember, isWanted } from "./wanted-version.ts";

export interface PullerDeps {
  readonly follower: RedirectFollower;
  readonly store: OntologyStore;
  readonly time: Time;
  readonly check: CheckDepth;
  readonly maxFileBytes: number;
  /** Whether the user accepts changed bytes under one version, and a release that has lost terms. */
  readonly isAccepted?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onBytes?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when an interrupted download continues. */
  readonly onResume?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when another process holds the lock of the ontology. */
  readonly onWait?: ((id: string) => void) | undefined;
}

export interface PullOutcome {
  /** `shared`: another process has just fetched or checked it. */
  readonly outcome: "fetched" | "unchanged" | "shared";
  readonly stored: StoredVersion;
  readonly requests: number;
  /** Bytes of an interrupted download that were not sent again. */
  readonly resumedBytes: number;
}

export interface PullRequest {
  /** Only a file with this hash is accepted. */
  readonly sha256?: string | undefined;
  /** Where to look, in this order. @default the URL of the entry */
  readonly copies?: readonly MirrorCopy[] | undefined;
  /** The entry of the lockfile before this pull. */
  readonly locked?: LockEntry | undefined;
}

interface FailedFetch {
  readonly problem: string;
  /** Whether another fetch would fail in the same way. */
  readonly isFinal: boolean;
}

/** A pull waits at most 5 minutes for an open circuit or a cooldown. */
const MAX_BREAKER_WAIT_MS = 300_000;
/** A file of the announced length can still be incomplete. It is fetched once more, from the beginning. */
const FETCHES_MAX = 2;

/** Downloads files, checks them, and adds valid ones to the store. */
export class Puller {
  readonly #deps: PullerDeps;
  /** When this run began. A version that another process has checked since then is not checked again. */
  readonly #startedAt: string;

  constructor(deps: PullerDeps) {
    this.#deps = deps;
    this.#startedAt = isoTime(deps.time);
  }

  /** Lets one process at a time fetch an ontology; the others then find its result. Waits until the lock is free. */
  lock(id: string): Promise<FileLock> {
    const { store, time, signal, onWait } = this.#deps;
    return FileLock.acquire(store.work.lockPath(id), { time, signal, onWait: () => onWait?.(id) });
  }

  /**
   * Returns when a complete and valid version is in the store, or throws a DownloadError. The caller has the `lock` of the
   * id.
   */
  async pull(entry: PlanEntry, request: PullRequest = {}): Promise<PullOutcome> {
    const { time, signal } = this.#deps;
    const { sha256, copies } = request;
    const current = await this.#current(entry, request.locked);
    const checkedAt = current?.manifest.checked_at ?? "";
    // A time in the future comes from a clock that was wrong, so it does not show that the version is fresh.
    const isFresh = current !== undefined && checkedAt >= this.#startedAt && checkedAt <= isoTime(time);
    if (isFresh && (sha256 === undefined || current.manifest.sha256 === sha256)) {
      return { outcome: "shared", stored: current, requests: 0, resumedBytes: 0 };
    }
    const problems: { readonly from: string; readonly message: string }[] = [];
    for (const copy of copies ?? [{ kind: "url", url: entry.url }]) {
      try {
        return await this.#pullCopy(entry, copy, request, current);
      } catch (error) {
        signal?.throwIfAborted();
        if (copies === undefined || copies.length === 1) throw error;
        problems.push({ from: copy.kind === "url" ? copy.url : copy.path, message: describeError(error) });
      }
    }
    const messages = new Set(problems.map(({ message }) => message));
    const [only = ""] = messages;
    throw new DownloadError(
      messages.size === 1 ? only : problems.map(({ from, message }) => `${from}: ${message}`).join("; "),
    );
  }

  async #pullCopy(
    entry: PlanEntry,
    copy: MirrorCopy,
    request: PullRequest,
    current: StoredVersion | undefined,
  ): Promise<PullOutcome> {
    for (let fetch = 1; ; fetch += 1) {
      const isConditional = request.sha256 === undefined && copy.kind === "url" && copy.url === entry.url;
      const pulled =
        copy.kind === "file"
          ? await this.#copy(entry, copy.path, request)
          : await this.#fetch(entry, copy.url, isConditional ? current : undefined, request);
      if ("outcome" in pulled) return pulled;
      if (pulled.isFinal || fetch >= FETCHES_MAX) throw new DownloadError(pulled.problem);
    }
  }

  /** Copies a file from a folder, with the same checks as for a download. */
  async #copy(entry: PlanEntry, from: string, request: PullRequest): Promise<PullOutcome | FailedFetch> {
    const { store, maxFileBytes, signal } = this.#deps;
    const path = store.work.copyPath(entry.source.id);
    await mkdir(dirname(path), { recursive: true });
    try {
      const { size: bytes } = await stat(from);
      if (bytes > maxFileBytes)
        return { problem: `file has ${bytes} bytes, limit is ${maxFileBytes} (max_file_mb)`, isFinal: true };
      await copyFile(from, path);
      const hash = (await hashFile(path, signal)) ?? "";
      const saved = {
        kind: "saved",
        status: 200,
        headers: {},
        bytes,
        sha256: hash,
        isFullLength: true,
        requests: 0,
        resumedBytes: 0,
      } as const;
      return await this.#checkAndStore(entry, saved, { path, finalUrl: entry.url, request });
    } finally {
      await rm(path, { force: true });
    }
  }

  /** The newest stored version of this URL that the source may use; its validators make the request conditional. */
  async #current({ source, url }: PlanEntry, locked: LockEntry | undefined): Promise<StoredVersion | undefined> {
    const { store } = this.#deps;
    const [newest] = (await store.versions(source.id)).filter(
      ({ manifest }) => manifest.url === url && isWanted(manifest, source, locked) && hasKnownImports(manifest, source),
    );
    return newest && store.findByHash(source.id, newest.manifest.sha256);
  }

  async #fetch(
    entry: PlanEntry,
    url: string,
    current: StoredVersion | undefined,
    request: PullRequest,
  ): Promise<PullOutcome | FailedFetch> {
    const { store, time, maxFileBytes, signal, onBytes, onResume, follower } = this.#deps;
    const { id } = entry.source;
    const path = store.work.partialPath(id);
    const record = resumeRecordBeside(path, url);
    let finalUrl = url;
    const download = await downloadFile({
      path,
      record,
      maxBytes: maxFileBytes,
      signal,
      knownValidators: current && {
        etag: current.manifest.etag ?? undefined,
        lastModified: current.manifest.last_modified ?? undefined,
      },
      onBytes: (bytes, totalBytes) => onBytes?.(id, bytes, totalBytes),
      onResume: (bytes, totalBytes) => onResume?.(id, bytes, totalBytes),
      send: async fields => {
        const { response, url: reached } = await follower.follow(url, {
          role: "artifact",
          service: entry.service,
          headers: { accept: entry.accept, ...fields },
          maxWaitMs: Number.POSITIVE_INFINITY,
          maxBreakerWaitMs: MAX_BREAKER_WAIT_MS,
          signal,
        });
        finalUrl = reached;
        return response;
      },
    });
    if (download.kind === "unchanged") {
      if (current === undefined)
        return { problem: "the server returned status 304, but no version is stored", isFinal: true };
      const changes = { ...announcedFields(entry, current.manifest), checked_at: isoTime(time) };
      return {
        outcome: "unchanged",
        stored: await store.updateManifest(current, changes),
        requests: 1,
        resumedBytes: 0,
      };
    }
    // An error of the hub keeps its own message.
    if (download.kind === "incomplete" && isDocstokgError(download.cause)) throw download.cause;
    if (download.kind !== "saved")
      return { problem: describeFailure(download, { ...entry, url }, maxFileBytes), isFinal: true };
    try {
      // Validators of another address say nothing about the URL of the entry, which later pulls ask for changes.
      const headers = url === entry.url ? download.headers : withoutValidators(download.headers);
      return await this.#checkAndStore(entry, { ...download, headers }, { path, finalUrl, request });
    } finally {
      await removePartialFile(path, record);
    }
  }

  async #checkAndStore(
    entry: PlanEntry,
    saved: ResumableDownload & { readonly kind: "saved" },
    {
      path,
      finalUrl,
      request: { sha256, locked },
    }: { readonly path: string; readonly finalUrl: string; readonly request: PullRequest },
  ): Promise<PullOutcome | FailedFetch> {
    const { store, check, maxFileBytes, isAccepted = false, signal, time } = this.#deps;
    const member = entry.source.extras["member"];
    const unpackedFile = await unpackLayers(path, saved, { maxBytes: maxFileBytes, member, signal });
    try {
      if (sha256 !== undefined && unpackedFile.sha256 !== sha256) {
        const problem = `sha256 differs from the lockfile: ${unpackedFile.sha256.slice(0, 12)}…, expected ${sha256.slice(0, 12)}…`;
        return { problem, isFinal: true };
      }
      const claim = claimedFormat(new URL(entry.url).pathname, fieldLine(saved.headers["content-type"]));
      const depth = entry.source.imports ? "full" : check;
      const found = await inspectFile(unpackedFile.path, depth, { claim, signal, base: entry.url });
      if (found.kind !== "valid")
        return { problem: `rejected: ${found.problem}`, isFinal: found.kind === "wrong-content" };
      const wanted = entry.source.targetFormats;
      if (wanted.length > 0 && !wanted.includes(targetFormatOf(found.format))) {
        return {
          problem: `rejected: format is ${found.format}, wanted ${wanted.join(", ")} (target_formats)`,
          isFinal: true,
        };
      }
      const manifest = buildManifest(entry, { saved, unpackedFile, found, finalUrl, now: isoTime(time) });
      const others = (await store.versions(manifest.id)).map(version => version.manifest);
      const sameUrl = others.filter(other => other.url === manifest.url && !isOtherMember(other, entry.source, locked));
      const lockedHash = locked !== undefined && isSameSource(locked, entry.source) ? locked.sha256 : undefined;
      const before = others.find(other => other.sha256 === lockedHash);
      const problem = releaseProblem(entry.source, manifest, sameUrl, sha256 !== undefined || isAccepted, before);
      if (problem !== undefined) return { problem, isFinal: true };
      const stored = await store.add(unpackedFile.path, manifest, signal);
      return { outcome: "fetched", stored, requests: saved.requests, resumedBytes: saved.resumedBytes };
    } finally {
      if (unpackedFile.path !== path) await rm(unpackedFile.path, { force: true });
    }
  }
}

/** Why a download did not save a file, in one line. */
function describeFailure(
  result: ResumableDownload & { readonly kind: "response" | "incomplete" | "too-large" },
  { source, service, url }: PlanEntry,
  maxBytes: number,
): string {
  const host = URL.parse(url)?.host ?? "the server";
  if (result.kind === "incomplete")
    return `download from ${host} failed after ${result.requests} request${result.requests === 1 ? "" : "s"}: ${result.message}`;
  if (result.kind === "too-large")
    return `file at ${host} has ${result.bytes ?? `more than ${maxBytes}`} bytes, limit is ${maxBytes} (max_file_mb)`;
  const { status, beginning } = result;
  const refusal = service === "bioportal" ? bioportalRefusal(status, source, url) : undefined;
  if (refusal !== undefined) return refusal.message;
  const line = beginning
    .replace(/<[^>]*>/g, " ")
    // Control characters from a server could change the terminal.
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const excerpt = line === "" ? "" : ` (${line.slice(0, 100)})`;
  return `${host} returned status ${status}${excerpt}`;
}

function withoutValidators({ etag: _etag, "last-modified": _modified, ...headers }: HeaderFields): HeaderFields {
  return headers;
}

function isoTime(time: Time): string {
  return new Date(time.wallMs()).toISOString();
}
