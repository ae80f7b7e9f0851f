import { DownloadError } from "../../errors.ts";
import type { AttemptRecord, Manifest } from "../manifest/manifest.ts";
import type { DownloadedFile, PartialDownload } from "../manifest/manifest-files.ts";
import type { DoneReason } from "../reason.ts";
import type { FileStore } from "../storage/file-store.ts";
import { type MetadataSettings, writeMetadata } from "./metadata-file.ts";

/**
 * Recovers the partial files of a process that died: moves complete files to their path, and deletes those that cannot be
 * resumed. Returns the number of works that are done now.
 * @param metadata the metadata of each work is written beside its file. @default it is not written
 */
export async function recoverParts(
  parts: readonly PartialDownload[],
  manifest: Manifest,
  fileStore: FileStore,
  run: number,
  metadata?: MetadataSettings,
): Promise<number> {
  let doneWorks = 0;
  for (const { urlHash, work, file, validator, destination } of parts) {
    if (destination !== undefined && (await finishMove(fileStore, file, destination))) {
      const recorded = await finishDownload(manifest, fileStore, run, work, "ok", destination);
      if (metadata !== undefined && recorded.ofSeveral !== "further")
        await writeMetadata(fileStore, manifest.files, recorded, await manifest.reports.workRecord(work), metadata);
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
 * Records a file that was moved to its path, and deletes partial files that are not needed any more. If another process
 * has stored the same bytes meanwhile, this copy is deleted.
 */
export async function finishDownload(
  manifest: Manifest,
  fileStore: FileStore,
  run: number,
  work: number,
  reason: DoneReason,
  downloaded: DownloadedFile,
  attempt?: AttemptRecord,
): Promise<DownloadedFile> {
  const {
    file: { path },
    parts,
  } = await manifest.finish(run, work, reason, downloaded, attempt);
  for (const part of parts) await fileStore.parts.delete(part);
  if (path === downloaded.path) return downloaded;
  await fileStore.deleteFile(downloaded.path);
  return { ...downloaded, path };
}
