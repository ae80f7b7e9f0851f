import { join } from "node:path";
import { quote, shownValue } from "../core/text/quote.ts";
import { createHub } from "../http/create-hub.ts";
import { systemTime } from "../time/system-time.ts";
import { checkHarvestOptions, type HarvestOptions } from "./harvest-options.ts";
import { identify } from "./identifiers/identifiers.ts";
import type { WorkRecord } from "./manifest/manifest-reports.ts";
import type { SettledState } from "./open-works.ts";
import { isReason, mainReason, type Reason } from "./reason.ts";
import { missingVariables, orderFor, RESOLVERS } from "./resolvers/order.ts";
import { type HarvestRun, openRun } from "./run.ts";
import type { Work, WorkIds, WorkMetadata } from "./work.ts";

/** A stored file of a work. */
export interface HarvestedFile {
  /** Absolute path, the `s3://` URL, or what `locationOf` of the option `storage` returns. */
  readonly path: string;
  /** SHA-256 as lower-case hex. */
  readonly sha256: string;
  /** Size. */
  readonly bytes: number;
  /** `application/pdf`, `application/xml` or `text/html`; sources and supplements may have others. */
  readonly mediaType: string;
  /** `article`, `source` or `supplement`. */
  readonly role: string;
}

/** The result of one work. */
export interface HarvestResult {
  /** The key of the work in the manifest: `doi:10.1234/abc`. */
  readonly key: string;
  /** `merged` if the list has the same work under another identifier, which has a result of its own. */
  readonly state: "done" | "failed" | "merged";
  /** The result code; docs/guides/run.md explains each. */
  readonly reason: Reason;
  /** All identifiers that services know. */
  readonly ids: WorkIds;
  /** What services know about the work. */
  readonly metadata: WorkMetadata;
  /** Empty if no file was stored. */
  readonly files: readonly HarvestedFile[];
}

interface SettledResult {
  readonly state: SettledState;
  readonly reason: Reason;
}

interface SettledWork {
  readonly id: number;
  /** Undefined if an earlier harvest has settled the work: the manifest has its result. */
  readonly result: SettledResult | undefined;
}

const WORKS_PER_ADD = 200;

/**
 * Downloads the files of works and yields a result for each, in the order in which they are settled. A work that
 * the manifest has as done, and whose file is present, yields nothing. One that it has as failed yields that failure,
 * unless `retryFailed` is set. Leaving the loop ends the harvest. Works that are
 * done stay done. Results that were not read are in the manifest (`docstokg export`).
 * @param works identifiers in any spelling that `identify` reads, or works
 * @throws TypeError for an item that is neither an identifier nor a work. ConfigError for an invalid option, or if the
 * folder or the manifest cannot be used. DownloadError if the disk is full.
 */
export async function* harvest(
  works: Iterable<Work | string> | AsyncIterable<Work | string>,
  options: HarvestOptions,
): AsyncGenerator<HarvestResult, void, undefined> {
  checkHarvestOptions(options);
  const { folder, signal, time = systemTime } = options;
  const { manifest = join(folder, "manifest.sqlite") } = options;
  const hub = options.hub ?? (await createHub({ mailto: options.mailto, retry: false }));
  const resolvers =
    options.resolvers ??
    RESOLVERS.filter(resolver => missingVariables(resolver, { env: process.env, mailto: options.mailto }).length === 0);
  // Only id, state and reason of a work are kept for a caller that reads slowly; the manifest has the rest.
  let settled: SettledWork[] = [];
  let wake = Promise.withResolvers<void>();
  try {
    const run = await openRun({
      ...{ folder, manifest, hub, time, resolvers, command: "harvest", storage: options.storage },
      ...{ formats: options.formats, layout: options.layout, filter: options.filter, metadata: options.metadata },
      ...{ workers: options.workers, maxBytes: options.maxBytes, maxBreakerWaitMs: options.patienceMs },
      order: options.resolvers === undefined ? work => orderFor(work, resolvers) : () => resolvers,
      onSettled: ({ id }, state, reason) => {
        settled.push({ id, result: { state, reason } });
        wake.resolve();
      },
    });
    let endState: "ended" | "interrupted" = "interrupted";
    const stopping = new AbortController();
    const stop = () => {
      stopping.abort();
      run.stop();
    };
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const onFailedBefore = (ids: readonly number[]) => {
      for (const id of ids) settled.push({ id, result: undefined });
      wake.resolve();
    };
    const isRetry = options.retryFailed === true;
    const listing = addAll(run, works, { isRetry, onFailedBefore, signal: stopping.signal });
    try {
      let isOver = false;
      const running = run.pipeline.run().catch(error => {
        throw run.manifest.errorFrom(error);
      });
      const ended = Promise.all([listing, running]).finally(() => {
        isOver = true;
        wake.resolve();
      });
      // Rejections are thrown below, after the results that came before them.
      ended.catch(() => undefined);
      for (;;) {
        const batch = settled;
        settled = [];
        for (const { id, result } of batch) {
          const record = await run.manifest.reports.workRecord(id);
          yield resultOf(record, result ?? storedResult(record), run);
        }
        if (batch.length > 0) continue;
        if (isOver) break;
        await wake.promise;
        wake = Promise.withResolvers<void>();
      }
      await ended;
      if (signal?.aborted !== true) endState = "ended";
    } finally {
      signal?.removeEventListener("abort", stop);
      if (endState === "interrupted") {
        stop();
        await run.pipeline.run().catch(() => undefined);
        await listing.catch(() => undefined);
      }
      await run.close(endState);
    }
  } finally {
    if (options.hub === undefined) await hub.destroy();
  }
}

interface Listing {
  readonly isRetry: boolean;
  /** Called with the row ids of works that have failed in an earlier harvest and are not tried again. */
  readonly onFailedBefore: (ids: readonly number[]) => void;
  readonly signal: AbortSignal;
}

async function addAll(
  run: HarvestRun,
  works: Iterable<Work | string> | AsyncIterable<Work | string>,
  { isRetry, onFailedBefore, signal }: Listing,
): Promise<void> {
  let batch: Work[] = [];
  const addBatch = async () => onFailedBefore((await run.addWorks(batch, { isRetry })).failedIds);
  try {
    if (typeof works === "string") throw new TypeError(`works: expected a list, found a text: pass [${quote(works)}]`);
    for await (const item of itemsUntil(signal, works)) {
      batch.push(workFrom(item));
      if (batch.length < WORKS_PER_ADD) continue;
      await addBatch();
      batch = [];
    }
    if (batch.length > 0 && !signal.aborted) await addBatch();
  } catch (error) {
    run.pipeline.drain();
    throw error;
  } finally {
    await run.inputEnded();
  }
}

/** Yields the items of the source. If the signal is aborted, it ends without the next item and closes the source. */
async function* itemsUntil<Item>(
  signal: AbortSignal,
  source: Iterable<Item> | AsyncIterable<Item>,
): AsyncGenerator<Item, void, undefined> {
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]();
  let isDone = false;
  try {
    while (!signal.aborted) {
      const next = await nextUntil(signal, iterator);
      isDone = next?.done === true;
      if (next === undefined || next.done) return;
      yield next.value;
    }
  } finally {
    // Not awaited: an asynchronous generator is closed only after its next item.
    if (!isDone) (async () => iterator.return?.())().catch(() => undefined);
  }
}

/** Undefined if the signal is aborted first. */
function nextUntil<Item>(
  signal: AbortSignal,
  iterator: Iterator<Item> | AsyncIterator<Item>,
): Promise<IteratorResult<Item> | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<IteratorResult<Item> | undefined>();
  const onAbort = () => resolve(undefined);
  signal.addEventListener("abort", onAbort, { once: true });
  (async () => iterator.next())().then(resolve, reject);
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

function workFrom(item: Work | string): Work {
  if (typeof item !== "string") {
    if (isWork(item)) return item;
    throw new TypeError(`works: expected an identifier or a work with key and ids, found ${shownValue(item)}`);
  }
  const named = identify(item);
  if ("work" in named) return named.work;
  throw new TypeError(named.message);
}

/** Programs in JavaScript may pass anything. */
function isWork(item: unknown): item is Work {
  if (!isObject(item) || typeof item["key"] !== "string") return false;
  const { ids, metadata = {} } = item;
  const isId = (id: unknown) => id === undefined || typeof id === "string";
  return isObject(ids) && Object.values(ids).every(isId) && isObject(metadata);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The result of a work that an earlier harvest has settled. Meanwhile it may have been merged into another one. */
function storedResult({ reason = "" }: WorkRecord): SettledResult {
  return { state: reason === "merged" ? "merged" : "failed", reason: isReason(reason) ? reason : mainReason([]) };
}

function resultOf(record: WorkRecord, { state, reason }: SettledResult, run: HarvestRun): HarvestResult {
  const { key, ids, metadata } = record;
  const files = record.files.map(({ path, sha256, bytes, mediaType, role }) => ({
    ...{ path: run.locationOf(path), sha256, bytes, mediaType, role },
  }));
  return { key, state, reason, ids, metadata, files: state === "done" ? files : [] };
}
