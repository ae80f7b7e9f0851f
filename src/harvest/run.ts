import { ConfigError } from "../errors.ts";
import type { Hub } from "../http/hub.ts";
import type { Time } from "../time/time.ts";
import { Downloads } from "./downloads/downloads.ts";
import type { FileKind } from "./downloads/file-check.ts";
import { FileStore } from "./downloads/file-store.ts";
import type { Layout } from "./downloads/layout.ts";
import { type ListedCounts, type Manifest, openManifest } from "./manifest/manifest.ts";
import { lockManifest, manifestError } from "./manifest/manifest-file.ts";
import { Pipeline, type PipelineOptions } from "./pipeline.ts";
import type { Reason } from "./reason.ts";
import type { Resolver } from "./resolvers/resolver.ts";
import { RobotsGuard } from "./robots-guard.ts";
import type { Work } from "./work.ts";

export interface RunOptions extends Pick<PipelineOptions, "onSettled" | "onAttempt" | "onDeferred"> {
  readonly hub: Pick<Hub, "request">;
  readonly time: Time;
  /** Where files go. */
  readonly folder: string;
  readonly manifest: string;
  /** As it was given, for whoever reads the manifest later. */
  readonly command: string;
  /** Whom to ask, in the order in which they are asked about a work. */
  readonly order: (work: Work) => readonly Resolver[];
  /** Everybody who may be asked. */
  readonly resolvers: readonly Resolver[];
  /** @default flat */
  readonly layout?: Layout | undefined;
  /** The best first. @default pdf, then xml */
  readonly formats?: readonly FileKind[] | undefined;
  /** Requests under way at a time. @default 32 */
  readonly workers?: number | undefined;
  /** Works that are open at a time. @default 2000 */
  readonly maxOpen?: number | undefined;
  /** @default 500 MB */
  readonly maxBytes?: number | undefined;
  /** How long a work waits for hosts that are cut off, when nothing else is left to try. @default 15 minutes */
  readonly maxBreakerWaitMs?: number | undefined;
  /** @default Math.random */
  readonly random?: (() => number) | undefined;
}

export const RUN_DEFAULTS = {
  layout: "flat",
  formats: ["pdf", "xml"],
  workers: 32,
  maxOpen: 2000,
  maxBytes: 500 * 2 ** 20,
  // As long as the longest pause that a server is heeded in (`retry_after_cap_s`).
  maxBreakerWaitMs: 15 * 60_000,
} as const satisfies Partial<RunOptions>;

/** A request is held at the gate for so long at most; for more it is worth to let another host have the worker. */
const MAX_WAIT_MS = 100;
const WORKS_PER_TRANSACTION = 500;

/** One run on a manifest: works go in, files and a record of everything come out. Made by `openRun`. */
export class HarvestRun {
  readonly id: number;
  readonly manifest: Manifest;
  readonly pipeline: Pipeline;
  /** Files that an earlier run had received and not yet noted, and that are in place now. */
  readonly recovered: number;
  readonly #fileStore: FileStore;
  readonly #release: () => void;

  constructor(parts: {
    readonly id: number;
    readonly manifest: Manifest;
    readonly pipeline: Pipeline;
    readonly recovered: number;
    readonly fileStore: FileStore;
    readonly release: () => void;
  }) {
    this.id = parts.id;
    this.manifest = parts.manifest;
    this.pipeline = parts.pipeline;
    this.recovered = parts.recovered;
    this.#fileStore = parts.fileStore;
    this.#release = parts.release;
  }

  /** Lists works. Those that are there already are left alone, unless `again`: then they are asked for whether they hold. */
  addWorks(works: readonly Work[], again = false): ListedCounts {
    const tally = { pending: 0, present: 0, failed: 0 };
    const isPresent = (sha256: string) => {
      const file = this.manifest.files.file(sha256);
      return file !== undefined && this.#fileStore.has(file);
    };
    for (let from = 0; from < works.length; from += WORKS_PER_TRANSACTION) {
      const some = this.manifest.addWorks(this.id, works.slice(from, from + WORKS_PER_TRANSACTION), isPresent, again);
      tally.pending += some.pending;
      tally.present += some.present;
      tally.failed += some.failed;
    }
    this.pipeline.worksAdded();
    return tally;
  }

  /** Lists what is unfinished, and on demand what failed. Answers how many. */
  addUnfinished(failed?: { readonly reason?: Reason | undefined }): number {
    const count = this.manifest.addUnfinished(this.id, failed);
    this.pipeline.worksAdded();
    return count;
  }

  /** Throws a DownloadError when its end cannot be written down. The manifest is closed and free for others either way. */
  close(state: "ended" | "interrupted"): void {
    try {
      this.manifest.endRun(this.id, state);
    } catch (error) {
      // That a run was interrupted is noted by the next one, if need be.
      if (state === "ended") throw manifestError(error);
    } finally {
      this.manifest.close();
      this.#release();
    }
  }
}

/** Rejects with a ConfigError when the manifest cannot be used, or another process is at it. */
export async function openRun(options: RunOptions): Promise<HarvestRun> {
  const { hub, time, folder, command, random = Math.random, resolvers } = options;
  const lock = await lockManifest(options.manifest);
  if (lock === undefined) {
    const message = `another run is at work on ${options.manifest}; wait for its end, or name another with --manifest`;
    throw new ConfigError([{ where: "--manifest", path: "", message }]);
  }
  let manifest: Manifest | undefined;
  try {
    manifest = await openManifest(options.manifest, time);
    const fileStore = new FileStore(folder);
    await prepared(fileStore);
    const run = manifest.beginRun(command);
    const settings = { ...RUN_DEFAULTS, ...defined(options), random, run, manifest, maxWaitMs: MAX_WAIT_MS };
    const downloads = new Downloads({ ...settings, hub, fileStore });
    const recovered = await downloads.recover();
    const named = (name: string) => resolvers.find(resolver => resolver.name === name);
    const pipeline = new Pipeline({
      ...settings,
      hub,
      time,
      downloads,
      robots: new RobotsGuard({ hub, maxWaitMs: MAX_WAIT_MS }),
      pageReader: named("landing_page"),
      archive: named("wayback"),
    });
    return new HarvestRun({ id: run, manifest, pipeline, recovered, fileStore, release: () => lock.release() });
  } catch (error) {
    manifest?.close();
    lock.release();
    throw manifestError(error);
  }
}

async function prepared(fileStore: FileStore): Promise<void> {
  try {
    await fileStore.prepare();
  } catch (error) {
    const message = `no files can go there: ${error instanceof Error ? error.message : String(error)}`;
    throw new ConfigError([{ where: "--out", path: "", message }], { cause: error });
  }
}

/** Without what was left open, so that defaults hold. */
function defined<Options extends object>(
  options: Options,
): { [Key in keyof Options]: Exclude<Options[Key], undefined> } {
  const said = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said) as { [Key in keyof Options]: Exclude<Options[Key], undefined> };
}
