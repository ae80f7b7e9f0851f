import type { Time } from "../../time/time.ts";
import type { DoneReason, Reason } from "../reason.ts";
import type { DownloadedFile, ManifestFiles } from "./manifest-files.ts";
import type { ManifestQueue } from "./manifest-queue.ts";
import type { ManifestReports } from "./manifest-reports.ts";
import type { ManifestWorks } from "./manifest-works.ts";

export type { ListedWork } from "./manifest-works.ts";

import { SqliteManifest } from "./sqlite/sqlite-manifest.ts";

/** One request of a work, and its result. */
export interface AttemptRecord {
  readonly step: "ask" | "robots" | "fetch";
  readonly resolver: string;
  /** Stored without secrets: `redactedUrl`. */
  readonly url: string;
  readonly status?: number | undefined;
  readonly reason: Reason;
  readonly message?: string | undefined;
  readonly bytes?: number | undefined;
  readonly sha256?: string | undefined;
  readonly elapsedMs: number;
}

export type RunState = "running" | "ended" | "interrupted";

/** Keeps runs off a manifest until it is released, or until the process ends. */
export interface ManifestLock {
  release(): void;
}

/**
 * The works, attempts and files of any number of runs. Each operation is one transaction, so that the manifest is
 * consistent whenever a process dies. Created by `openManifest`; every backend passes test/harvest/manifest-contract.ts.
 */
export interface Manifest {
  /** The path or URL to print, without a password. */
  readonly name: string;
  readonly files: ManifestFiles;
  readonly works: ManifestWorks;
  readonly queue: ManifestQueue;
  readonly reports: ManifestReports;
  /** Undefined if a run uses the manifest. */
  tryLock(): Promise<ManifestLock | undefined>;
  /** @param command the command line, for `docstokg status` */
  beginRun(command: string): Promise<number>;
  endRun(run: number, state: Exclude<RunState, "running">): Promise<void>;
  /** Starts a transaction: the added works are kept by `commitList` or removed by `rollbackList` and `endRun`. */
  beginList(): Promise<void>;
  commitList(): Promise<void>;
  rollbackList(): Promise<void>;
  recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void>;
  /** Records in one transaction that the work is done, its file, and the source of the file. */
  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): Promise<void>;
  /**
   * @param progress kept for `docstokg retry`, which then continues there. @default none
   * @param keepsProgress keeps what the manifest has: the work is not in memory
   */
  fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    keepsProgress?: boolean,
  ): Promise<void>;
  /** An error of the backend, such as a full disk, as a DownloadError; any other error unchanged. */
  errorFrom(error: unknown): unknown;
  close(): Promise<void>;
}

/** Rejects with a ConfigError if the file is not a manifest; the file is not changed. */
export function openManifest(path: string, time: Time): Promise<Manifest> {
  return SqliteManifest.open(path, time);
}
