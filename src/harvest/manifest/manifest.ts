import { existsSync } from "node:fs";
import type { KeptRobots } from "../../http/robots/kept-robots.ts";
import type { Time } from "../../time/time.ts";
import type { DoneReason, Reason } from "../reason.ts";
import type { AttemptRecord } from "./attempt-record.ts";
import type { DownloadedFile, FinishedFile, ManifestFiles, PartialDownload } from "./manifest-files.ts";
import type { ManifestQueue, TakenWork } from "./manifest-queue.ts";
import type { ManifestReports } from "./manifest-reports.ts";
import type { ManifestTables } from "./manifest-tables.ts";
import type { WorkerStatus } from "./manifest-workers.ts";
import type { ManifestWorks } from "./manifest-works.ts";

export type { AttemptRecord } from "./attempt-record.ts";
export type { ListedWork } from "./manifest-works.ts";

import { isPostgresUrl } from "../../stores/postgres/postgres-store-url.ts";
import { parsePostgresUrl } from "./postgres/postgres-url.ts";
import { SqliteManifest } from "./sqlite/sqlite-manifest.ts";

/** The state of a work after a failure: see `Manifest.fail`. */
export type FailedState = "failed" | "done";

export type RunPhase = "running" | "ended" | "interrupted";

/** A run that workers can join. */
export interface UnfinishedRun {
  readonly id: number;
  /** As given to `beginRun`. */
  readonly settings: string;
}

/**
 * While a manifest file is locked, no run can use it. The lock ends when it is released or the process ends. A PostgreSQL
 * manifest is not locked: `tryLock` checks whether a run uses it now.
 */
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
  readonly robots: KeptRobots;
  readonly tables: ManifestTables;
  /** Undefined if a run uses the manifest. */
  tryLock(): Promise<ManifestLock | undefined>;
  /** Whether a run uses the manifest now. */
  isInUse(): Promise<boolean>;
  /**
   * Begins a run, as the process that adds its works.
   * @param command the command line, for `docstokg status`
   * @param settings what workers on other machines need. @default none
   * @param flags the flags with which `docstokg retry` continues the run, as JSON. @default none
   */
  beginRun(command: string, settings?: string, flags?: string): Promise<number>;
  /**
   * The oldest run with works to do, or whose works are still being listed; undefined if there is none. Also undefined
   * while a run without settings is active: other processes cannot join it, because its limits are not shared.
   */
  nextRun(): Promise<UnfinishedRun | undefined>;
  /** Works on a run that another process has begun. Rejects for a file, which one process uses at a time. */
  joinRun(run: number): Promise<void>;
  /** This process adds no more works to the run: other processes need not wait for more. */
  endListing(): Promise<void>;
  /** Gives back the works of this process. The run ends, unless works are pending or another process still adds works. */
  endRun(run: number, state: Exclude<RunPhase, "running">): Promise<void>;
  /** Starts a transaction: the added works are kept by `commitList` or removed by `rollbackList` and `endRun`. */
  beginList(): Promise<void>;
  commitList(): Promise<void>;
  rollbackList(): Promise<void>;
  recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void>;
  /**
   * Records in one transaction the file, its source, and that the work is done. A work with several files stays pending
   * until `complete`.
   * @param attempt the request that has given the file. @default none is recorded
   */
  finish(
    run: number,
    work: number,
    reason: DoneReason,
    downloaded: DownloadedFile,
    attempt?: AttemptRecord,
  ): Promise<FinishedFile>;
  /**
   * Keeps what the search for a copy has done so far: if this process dies, another one continues there.
   * @param queue the queue of its next step
   */
  saveProgress(work: number, queue: string, progress: string): Promise<void>;
  /**
   * A work with several files is done. Its partial files are forgotten, and deleted when the run is closed.
   * @param message which files could not be downloaded. @default none
   * @param inherited as in `fail`: undefined if the work is done, and otherwise the work, which stays taken. @default all
   */
  complete(work: number, reason: DoneReason, message?: string, inherited?: number): Promise<TakenWork | undefined>;
  /**
   * A work has found no file. Returns its state: a work that has a file of an earlier run stays `done`, with the reason why
   * the file could not be refreshed. Unless the reason is temporary, `TakenWork.inherited` is forgotten: a retry starts
   * from the beginning.
   * @param progress kept for `docstokg retry`, which then continues there. @default none
   * @param inherited the number of texts in `TakenWork.inherited` that the search for a copy knows. If the manifest has
   * more, the work does not fail and stays taken, and the result is what `ManifestQueue.take` would return. @default all
   */
  fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    inherited?: number,
  ): Promise<FailedState | TakenWork>;
  /**
   * Forgets the incomplete files of works that are done or merged. Then calls `recoverParts` with the partial files of
   * processes that died, and again whenever the works of a dead process are taken over. During the call the works belong
   * to this process.
   */
  recover(recoverParts: (parts: readonly PartialDownload[]) => Promise<void>): Promise<void>;
  /**
   * @param onChange called when other processes have added works or given works back, or a run has ended
   * @param onLost called with an error when this process must stop its work, because its lease has ended. @default none
   * @param statusOf what other processes see of this one. @default nothing done
   * @param onOverdue called with true when the lease could not be renewed in time: this process must send no request. Called
   * with false when it was renewed later; otherwise `onLost` is called. @default none
   */
  watch(
    onChange: () => void,
    onLost?: (error: unknown) => void,
    statusOf?: () => WorkerStatus,
    onOverdue?: (isOverdue: boolean) => void,
  ): void;
  /**
   * The limits of this process are shared in a store, where it has this id. To be called before `beginRun` or `joinRun`.
   * @param onDead called with the ids of processes that were found dead
   */
  shareLimits(storeId: string, onDead: (storeIds: readonly string[]) => void): void;
  /** Operations that wait for a server fail now. */
  stopWaiting(): void;
  /** An error of the backend, such as a full disk, as an error of docstokg with a message; any other error unchanged. */
  errorFrom(error: unknown): unknown;
  close(): Promise<void>;
}

/**
 * Opens or creates a manifest. Rejects with a ConfigError if it cannot be used, and with a StoreError if its server cannot
 * be reached. A file or database of another program is not changed.
 * @param manifest the path of a file, or a PostgreSQL URL, which may contain a password
 */
export async function openManifest(manifest: string, time: Time): Promise<Manifest> {
  return isPostgresUrl(manifest)
    ? (await postgresManifest()).open(manifest, time)
    : SqliteManifest.open(manifest, time);
}

/** Like `openManifest`, but undefined if there is no manifest. */
export async function findManifest(manifest: string, time: Time): Promise<Manifest | undefined> {
  if (isPostgresUrl(manifest)) return (await postgresManifest()).find(manifest, time);
  return existsSync(manifest) ? SqliteManifest.open(manifest, time) : undefined;
}

/** Like `findManifest`, for a command that only reads: its user need not be able to write a manifest file. */
export async function readManifest(manifest: string, time: Time): Promise<Manifest | undefined> {
  if (isPostgresUrl(manifest)) return findManifest(manifest, time);
  return existsSync(manifest) ? SqliteManifest.read(manifest, time) : undefined;
}

async function postgresManifest() {
  return (await import("./postgres/postgres-manifest.ts")).PostgresManifest;
}

/** The path or URL of a manifest, without a password, for output. */
export function manifestName(manifest: string): string {
  return isPostgresUrl(manifest) ? parsePostgresUrl(manifest).name : manifest;
}
