import { DownloadError } from "../../errors.ts";
import type { Manifest } from "../manifest/manifest.ts";
import type { DownloadedFile } from "../manifest/manifest-files.ts";
import type { FileStore } from "./file-store.ts";

/**
 * Completes what a killed run has left: moves complete files to their path, and deletes partial files that cannot be
 * resumed. Returns the number of works that are done now.
 */
export async function recoverParts(manifest: Manifest, fileStore: FileStore, run: number): Promise<number> {
  let finished = 0;
  for (const { urlHash, work, file, validator, destination } of await manifest.files.parts()) {
    if (destination !== undefined && (await finishMove(fileStore, file, destination))) {
      await manifest.finish(run, work, "ok", destination);
      finished += 1;
    } else if (validator === undefined) {
      await manifest.files.deletePart(urlHash);
      await fileStore.deletePart(file);
    }
  }
  await fileStore.removeUnknownParts(new Set((await manifest.files.parts()).map(({ file }) => file)));
  return finished;
}

/** False if the file is gone or another file has its path: then it is downloaded again. */
async function finishMove(fileStore: FileStore, file: string, destination: DownloadedFile): Promise<boolean> {
  if (fileStore.partBytes(file) !== destination.bytes && !fileStore.has(destination)) return false;
  try {
    await moveDownload(fileStore, file, destination);
    return true;
  } catch (error) {
    if (error instanceof DownloadError) return false;
    throw error;
  }
}

/** Moves a complete file to its path, after the earlier file that has this path. May be repeated after a crash. */
export async function moveDownload(
  fileStore: FileStore,
  part: string,
  { path, sha256, displaced }: DownloadedFile,
): Promise<void> {
  if (displaced !== undefined) await fileStore.displace(path, displaced.path, displaced.sha256);
  await fileStore.moveIntoPlace(part, path, sha256);
}
