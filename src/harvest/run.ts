import { ConfigError, messageOf } from "../errors.ts";
import { isS3Url } from "../files/s3/s3-url.ts";
import type { Hub } from "../http/hub.ts";
import { internalsOf } from "../http/hub-internals.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { isRole } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { Cookies } from "./cookies.ts";
import { Downloads } from "./downloads/downloads.ts";
import type { FileKind } from "./downloads/file-check.ts";
import type { Layout } from "./downloads/layout.ts";
import type { MetadataFormat } from "./downloads/metadata-file.ts";
import { recoverParts, removeAbandonedParts } from "./downloads/recovery.ts";
import { learnedYields } from "./estimate/learned-yields.ts";
import { ListEstimator } from "./estimate/list-estimator.ts";
import { COLLECTED_FORMATS } from "./file-collection.ts";
import { type Manifest, type ManifestLock, openManifest } from "./manifest/manifest.ts";
import type { StoredFile } from "./manifest/manifest-files.ts";
import type { AddOptions, ListedWorks } from "./manifest/manifest-works.ts";
import { Pipeline, type PipelineOptions } from "./pipeline.ts";
import type { Reason } from "./reason.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { RobotsGuard } from "./robots-guard.ts";
import { SecretUrls } from "./secret-urls.ts";
import type { FileStorage } from "./storage/file-storage.ts";
import { type FileStore, fileStoreFor } from "./storage/file-store.ts";
import type { Work } from "./work.ts";
import type { WorkFilter } from "./work-filter.ts";
import { shapeOf } from "./work-shape.ts";

export interface RunOptions extends Pick<PipelineOptions, "onSettled" | "onAttempt" | "onDeferred"> {
  readonly hub: Pick<Hub, "request">;
  readonly time: Time;
  /** Output folder of the files, or `s3://bucket/prefix`. */
  readonly folder: string;
  /** Stores the finished files; partial files are in `folder`. @default the folder does */
  readonly storage?: FileStorage | undefined;
  /** Path of the manifest file, or a PostgreSQL URL. */
  readonly manifest: string;
  /** Id of the run of a PostgreSQL manifest to take part in. @default a new run */
  readonly joinedRun?: number | undefined;
  /** Settings for the processes that join the run, stored in a PostgreSQL manifest. @default no process can join */
  readonly sharedSettings?: string | undefined;
  /** The command line, recorded in the manifest. */
  readonly command: string;
  /** The flags with which `docstokg retry` continues the run, recorded in the manifest. @default none */
  readonly flags?: string | undefined;
  /** The resolvers that can be queried about a work, the best first. */
  readonly order: (work: Work) => readonly Resolver[];
  /** All enabled resolvers. */
  readonly resolvers: readonly Resolver[];
  /** @default flat; in S3 and in a `storage` content-addressed, the only one there */
  readonly layout?: Layout | undefined;
  /** The preferred one first, or all files of a work. @default pdf, then xml */
  readonly formats?: readonly FileKind[] | "all" | undefined;
  /** Requests in flight at a time. @default 32 */
  readonly workers?: number | undefined;
  /** Works in memory at a time. @default 2000 */
  readonly maxOpen?: number | undefined;
  /** Largest file that is downloaded. @default 500 MiB */
  readonly maxBytes?: number | undefined;
  /**
   * How long a work waits for open circuits when it has nothing else to try. The run waits as long for spent quotas when it
   * has nothing else to do. @default 15 minutes
   */
  readonly maxBreakerWaitMs?: number | undefined;
  /** Works that are wanted. @default all */
  readonly filter?: WorkFilter | undefined;
  /** Writes the metadata of each work beside its file. @default not written */
  readonly metadata?: MetadataFormat | undefined;
  /** Bytes per second over 30 s; a slower body is interrupted. @default 1024 */
  readonly minBytesPerSecond?: number | undefined;
  /** The limits that the hub enforces, for `timeLeftMs`. @default no estimate */
  readonly limits?: LimitPolicies | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

export const RUN_DEFAULTS = {
  layout: "flat",
  formats: ["pdf", "xml"],
  workers: 32,
  maxOpen: 2000,
  maxBytes: 500 * 2 ** 20,
  // The longest cooldown that a server can set (`retry_after_cap_s`).
  maxBreakerWaitMs: 15 * 60_000,
  minBytesPerSecond: 1024,
} as const satisfies Partial<RunOptions>;

/** A request that would wait longer at the gate is queued again, so that another host can use its worker. */
const MAX_WAIT_MS = 100;
/** The period over which the speed of a body is measured: a stalled connection may recover. */
const SPEED_PERIOD_MS = 30_000;
const WORKS_PER_TRANSACTION = 500;
const SHAPES_MAX = 5000;
const QUOTA_REASONS = ["rate-limited"] as const;

/** One run: downloads the files of works and records them in a manifest. Created by `openRun`. */
export class HarvestRun {
  readonly id: number;
  readonly manifest: Manifest;
  readonly pipeline: Pipeline;
  /** Number of works whose file a killed run had received, and this run has moved to its path. */
  readonly recovered: number;
  readonly #fileStore: FileStore;
  readonly #secretUrls: SecretUrls;
  readonly #estimator: ListEstimator | undefined;
  readonly #queueByShape = new Map<string, string>();
  readonly #release: () => void;

  constructor(parts: {
    readonly id: number;
    readonly manifest: Manifest;
    readonly pipeline: Pipeline;
    readonly recovered: number;
    readonly fileStore: FileStore;
    readonly secretUrls: SecretUrls;
    readonly estimator: ListEstimator | undefined;
    readonly release: () => void;
  }) {
    this.id = parts.id;
    this.manifest = parts.manifest;
    this.pipeline = parts.pipeline;
    this.recovered = parts.recovered;
    this.#fileStore = parts.fileStore;
    this.#secretUrls = parts.secretUrls;
    this.#estimator = parts.estimator;
    this.#release = parts.release;
  }

  /**
   * Adds works to the manifest. Works whose file is present are skipped; with `isRefresh` they are revalidated. Works that
   * have failed are skipped; with `isRetry` they are tried again.
   */
  async addWorks(
    works: readonly Work[],
    { isRefresh, isRetry }: Pick<AddOptions, "isRefresh" | "isRetry"> = {},
  ): Promise<ListedWorks> {
    const failedIds: number[] = [];
    const counts = { pending: 0, present: 0, failed: 0, failedIds };
    const isPresent = (file: StoredFile) => this.#fileStore.isPresent(file);
    const queueOf = (work: Work) => {
      const queue = this.#firstQueue(work);
      this.#estimator?.add(work, queue);
      return queue;
    };
    for (let from = 0; from < works.length; from += WORKS_PER_TRANSACTION) {
      const some = works.slice(from, from + WORKS_PER_TRANSACTION).map(work => this.#secretUrls.hidden(work));
      const added = await this.manifest.works.add(this.id, some, { isPresent, isRefresh, isRetry, queueOf });
      counts.pending += added.pending;
      counts.present += added.present;
      counts.failed += added.failed;
      failedIds.push(...added.failedIds);
      this.pipeline.worksAdded(added.queues);
    }
    return counts;
  }

  /**
   * Adds the unfinished works of earlier runs, and failed works. Returns their number. Works that failed because a quota
   * was spent continue where they stopped.
   * @param failed works that failed for this reason, or for any, start again. @default none
   */
  async addUnfinished(failed?: { readonly reason?: Reason | undefined }): Promise<number> {
    const { works } = this.manifest;
    const { reason } = failed ?? {};
    const isAll = failed !== undefined && reason === undefined;
    const continued = QUOTA_REASONS.filter(each => each !== reason);
    const unfinished = await works.addUnfinished(this.id, isAll ? "all" : continued, !isAll);
    const restarted = reason === undefined ? 0 : await works.addFailed(this.id, reason);
    this.pipeline.worksAdded();
    return unfinished + restarted;
  }

  /** Adds the failed works of a reason while the run is in progress. Returns their number. */
  async addFailed(reason: Reason): Promise<number> {
    const count = await this.manifest.works.addFailed(this.id, reason);
    if (count > 0) this.pipeline.worksAdded();
    return count;
  }

  /** The caller will add no more works. */
  async inputEnded(): Promise<void> {
    await this.manifest.endListing();
    this.pipeline.inputEnded();
  }

  /** The absolute path or URL of a file of the manifest. */
  locationOf(path: string): string {
    return this.#fileStore.locationOf(path);
  }

  /** Aborts requests and uploads in flight, and operations that wait for the server of the manifest. */
  stop(): void {
    this.pipeline.stop();
    this.#fileStore.stop();
    this.manifest.stopWaiting();
  }

  /** Works of one shape start at the same host. If that is wrong for a work, it only moves to another queue later. */
  #firstQueue(work: Work): string {
    const shape = shapeOf(work);
    const known = this.#queueByShape.get(shape);
    if (known !== undefined) return known;
    if (this.#queueByShape.size >= SHAPES_MAX) this.#queueByShape.clear();
    const queue = this.pipeline.queueOf(work);
    this.#queueByShape.set(shape, queue);
    return queue;
  }

  /** How long the limits take for the works that are not settled; undefined if `limits` was not given. */
  get timeLeftMs(): number | undefined {
    return this.#estimator?.leftMs(this.pipeline.queues());
  }

  /**
   * Closes and unlocks the manifest. Throws a DownloadError if the end of the run cannot be recorded, or if the manifest
   * cannot be closed; it is unlocked in every case.
   */
  async close(state: "ended" | "interrupted"): Promise<void> {
    const errors: unknown[] = [];
    try {
      await this.manifest.endRun(this.id, state);
    } catch (error) {
      // The next run marks this one as interrupted.
      if (state === "ended") errors.push(error);
    }
    await this.#removeAbandonedParts();
    try {
      await this.manifest.close();
    } catch (error) {
      errors.push(error);
    } finally {
      this.#release();
      this.#fileStore.close();
    }
    if (errors.length > 0) throw this.manifest.errorFrom(errors[0]);
  }

  /** A worker that has lost its lease may have begun files after another worker had taken over its works. */
  async #removeAbandonedParts(): Promise<void> {
    try {
      await removeAbandonedParts(this.manifest, this.#fileStore);
    } catch {
      // The manifest or the folder cannot be reached: the next worker removes the files.
    }
  }
}

/** Rejects with a ConfigError if the manifest cannot be used or another process holds it. */
export async function openRun(options: RunOptions): Promise<HarvestRun> {
  const { hub, time, folder, command, resolvers } = options;
  const manifest = await openManifest(options.manifest, time);
  let lock: ManifestLock | undefined;
  let fileStore: FileStore | undefined;
  try {
    // The processes of a shared run share its limits. Any other run must be the only one that uses the manifest.
    const isShared = options.joinedRun !== undefined || options.sharedSettings !== undefined;
    if (!isShared) lock = await lockManifest(manifest);
    const release = () => lock?.release();
    fileStore = await fileStoreFor(folder, manifest.name, time, options.storage);
    await prepareFileStore(fileStore);
    const internals = internalsOf(hub);
    if (internals?.processId !== undefined)
      manifest.shareLimits(internals.processId, storeIds => internals.processesEnded(storeIds));
    const run = options.joinedRun ?? (await manifest.beginRun(command, options.sharedSettings, options.flags));
    if (options.joinedRun !== undefined) await manifest.joinRun(run);
    const settings = { ...settingsFor(options), run, manifest };
    const cookies = new Cookies(time);
    const metadata = options.metadata && { format: options.metadata, layout: settings.layout };
    const downloads = new Downloads({ ...settings, cookies, metadata, hub, fileStore, time });
    let recovered = 0;
    const store = fileStore;
    await manifest.recover(async parts => {
      recovered += await recoverParts(parts, { manifest, fileStore: store, run, metadata });
    });
    const resolverNamed = (name: string) => resolvers.find(resolver => resolver.name === name);
    const secretUrls = new SecretUrls();
    const settled = { done: 0, failed: 0, bytes: 0 };
    const pipeline = new Pipeline({
      ...settings,
      isFree: (host, role) => isRole(role) && internals?.isFree(host, role) === true,
      retryMs: ({ host, role }) => (isRole(role) ? internals?.retryMs(host, role) : undefined),
      onSettled: (work, state, reason, bytes) => {
        settled[state === "failed" ? "failed" : "done"] += 1;
        settled.bytes += reason === "ok" ? bytes : 0;
        options.onSettled?.(work, state, reason, bytes);
      },
      isPresent: file => store.isPresent(file),
      secretUrls,
      filter: options.filter ?? {},
      resolvers,
      hub,
      time,
      downloads,
      cookies,
      robots: new RobotsGuard({ ...settings, hub, time, kept: manifest.robots }),
      pageReader: resolverNamed("landing_page"),
      archive: resolverNamed("wayback"),
    });
    internals?.onLimitsEased(() => pipeline.limitsEased());
    internals?.keepRobots(manifest.robots, host => pipeline.robotsRead(host));
    manifest.watch(
      () => pipeline.worksChanged(),
      error => pipeline.abort(error),
      () => ({ ...settled, inFlight: pipeline.inFlight }),
      isOverdue => pipeline.setOverdue(isOverdue),
    );
    return new HarvestRun({
      id: run,
      manifest,
      pipeline,
      recovered,
      fileStore,
      secretUrls,
      estimator:
        options.limits && (await estimatorFor(options.limits, manifest, options.order, settings.maxBreakerWaitMs)),
      release,
    });
  } catch (error) {
    // The first error is the cause: one of `close` must not replace it.
    await manifest.close().catch(() => undefined);
    lock?.release();
    fileStore?.close();
    throw manifest.errorFrom(error);
  }
}

/** The settings that the pipeline and the downloads share. */
function settingsFor(options: RunOptions) {
  const { time, random = Math.random, minBytesPerSecond = RUN_DEFAULTS.minBytesPerSecond } = options;
  const minBytes = (minBytesPerSecond * SPEED_PERIOD_MS) / 1000;
  return {
    ...RUN_DEFAULTS,
    ...withoutUndefined(options),
    layout: layoutFor(options),
    formats: options.formats === "all" ? COLLECTED_FORMATS : (options.formats ?? RUN_DEFAULTS.formats),
    collectsAll: options.formats === "all",
    minSpeed: { bytes: minBytes, periodMs: SPEED_PERIOD_MS, time },
    maxWaitMs: MAX_WAIT_MS,
    random,
  };
}

/** With S3 or a `storage` the callers have refused any layout but `content-addressed`. */
function layoutFor({ folder, layout, storage }: RunOptions): Layout {
  const isContentAddressed = storage !== undefined || isS3Url(folder);
  return layout ?? (isContentAddressed ? "content-addressed" : RUN_DEFAULTS.layout);
}

async function lockManifest(manifest: Manifest): Promise<ManifestLock> {
  const lock = await manifest.tryLock();
  if (lock !== undefined) return lock;
  const message = `another docstokg run uses the manifest ${manifest.name}; wait until it ends or choose another with --manifest`;
  throw new ConfigError([{ where: "--manifest", path: "", message }]);
}

async function estimatorFor(
  limits: LimitPolicies,
  manifest: Manifest,
  order: RunOptions["order"],
  maxBreakerWaitMs: number,
): Promise<ListEstimator> {
  const yields = learnedYields(await manifest.reports.resolverCounts());
  return new ListEstimator({ limits, order, yields, maxBreakerWaitMs });
}

async function prepareFileStore(fileStore: FileStore): Promise<void> {
  try {
    await fileStore.prepare();
  } catch (error) {
    const message = `cannot use ${fileStore.name} for files: ${messageOf(error)}`;
    throw new ConfigError([{ where: "--out", path: "", message }], { cause: error });
  }
}

/** An undefined member would replace a default. */
function withoutUndefined<Options extends object>(
  options: Options,
): { [Key in keyof Options]: Exclude<Options[Key], undefined> } {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [Key in keyof Options]: Exclude<Options[Key], undefined> };
}
