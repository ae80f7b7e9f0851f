/** Works, files and calls for the contract of the manifest. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { sha256Of } from "../../src/files/file-hash.ts";
import type { AttemptRecord, ListedWork, Manifest } from "../../src/harvest/manifest/manifest.ts";
import type { DownloadedFile, StoredFile } from "../../src/harvest/manifest/manifest-files.ts";
import type { Work } from "../../src/harvest/work.ts";
import { systemTime } from "../../src/time/system-time.ts";

/** Opens an empty manifest, and closes it after the test. */
export type OpenManifest = (t: TestContext) => Promise<Manifest>;

export const IS_PRESENT = { isPresent: () => true };
export const HOUR_MS = 3_600_000;
export const DOWNLOADED: DownloadedFile = {
  sha256: "ab".repeat(32),
  path: "doi_10.1_a.pdf",
  bytes: 10,
  mediaType: "application/pdf",
  urlHash: sha256Of("https://x.example/a.pdf"),
  url: "https://x.example/a.pdf",
  resolver: "openalex",
  etag: '"1"',
};

export const works = (...names: readonly string[]): readonly Work[] =>
  names.map(name => ({ key: `doi:10.1/${name}`, ids: { doi: `10.1/${name}` } }));
export const keys = (list: readonly Work[]) => list.map(({ key }) => key);

export async function added(
  manifest: Manifest,
  run: number,
  list: readonly Work[],
  isPresent: (file: StoredFile) => boolean = () => true,
) {
  const { pending, present, failed } = await manifest.works.add(run, list, { isPresent });
  return { pending, present, failed };
}

export async function taken(manifest: Manifest, run: number, limit = 10, queue = ""): Promise<readonly ListedWork[]> {
  const all = await manifest.queue.take(run, queue, systemTime.wallMs(), limit);
  return all.map(({ work }) => work);
}

export async function takenOne(manifest: Manifest, run: number): Promise<ListedWork> {
  const [work] = await taken(manifest, run, 1);
  assert.ok(work);
  return work;
}

export const attempt = (fields: Partial<AttemptRecord>): AttemptRecord => ({
  ...{ step: "fetch", resolver: "openalex", url: "https://x.example/a.pdf", reason: "ok", elapsedMs: 3 },
  ...fields,
});

export async function collected<Item>(items: AsyncIterable<Item>): Promise<readonly Item[]> {
  const all: Item[] = [];
  for await (const item of items) all.push(item);
  return all;
}
