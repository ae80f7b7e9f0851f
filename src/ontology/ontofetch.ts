import { join } from "node:path";
import { DownloadError } from "../errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { FileLock } from "../files/file-lock.ts";
import type { Hub } from "../http/hub.ts";
import type { HubEvent, NetworkOptions } from "../http/hub-options.ts";
import type { Environment } from "../policy/environment.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { idsWithoutSource, planFromLock } from "./frozen-plan.ts";
import { type LockEntry, lockEntry, readLock, writeLock } from "./lockfile.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import { createOntologyHub, reloadOntologyHub } from "./ontology-hub.ts";
import { OntologyStore, type StoredVersion } from "./ontology-store.ts";
import { describeFailure, type PlanEntry, type PlanItem, Planner } from "./planner.ts";
import { Puller } from "./puller.ts";
import { appendRateUsage, RateUsageCounter } from "./rate-usage.ts";
import { RedirectFollower } from "./redirect-follower.ts";
import type { Source } from "./resolver.ts";

/** Options of `Ontofetch.open`. */
export interface OntofetchOptions {
  /** Environment variables: API keys, identities and `DOCSTOKG_*`. Usually `process.env`. */
  readonly env: Environment;
  /**
   * Network options of the hub, such as `connectTo`, `tls` and timeouts. `allow_private` of the settings replaces
   * `allowPrivate`.
   */
  readonly network?: NetworkOptions | undefined;
  /** The clock and the timers; tests pass `FakeTime`. @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** Aborts every request and every wait. `plan` and `pull` then reject with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Receives every event of the hub. @default no listener */
  readonly listener?: ((event: HubEvent) => void) | undefined;
  /** Called while a file is downloaded; `totalBytes` is undefined if the server does not announce the length. */
  readonly onBytes?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when an interrupted download continues; `bytes` is what was received before. */
  readonly onResume?: ((id: string, bytes: number, totalBytes: number | undefined) => void) | undefined;
  /** Called when the pull of an ontology waits for another process that pulls the same one. */
  readonly onWait?: ((id: string) => void) | undefined;
}

/** Options of `Ontofetch.pull`. */
export interface PullOptions {
  /** Accepts only the files whose hashes are in the lockfile; every other source fails. @default false */
  readonly isFrozen?: boolean | undefined;
  /**
   * Says that `sources` are all sources of `sources.yaml`. Entries of other ids then leave the lockfile, or fail with
   * `isFrozen`.
   * @default false
   */
  readonly isAll?: boolean | undefined;
  /** Called once for each source, as soon as its result is known. */
  readonly onResult?: ((result: PullResult) => void) | undefined;
}

/** The result of one source. */
export type PullResult =
  | {
      /** The id in `sources.yaml`. */
      readonly id: string;
      /**
       * `fetched`: downloaded and stored. `unchanged`: the server says the stored version is current. `shared`: another
       * process has just fetched or checked it. `kept`: with `isFrozen`, the store already has the locked file, and no
       * request was sent.
       */
      readonly outcome: "fetched" | "unchanged" | "shared" | "kept";
      /** The version that is now in the store. */
      readonly stored: StoredVersion;
      /** How many requests were sent for the file, redirects not counted. */
      readonly requests: number;
      /** Bytes of an earlier, interrupted download that were not sent again. */
      readonly resumedBytes: number;
    }
  | {
      /** The id in `sources.yaml`, or in the lockfile. */
      readonly id: string;
      readonly outcome: "failed";
      /** Why, in one line. */
      readonly message: string;
    };

/** An id cannot contain "+", so this name cannot be the lock of an ontology. */
const LOCKFILE_LOCK = "+lockfile";

/**
 * Plans and pulls the ontologies of `sources.yaml`. Call `close` at the end: it closes connections and writes the rate
 * usage that `ontofetch rl doctor` reads.
 */
export class Ontofetch {
  /** The settings it was opened with. */
  readonly settings: OntofetchSettings;
  /** The stored versions. */
  readonly store: OntologyStore;
  readonly #hub: Hub;
  readonly #usage: RateUsageCounter;
  readonly #options: OntofetchOptions;
  readonly #time: Time;
  readonly #follower: RedirectFollower;

  /** Use `Ontofetch.open`. */
  private constructor(settings: OntofetchSettings, options: OntofetchOptions, hub: Hub, usage: RateUsageCounter) {
    this.settings = settings;
    this.store = new OntologyStore(settings.store);
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#hub = hub;
    this.#usage = usage;
    this.#follower = new RedirectFollower(hub);
  }

  /**
   * Opens the hub, its cache and, with `sharedDir`, the shared store.
   * @throws ConfigError if a folder cannot be created.
   */
  static async open(settings: OntofetchSettings, options: OntofetchOptions): Promise<Ontofetch> {
    const { env, network, time, listener } = options;
    const usage = new RateUsageCounter();
    const listeners = listener === undefined ? [usage.listen] : [usage.listen, listener];
    const hub = await createOntologyHub(settings, { env, network, time, listeners });
    return new Ontofetch(settings, options, hub, usage);
  }

  /**
   * Asks the services which files a pull would fetch; downloads nothing. One item for each source, in the same order.
   * @param probes whether a HEAD request to each file asks for its size and validators. @default true
   */
  plan(sources: readonly Source[], probes = true): Promise<readonly PlanItem[]> {
    const { env, signal } = this.#options;
    const planner = new Planner({ hub: this.#hub, follower: this.#follower, env, time: this.#time, signal });
    return planner.plan(sources, { probes });
  }

  /**
   * Downloads, checks and stores the ontologies that are new or changed, then updates the lockfile. A failed source is
   * a result, not an error. After an abort the store stays valid, and the next pull resumes partial files.
   */
  async pull(sources: readonly Source[], options: PullOptions = {}): Promise<readonly PullResult[]> {
    const { isFrozen = false, isAll = false, onResult } = options;
    const { lockfile, check, maxFileBytes, parallel } = this.settings;
    const { onBytes, onResume, onWait, signal } = this.#options;
    const lock = await readLock(lockfile);
    const puller = new Puller({
      follower: this.#follower,
      store: this.store,
      time: this.#time,
      check,
      maxFileBytes,
      signal,
      onBytes,
      onResume,
      onWait,
    });
    const items = isFrozen ? planFromLock(sources, lock) : await this.plan(sources, false);
    const results = await runPool(items, parallel, async (item): Promise<PullResult> => {
      const result = await this.#pullOne(item, puller, isFrozen ? lock.get(item.source.id) : undefined);
      onResult?.(result);
      return result;
    });
    if (!isFrozen) {
      await this.#updateLockfile(sources, results, isAll);
      return results;
    }
    const unknownIds = isAll ? idsWithoutSource(lock, sources) : [];
    const refusals = unknownIds.map(
      (id): PullResult => ({ id, outcome: "failed", message: "in the lockfile, but no longer in sources.yaml" }),
    );
    for (const result of refusals) onResult?.(result);
    return [...results, ...refusals];
  }

  /**
   * Applies the rate limits of new settings and of the policy files to requests from now on. Sources, folders and checks
   * stay those that it was opened with.
   * @returns every limit that changed; empty when none did
   * @throws ConfigError, and changes nothing, when a file is invalid or `sharedDir` is another folder.
   */
  async reload(settings: OntofetchSettings): Promise<readonly PolicyChange[]> {
    return reloadOntologyHub(this.#hub, this.settings, settings, this.#options.env);
  }

  /**
   * Closes the hub and appends the rate usage of this run for `ontofetch rl doctor`.
   * @param command the name under which the usage is recorded, such as `pull`.
   */
  async close(command: string): Promise<void> {
    const { signal } = this.#options;
    await (signal?.aborted ? this.#hub.destroy(signal.reason) : this.#hub.close());
    const at = new Date(this.#time.wallMs()).toISOString();
    await appendRateUsage(rateUsageFile(this.settings), { at, pid: process.pid, command, keys: this.#usage.keys() });
  }

  async #pullOne(item: PlanItem, puller: Puller, locked: LockEntry | undefined): Promise<PullResult> {
    const { id } = item.source;
    if (item.kind === "refused") return { id, outcome: "failed", message: item.message };
    try {
      const kept = locked && (await this.#storedAsLocked(item, locked));
      if (kept !== undefined) return { id, outcome: "kept", stored: kept, requests: 0, resumedBytes: 0 };
      return { id, ...(await puller.pull(item, locked?.sha256)) };
    } catch (error) {
      this.#options.signal?.throwIfAborted();
      if (error instanceof DownloadError) return { id, outcome: "failed", message: error.message };
      return { id, outcome: "failed", message: describeFailure(error) };
    }
  }

  /** Hashes the file again, because the manifest does not notice damage on disk. */
  async #storedAsLocked({ source }: PlanEntry, { sha256 }: LockEntry): Promise<StoredVersion | undefined> {
    const stored = await this.store.findByHash(source.id, sha256);
    if (stored === undefined || (await hashFile(stored.path, this.#options.signal)) !== sha256) return undefined;
    return stored;
  }

  /** Reads the lockfile again under its lock, because another process may have added entries since. */
  async #updateLockfile(sources: readonly Source[], results: readonly PullResult[], isAll: boolean): Promise<void> {
    const { lockfile } = this.settings;
    await using _lock = await FileLock.acquire(this.store.lockPath(LOCKFILE_LOCK), { time: this.#time });
    const lock = new Map(await readLock(lockfile));
    if (isAll) for (const id of idsWithoutSource(lock, sources)) lock.delete(id);
    for (const result of results) {
      const source = sources.find(({ id }) => id === result.id);
      if (result.outcome === "failed" || source === undefined) continue;
      lock.set(result.id, lockEntry(source, result.stored.manifest));
    }
    if (lock.size > 0 || (await readLock(lockfile)).size > 0) await writeLock(lockfile, lock);
  }
}

/** Lies beside the shared limits, or in the store folder without them. */
export function rateUsageFile({ sharedDir, store }: Pick<OntofetchSettings, "sharedDir" | "store">): string {
  return join(sharedDir ?? join(store, ".ontofetch"), "ratelimits.jsonl");
}

/**
 * Runs `parallel` items at a time. After the first error no item is started; the error is thrown when the running ones
 * end.
 */
async function runPool<Item, Result>(
  items: readonly Item[],
  parallel: number,
  work: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results = new Array<Result>(items.length);
  const waiting = items.entries();
  const failures: unknown[] = [];
  await Promise.all(
    Array.from({ length: Math.min(parallel, items.length) }, async () => {
      for (const [index, item] of waiting) {
        if (failures.length > 0) return;
        try {
          results[index] = await work(item);
        } catch (error) {
          failures.push(error);
        }
      }
    }),
  );
  if (failures.length > 0) throw failures[0];
  return results;
}
