import { dirname } from "node:path";
import { errnoOf } from "../files/disk-errors.ts";
import type { FileLock } from "../files/file-lock.ts";
import { FILE_FORMATS, type TargetFormat, targetFormatOf } from "./format.ts";
import { idsWithoutSource, importedSources, planFromLock } from "./frozen-plan.ts";
import { writeCatalog } from "./import-catalog.ts";
import { IMPORTS_MAX, ImportClosure } from "./import-closure.ts";
import type { LockWriter } from "./lock-writer.ts";
import { type LockEntry, type Lockfile, readLock } from "./lockfile.ts";
import { announcedFields } from "./manifest-builder.ts";
import { type MirrorCopy, mirrorCopies } from "./mirrors.ts";
import type { OntofetchSettings } from "./ontofetch-settings.ts";
import type { OntologyStore, StoredVersion } from "./ontology-store.ts";
import { describeError, type PlanEntry, type PlanItem } from "./planner.ts";
import { runPool } from "./pull-pool.ts";
import type { PullOptions, PullResult } from "./pull-result.ts";
import type { Puller } from "./puller.ts";
import type { Source } from "./resolver.ts";
import { hasKnownImports, isWanted } from "./wanted-version.ts";

export interface PullRunDeps {
  readonly settings: OntofetchSettings;
  readonly store: OntologyStore;
  readonly puller: Puller;
  readonly lockWriter: LockWriter;
  readonly plan: (sources: readonly Source[]) => Promise<readonly PlanItem[]>;
  readonly signal?: AbortSignal | undefined;
}

/** One pull: the sources, then the files that they import, then the files that those import, and so on. */
export class PullRun {
  readonly #deps: PullRunDeps;
  readonly #options: PullOptions;
  readonly #imports = new ImportClosure();
  #lock: Lockfile = new Map();

  constructor(deps: PullRunDeps, options: PullOptions) {
    this.#deps = deps;
    this.#options = options;
  }

  async run(sources: readonly Source[]): Promise<readonly PullResult[]> {
    const { frozen: isFrozen = false, all: isAll = false, onResult } = this.#options;
    this.#lock = await readLock(this.#deps.settings.lockfile);
    const results: PullResult[] = [];
    let round: readonly Source[] = sources;
    while (round.length > 0) {
      const items = isFrozen ? planFromLock(round, this.#lock) : await this.#deps.plan(round);
      const pulled = await this.#pullAll(items);
      results.push(...pulled);
      if (!isFrozen) round = this.#nextImports(round, pulled);
      // The lockfile has the imports of all levels, so one more round is enough.
      else round = round === sources ? importedSources(this.#lock, sources) : [];
    }
    const skipped = this.#skippedImports();
    if (skipped !== undefined) {
      onResult?.(skipped);
      results.push(skipped);
    }
    if (isFrozen) {
      const idsToRefuse = isAll ? idsWithoutSource(this.#lock, sources) : [];
      const message = "in the lockfile, but not in sources.yaml (run ontofetch pull without --frozen)";
      const refusals = idsToRefuse.map((id): PullResult => ({ id, outcome: "failed", message, importedBy: [] }));
      for (const result of refusals) onResult?.(result);
      results.push(...refusals);
    } else {
      const imported = this.#importedIds(sources, results);
      const keptIds = isAll ? new Set([...sources.map(({ id }) => id), ...imported]) : undefined;
      await this.#setImporters(results, keptIds);
      if (isAll) await this.#deps.lockWriter.keepOnly(sources, imported);
    }
    if ([...sources, ...this.#deps.settings.sources].some(({ imports }) => imports)) await this.#writeCatalog(results);
    return results;
  }

  #pullAll(items: readonly PlanItem[]): Promise<readonly PullResult[]> {
    const { settings, lockWriter } = this.#deps;
    const { frozen: isFrozen = false, onResult } = this.#options;
    return runPool(items, settings.parallel, async (item): Promise<PullResult> => {
      const { source } = item;
      const importedBy = isFrozen
        ? (this.#lock.get(source.id)?.imported_by ?? [])
        : this.#imports.importersOf(source.id);
      const locks: FileLock[] = [];
      try {
        const result = await this.#pullOne(item, importedBy, locks);
        // Before the id is unlocked: the pull that stores the last version must be the last one that writes its entry, and
        // `prune` must find the entry of a version that was stored.
        if (!isFrozen && result.outcome !== "failed") await lockWriter.add(source, result.stored.manifest, importedBy);
        onResult?.(result);
        return result;
      } finally {
        for (const lock of locks) lock.release();
      }
    });
  }

  /** @param locks gets the lock of the id, which the caller releases */
  async #pullOne(item: PlanItem, importedBy: readonly string[], locks: FileLock[]): Promise<PullResult> {
    const { id } = item.source;
    if (item.kind === "refused") return { id, outcome: "failed", message: item.message, importedBy };
    const { frozen: isFrozen = false } = this.#options;
    const locked = this.#lock.get(id);
    const expectedSha256 = isFrozen ? locked?.sha256 : undefined;
    try {
      // A frozen pull that finds its file writes nothing, so it need not wait for other processes.
      if (!isFrozen) locks.push(await this.#deps.puller.lock(id));
      const found = await this.#findStored(item, expectedSha256, locked);
      if (found !== undefined) {
        const stored = isFrozen ? found : await this.#withAnnouncedFields(item, found);
        return { id, outcome: "kept", stored, requests: 0, resumedBytes: 0, importedBy };
      }
      if (isFrozen) locks.push(await this.#deps.puller.lock(id));
      const copies = this.#copiesOf(item, locked);
      const request = { sha256: expectedSha256, copies, locked };
      return { id, ...(await this.#deps.puller.pull(item, request)), importedBy };
    } catch (error) {
      this.#deps.signal?.throwIfAborted();
      if (isBug(error)) throw error;
      return { id, outcome: "failed", message: describeError(error), importedBy };
    }
  }

  /**
   * The stored file, if it is the locked file or has the pinned version. Its hash is checked again, because the file may
   * have been damaged since its manifest was written.
   */
  async #findStored(
    { source, url }: PlanEntry,
    expectedSha256: string | undefined,
    locked: LockEntry | undefined,
  ): Promise<StoredVersion | undefined> {
    const { store, signal } = this.#deps;
    const { id, version } = source;
    const sha256 = expectedSha256 ?? source.sha256;
    if (sha256 === undefined && version === undefined) return undefined;
    // Without a hash, a file from another URL may be another product of the same version.
    const candidates = (await store.versions(id)).filter(
      ({ manifest }) =>
        (sha256 === undefined ? manifest.url === url : manifest.sha256 === sha256) &&
        isWanted(manifest, source, locked) &&
        // The lockfile has the imports for a frozen pull.
        (this.#options.frozen === true || hasKnownImports(manifest, source)),
    );
    for (const stored of candidates) {
      if (await store.isIntact(stored, signal)) return stored;
    }
    return undefined;
  }

  async #withAnnouncedFields(entry: PlanEntry, stored: StoredVersion): Promise<StoredVersion> {
    const { announced_version, licence } = stored.manifest;
    const fields = announcedFields(entry, stored.manifest);
    const isSame = fields.announced_version === announced_version && fields.licence === licence;
    return isSame ? stored : this.#deps.store.updateManifest(stored, fields);
  }

  /**
   * Where to look for a known version: at its own address, then at the URL of the source, then in mirrors. A version is
   * known if it is pinned, if the pull is frozen, or if the pinned hash is the locked one; otherwise undefined.
   */
  #copiesOf(entry: PlanEntry, locked: LockEntry | undefined): readonly MirrorCopy[] | undefined {
    const { source, url } = entry;
    const isFrozen = this.#options.frozen === true;
    const isLocked = isFrozen || (source.sha256 !== undefined && source.sha256 === locked?.sha256);
    const version = isFrozen ? locked?.version : (source.version ?? (isLocked ? locked?.version : undefined));
    if (version === undefined) return undefined;
    const own = isFrozen && locked?.versioned_url ? [locked.versioned_url] : [];
    const urls = [...new Set([...own, url])].map((address): MirrorCopy => ({ kind: "url", url: address }));
    const format = formatInMirrors(entry, locked);
    if (format === undefined) return urls;
    const sha256 = isFrozen ? locked?.sha256 : source.sha256;
    return [...urls, ...mirrorCopies(source, { version, format, sha256 }, dirname(this.#deps.settings.file))];
  }

  #nextImports(sources: readonly Source[], results: readonly PullResult[]): readonly Source[] {
    for (const result of results) {
      if (result.outcome === "failed") continue;
      const { facts, url } = result.stored.manifest;
      this.#imports.provide(result.id, [facts?.ontology_iri ?? null, facts?.version_iri ?? null, url]);
    }
    return results.flatMap(result => {
      const source = sources.find(({ id }) => id === result.id);
      if (result.outcome === "failed" || !source?.imports) return [];
      return this.#imports.require(result.id, result.stored.manifest.facts?.imports ?? []);
    });
  }

  /** One failure for all imports beyond the limit: a hostile file may have any number of them. */
  #skippedImports(): PullResult | undefined {
    const skipped = this.#imports.skipped();
    if (skipped === undefined) return undefined;
    const { firstId: id, count, importers: importedBy } = skipped;
    const others = count === 1 ? "" : `, nor ${count - 1} other import${count === 2 ? "" : "s"}`;
    const message = `not fetched${others}: a pull fetches at most ${IMPORTS_MAX} imported files`;
    return { id, outcome: "failed", message, importedBy };
  }

  /**
   * The imported files that stay in the lockfile. If a file failed or has no facts, its imports are not known, so the
   * imports of an earlier pull stay.
   */
  #importedIds(sources: readonly Source[], results: readonly PullResult[]): ReadonlySet<string> {
    const imported = results.filter(({ importedBy }) => importedBy.length > 0);
    const unknown = results
      .filter(result => !areImportsKnown(result))
      .map(({ id, importedBy }) => ({
        id,
        imports: importedBy.length > 0 || sources.some(source => source.id === id && source.imports),
      }));
    return new Set([...imported, ...importedSources(this.#lock, unknown)].map(({ id }) => id));
  }

  /**
   * Corrects the importers of the imported files that this run has pulled: when a file was written to the lockfile, some of
   * its importers were not known yet. A locked importer stays if this run does not know what it imports.
   * @param keptIds the ids that stay in the lockfile; undefined for all
   */
  async #setImporters(results: readonly PullResult[], keptIds: ReadonlySet<string> | undefined): Promise<void> {
    const imported = results.filter(({ outcome, importedBy }) => importedBy.length > 0 && outcome !== "failed");
    if (imported.length === 0) return;
    const known = new Set(results.filter(areImportsKnown).map(({ id }) => id));
    await this.#deps.lockWriter.setImporters(
      new Map(imported.map(({ id }) => [id, this.#imports.importersOf(id)])),
      importer => known.has(importer) || keptIds?.has(importer) === false,
    );
  }

  /** The catalogue has every locked version: also those of sources that this run has not pulled, or that have failed. */
  async #writeCatalog(results: readonly PullResult[]): Promise<void> {
    const { store, settings } = this.#deps;
    const pulled = new Map(
      results.flatMap(result => (result.outcome === "failed" ? [] : [[result.id, result.stored] as const])),
    );
    const lock = await readLock(settings.lockfile);
    const versions = await runPool([...lock], settings.parallel, async ([id, { sha256 }]) => {
      const known = pulled.get(id);
      if (known?.manifest.sha256 === sha256) return known;
      return (await store.versions(id)).find(({ manifest }) => manifest.sha256 === sha256);
    });
    const stored = versions.filter(version => version !== undefined);
    if (stored.length > 0) await writeCatalog(store, stored);
  }
}

/** Not those of a file that failed, or whose statements are not known. */
function areImportsKnown(result: PullResult): boolean {
  return result.outcome !== "failed" && result.stored.manifest.facts !== null;
}

/** The format of the locked file, else the one that the service or the name suggests, else the first wanted one. */
function formatInMirrors({ source, format }: PlanEntry, locked: LockEntry | undefined): TargetFormat | undefined {
  const known = FILE_FORMATS.find(name => name === locked?.format);
  return known === undefined ? (format ?? source.targetFormats[0]) : targetFormatOf(known);
}

/** Whether an error is a bug of this program, which must not be recorded as a failure of the source. */
function isBug(error: unknown): boolean {
  const isProgrammingError =
    error instanceof TypeError ||
    error instanceof RangeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError;
  // Node and undici set a code or a cause when a request fails.
  return isProgrammingError && errnoOf(error) === undefined && error.cause === undefined;
}
