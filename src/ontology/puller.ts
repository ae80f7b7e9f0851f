import { rm } from "node:fs/promises";
import { DownloadError, isDocstokgError } from "../errors.ts";
import { FileLock } from "../files/file-lock.ts";
import { removePartialFile } from "../files/partial-file.ts";
import { downloadFile, type ResumableDownload } from "../files/resumable-download.ts";
import { resumeRecordBeside } from "../files/resume-record.ts";
import { fieldLine } from "../http/headers.ts";
import type { Time } from "../time/time.ts";
import { type CheckDepth, inspectFile } from "./file-inspection.ts";
import { claimedFormat, targetFormatOf } from "./format.ts";
import { buildManifest } from "./manifest-builder.ts";
import type { OntologyManifest } from "./ontology-manifest.ts";
import type { OntologyStore, StoredVersion } from "./ontology-store.ts";
import type { PlanEntry } from "./planner.ts";
import type { RedirectFollower } from "./redirect-follower.ts";
import { bioportalRefusal } from "./resolvers/bioportal.ts";
import { unpackLayers } from "./unpacked-file.ts";

export interface PullerDeps {
  readonly follower: RedirectFollower;
  readonly store: OntologyStore;
  readonly time: Time;
  readonly check: CheckDepth;
  readonly maxFileBytes: number;
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

/** A pull waits at most 5 minutes for an open circuit or a cooldown. */
const MAX_BREAKER_WAIT_MS = 300_000;
/** A file of the announced length can still be incomplete. It is fetched once more, from the beginning. */
const FETCHES_MAX = 2;

/** Downloads files, checks them, and adds valid ones to the store. */
export class Puller {
  readonly #deps: PullerDeps;
  /** When this run began. A version that another process has checked since then is not checked again. */
  readonly #since: string;

  constructor(deps: PullerDeps) {
    this.#deps = deps;
    this.#since = stamp(deps.time);
  }

  /**
   * Returns when a complete and valid version is in the store, or throws a DownloadError. With `sha256` only a file
   * with this hash is accepted. A lock lets one process at a time fetch an ontology; the others then find its result.
   */
  async pull(entry: PlanEntry, sha256?: string): Promise<PullOutcome> {
    const { store, time, signal, onWait } = this.#deps;
    const { id } = entry.source;
    await using _lock = await FileLock.acquire(store.lockPath(id), { time, signal, onWait: () => onWait?.(id) });
    const current = await this.#current(entry);
    const checkedAt = current?.manifest.checked_at ?? "";
    // A time in the future comes from a clock that was wrong, so it does not show that the version is fresh.
    const isFresh = current !== undefined && checkedAt >= this.#since && checkedAt <= stamp(time);
    if (isFresh && (sha256 === undefined || current.manifest.sha256 === sha256)) {
      return { outcome: "shared", stored: current, requests: 0, resumedBytes: 0 };
    }
    for (let fetch = 1; ; fetch += 1) {
      const pulled = await this.#fetch(entry, sha256 === undefined ? current : undefined, sha256);
      if ("outcome" in pulled) return pulled;
      if (pulled.isFinal || fetch >= FETCHES_MAX) throw new DownloadError(pulled.problem);
    }
  }

  /** The newest stored version of this URL in a wanted format; its validators make the request conditional. */
  async #current({ source, url }: PlanEntry): Promise<StoredVersion | undefined> {
    const { store } = this.#deps;
    const isWanted = ({ format }: OntologyManifest) =>
      source.targetFormats.length === 0 || source.targetFormats.includes(targetFormatOf(format));
    const [newest] = (await store.versions(source.id)).filter(
      ({ manifest }) => manifest.url === url && isWanted(manifest),
    );
    return newest && store.findByHash(source.id, newest.manifest.sha256);
  }

  async #fetch(
    entry: PlanEntry,
    current: StoredVersion | undefined,
    sha256: string | undefined,
  ): Promise<PullOutcome | { readonly problem: string; readonly isFinal: boolean }> {
    const { store, time, maxFileBytes, signal, onBytes, onResume, follower } = this.#deps;
    const { id } = entry.source;
    const path = store.partialPath(id);
    const record = resumeRecordBeside(path, entry.url);
    let finalUrl = entry.url;
    const saved = await downloadFile({
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
        const { response, url } = await follower.follow(entry.url, {
          role: "artifact",
          service: entry.service,
          headers: { accept: entry.accept, ...fields },
          maxWaitMs: Number.POSITIVE_INFINITY,
          maxBreakerWaitMs: MAX_BREAKER_WAIT_MS,
          signal,
        });
        finalUrl = url;
        return response;
      },
    });
    if (saved.kind === "unchanged") {
      if (current === undefined) return { problem: "the server returned 304, but no version is stored", isFinal: true };
      return {
        outcome: "unchanged",
        stored: await store.updateManifest(current, { checked_at: stamp(time) }),
        requests: 1,
        resumedBytes: 0,
      };
    }
    // An error of the hub keeps its own message.
    if (saved.kind === "incomplete" && isDocstokgError(saved.cause)) throw saved.cause;
    if (saved.kind !== "saved") return { problem: describeFailure(saved, entry, maxFileBytes), isFinal: true };
    try {
      return await this.#checkAndStore(entry, saved, { path, finalUrl, sha256 });
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
      sha256,
    }: { readonly path: string; readonly finalUrl: string; readonly sha256: string | undefined },
  ): Promise<PullOutcome | { readonly problem: string; readonly isFinal: boolean }> {
    const { store, check, maxFileBytes, signal, time } = this.#deps;
    const unpackedFile = await unpackLayers(path, saved, { maxBytes: maxFileBytes, signal });
    try {
      if (sha256 !== undefined && unpackedFile.sha256 !== sha256) {
        const problem = `sha256 differs from the lockfile: ${unpackedFile.sha256.slice(0, 12)}…, expected ${sha256.slice(0, 12)}…`;
        return { problem, isFinal: true };
      }
      const claim = claimedFormat(new URL(entry.url).pathname, fieldLine(saved.headers["content-type"]));
      const found = await inspectFile(unpackedFile.path, check, { claim, signal, base: entry.url });
      if (found.kind !== "valid")
        return { problem: `rejected: ${found.problem}`, isFinal: found.kind === "wrong-content" };
      const wanted = entry.source.targetFormats;
      if (wanted.length > 0 && !wanted.includes(targetFormatOf(found.format))) {
        return {
          problem: `rejected: format is ${found.format}, wanted ${wanted.join(", ")} (target_formats)`,
          isFinal: true,
        };
      }
      const manifest = buildManifest(entry, { saved, unpackedFile, found, finalUrl, now: stamp(time) });
      const stored = await store.add(unpackedFile.path, manifest);
      return { outcome: "fetched", stored, requests: saved.requests, resumedBytes: saved.resumedBytes };
    } finally {
      if (unpackedFile.path !== path) await rm(unpackedFile.path, { force: true });
    }
  }
}

function describeFailure(
  result: ResumableDownload & { readonly kind: "response" | "incomplete" | "too-large" },
  { source, service, url }: PlanEntry,
  maxBytes: number,
): string {
  const host = URL.parse(url)?.host ?? "the server";
  if (result.kind === "incomplete")
    return `download from ${host} was interrupted ${result.requests} times: ${result.message}`;
  if (result.kind === "too-large")
    return `file at ${host} has ${result.bytes ?? `more than ${maxBytes}`} bytes, limit is ${maxBytes} (max_file_mb)`;
  const { status, beginning } = result;
  const refusal = service === "bioportal" ? bioportalRefusal(status, source.id) : undefined;
  if (refusal !== undefined) return refusal.message;
  const line = beginning
    .replace(/<[^>]*>/g, " ")
    // Control characters from a server could change the terminal.
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim();
  const excerpt = line === "" ? "" : ` (${line.slice(0, 100)})`;
  return `${host} returned status ${status}${excerpt}`;
}

function stamp(time: Time): string {
  return new Date(time.wallMs()).toISOString();
}
