import { DownloadError } from "../../errors.ts";
import { withDiskErrors } from "../../files/disk-errors.ts";
import type { AttemptRecord, Manifest } from "../manifest/manifest.ts";
import type { DownloadedFile, PartialDownload } from "../manifest/manifest-files.ts";
import type { DoneReason } from "../reason.ts";
import type { FileStore } from "../storage/file-store.ts";
import { type DescribedWork, type MetadataSettings, writeMetadata } from "./metadata-file.ts";

/** Where files are stored and recorded. */
export interface RecordingOptions {
  readonly manifest: Manifest;
  readonly fileStore: FileStore;
  readonly run: number;
  /** How the metadata of a work is written beside its file. Undefined: it is not written. */
  readonly metadata: MetadataSettings | undefined;
}

/**
 * Recovers the partial files of a process that died: moves complete files to their path, and deletes those that cannot be
 * resumed. Returns the number of works that are done now.
 */
export async function recoverParts(parts: readonly PartialDownload[], options: RecordingOptions): Promise<number> {
  const { manifest, fileStore, metadata } = options;
  let doneWorks = 0;
  for (const { urlHash, work, file, validator, destination } of parts) {
    if (destination !== undefined && (await finishMove(fileStore, file, destination))) {
      const described = metadata && (await manifest.reports.workRecord(work));
      const recorded = await finishDownload(options, { id: work, described }, "ok", destination);
      if (recorded.ofSeveral === undefined) doneWorks += 1;
    } else if (validator === undefined) {
      await manifest.files.deletePart(urlHash, work);
      await fileStore.parts.delete(file);
    }
  }
  await removeAbandonedParts(manifest, fileStore);
  return doneWorks;
}

/** Deletes the partial files of processes that have ended and that the manifest does not know. */
export async function removeAbandonedParts(manifest: Manifest, fileStore: FileStore): Promise<void> {
  for (const file of await manifest.files.abandoned(await fileStore.parts.list())) await fileStore.parts.delete(file);
}

/** False if the file is gone, or if another file has its path. Then the file is downloaded again. */
async function finishMove(fileStore: FileStore, file: string, destination: DownloadedFile): Promise<boolean> {
  if (fileStore.parts.bytesOf(file) !== destination.bytes && !(await fileStore.has(destination))) return false;
  try {
    await moveDownload(fileStore, file, destination);
    return true;
  } catch (error) {
    // Content-addressed files have no conflicts: the service has failed, and the complete file must not be lost.
    if (error instanceof DownloadError && !fileStore.isContentAddressed) return false;
    throw error;
  }
}

/** Moves a complete file to its path. If an earlier file has this path, it is moved away first. May be repeated. */
export async function moveDownload(
  fileStore: FileStore,
  part: string,
  { path, sha256, mediaType, displaced }: DownloadedFile,
): Promise<void> {
  if (displaced !== undefined) await fileStore.displace(path, displaced.path, displaced.sha256);
  await fileStore.store({ part, path, sha256, mediaType });
}

/**
 * Writes the metadata of a work, records its file, which was moved to its path, and deletes partial files that are not
 * needed any more. The metadata comes first: if it cannot be written, the work is not done, and a later run writes it. If
 * another process has stored the same bytes meanwhile, this copy is deleted.
 */
export async function finishDownload(
  { manifest, fileStore, run, metadata }: RecordingOptions,
  work: { readonly id: number; readonly described: DescribedWork | undefined },
  reason: DoneReason,
  downloaded: DownloadedFile,
  attempt?: AttemptRecord,
): Promise<DownloadedFile> {
  const { described } = work;
  const describe = async (file: DownloadedFile) =>
    metadata && described && file.ofSeveral !== "further"
      ? writeMetadata(fileStore, manifest.files, file, described, metadata)
      : undefined;
  const metadataPath = await withDiskErrors(fileStore.name, () => describe(downloaded));
  const { file, parts } = await manifest.finish(run, work.id, reason, downloaded, attempt);
  return withDiskErrors(fileStore.name, async () => {
    for (const part of parts) await fileStore.parts.delete(part);
    if (file.path === downloaded.path) return downloaded;
    await fileStore.deleteFile(downloaded.path);
    const recorded = { ...downloaded, path: file.path };
    const newMetadataPath = await describe(recorded);
    if (metadataPath !== undefined && metadataPath !== newMetadataPath) await fileStore.deleteFile(metadataPath);
    return recorded;
  });
}
