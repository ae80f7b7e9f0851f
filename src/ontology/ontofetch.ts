import { join } from "node:path";
import { DownloadError } from "../errors.ts";
import { hashFile } from "../files/file-hash.ts";
import { FileLock } from "../files/file-lock.ts";
import type { Hub } from "../http/hub.ts";
import type { HubEvent, NetworkOptions } from "../http/hub-options.ts";
import type { Environment } from "../policy/environment.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { idsWithoutSource, planFromLock } from "./frozen-plan.ts";
import { type LockEntry, lockEntry, readLock, writeLock } from "./lockfile.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import { createOntologyHub } from "./ontology-hub.ts";
import { OntologyStore, type StoredVersion } from "./ontology-store.ts";
import { describeFailure, type PlanEntry, type PlanItem, Planner } from "./planner.ts";
import { Puller, type PullerDeps } from "./puller.ts";
import { appendRateUsage, RateUsageCounter } from "./rate-usage.ts";
import { RedirectFollower } from "./redirect-follower.ts";
import type { Source } from "./resolver.ts";

export interface OntofetchOptions extends Pick<PullerDeps, "onBytes" | "onResume" | "onWait" | "signal"> {
  readonly env: Environment;
  readonly network?: NetworkOptions | undefined;
  readonly time?: Time | undefined;
  /** Receives every event of the hub. */
  readonly listener?: ((event: HubEvent) => void) | undefined;
}

export interface PullOptions {
  /** Exactly what the lockfile says, or a failure. @default false */
  readonly isFrozen?: boolean | undefined;
  /** All sources, so that the lockfile loses what is no source any more. @default false */
  readonly isAll?: boolean | undefined;
  readonly onResult?: ((result: PullResult) => void) | undefined;
}

/** What became of one source. */
export type PullResult =
  | {
      readonly id: string;
      /** `kept`: the store had exactly what the lockfile says, and nobody was asked. */
      readonly outcome: "fetched" | "unchanged" | "shared" | "kept";
      readonly stored: StoredVersion;
      readonly requests: number;
      readonly resumedBytes: number;
    }
  | { readonly id: string; readonly outcome: "failed"; readonly message: string };

/** No id, so that no ontology can have its name. */
const LOCKFILE_LOCK = "+lockfile";

/** Plans and pulls what `sources.yaml` wants. Close it: its connections and its tallies wait for that. */
export class Ontofetch {
  readonly settings: OntofetchSettings;
  readonly store: OntologyStore;
  readonly #hub: Hub;
  readonly #usage: RateUsageCounter;
  readonly #options: OntofetchOptions;
  readonly #time: Time;
  readonly #follower: RedirectFollower;

  private constructor(settings: OntofetchSettings, options: OntofetchOptions, hub: Hub, usage: RateUsageCounter) {
    this.settings = settings;
    this.store = new OntologyStore(settings.store);
    this.#options = options;
    this.#time = options.time ?? systemTime;
    this.#hub = hub;
    this.#usage = usage;
    this.#follower = new RedirectFollower(hub);
  }

  static async open(settings: OntofetchSettings, options: OntofetchOptions): Promise<Ontofetch> {
    const { env, network, time, listener } = options;
    const usage = new RateUsageCounter();
    const listeners = listener === undefined ? [usage.listen] : [usage.listen, listener];
    const hub = await createOntologyHub(settings, { env, network, time, listeners });
    return new Ontofetch(settings, options, hub, usage);
  }

  /** What would be fetched, and what cannot be. */
  plan(sources: readonly Source[], probes = true): Promise<readonly PlanItem[]> {
    const { env, signal } = this.#options;
    const planner = new Planner({ hub: this.#hub, follower: this.#follower, env, time: this.#time, signal });
    return planner.plan(sources, { probes });
  }

  /** Fetches what is new and locks what it came to. Failures are results; an abort rejects, and leaves nothing broken. */
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
      (id): PullResult => ({ id, outcome: "failed", message: "it is locked, and no source any more" }),
    );
    for (const result of refusals) onResult?.(result);
    return [...results, ...refusals];
  }

  /** Ends what is open, and notes for `rl doctor` how long anybody waited. */
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

  /** By its bytes, not by what a manifest says of them. */
  async #storedAsLocked({ source }: PlanEntry, { sha256 }: LockEntry): Promise<StoredVersion | undefined> {
    const stored = await this.store.findByHash(source.id, sha256);
    if (stored === undefined || (await hashFile(stored.path, this.#options.signal)) !== sha256) return undefined;
    return stored;
  }

  /** Reads it again under its lock: another process may have locked other ontologies meanwhile. */
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

/** Beside the limits it tells of. */
export function rateUsageFile({ sharedDir, store }: Pick<OntofetchSettings, "sharedDir" | "store">): string {
  return join(sharedDir ?? join(store, ".ontofetch"), "ratelimits.jsonl");
}

/** So many at a time; the first error ends it, once those under way have ended. */
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
