/**
 * Where finished files are: an output folder, a bucket of an S3 service, or a storage of the caller. Partial files are
 * on a local disk.
 */

import { join, resolve } from "node:path";
import { isS3Url } from "../../files/s3/s3-url.ts";
import type { Time } from "../../time/time.ts";
import type { StoredFile } from "../manifest/manifest-files.ts";
import type { FileStorage } from "./file-storage.ts";
import { FolderStore, PARTS_FOLDER } from "./folder-store.ts";
import type { PartFiles } from "./part-files.ts";

/** What is wrong with a stored file. */
export type FileDamage = "missing" | "changed";

/** A file that was downloaded completely, and the path under which it is stored. */
export interface FileToStore {
  /** Name of the partial file. */
  readonly part: string;
  readonly path: string;
  readonly sha256: string;
  readonly mediaType: string;
}

export interface FileStore {
  /** The folder or URL, to print. */
  readonly name: string;
  readonly parts: PartFiles;
  /** The names of files come from their hashes, so that equal names have equal bytes. */
  readonly isContentAddressed: boolean;
  /** Creates missing folders, and removes the parts of interrupted uploads. Rejects if files cannot be stored. */
  prepare(): Promise<void>;
  /** A quick check without reading; a store that cannot check at once trusts the manifest. */
  isPresent(file: Pick<StoredFile, "path" | "bytes">): boolean;
  /** Whether the file exists with the recorded size. Its bytes are not read: that would take hours for many files. */
  has(file: Pick<StoredFile, "path" | "bytes">): Promise<boolean>;
  /** Reads a file and compares its hash; undefined if it is intact. */
  damageOf(file: Pick<StoredFile, "path" | "bytes" | "sha256">): Promise<FileDamage | undefined>;
  /**
   * The first free path for a file: the target, or a numbered one. A path with the same bytes counts as free.
   * @param firstNumber 2 to leave the target out. @default 1
   */
  availablePath(target: string, file: Pick<StoredFile, "sha256" | "bytes">, firstNumber?: number): Promise<string>;
  /**
   * Stores a file that was downloaded completely, and removes its partial file. The file is never visible before it is
   * complete. May be repeated after a crash. Rejects with a DownloadError if the path has another file.
   */
  store(file: FileToStore): Promise<void>;
  /** Moves a finished file to a free path. Nothing happens if it has been moved already. */
  displace(from: string, to: string, sha256: string): Promise<void>;
  /** Gives a changed file another name, so that its name is free. */
  setAside(path: string): Promise<void>;
  deleteFile(path: string): Promise<void>;
  /**
   * Writes a small text beside a file, complete or not at all.
   * @param part a new name of a partial file, for the text until it is stored. If the process dies, recovery deletes it.
   */
  writeText(path: string, text: string, part: string): Promise<void>;
  /** The absolute path or URL of a file. */
  locationOf(path: string): string;
  /** Aborts uploads. A later run stores their files. */
  stop(): void;
  close(): void;
}

/**
 * @param out the folder, or `s3://bucket/prefix`
 * @param manifest its path or URL: partial files of different manifests do not mix
 * @param storage of the caller, for the finished files. @default they are in `out`
 */
export async function fileStoreFor(
  out: string,
  manifest: string,
  time: Time,
  storage?: FileStorage,
): Promise<FileStore> {
  if (storage !== undefined)
    return new (await import("./custom-store.ts")).CustomStore(storage, join(resolve(out), PARTS_FOLDER));
  if (!isS3Url(out)) return new FolderStore(resolve(out));
  return (await import("./s3-store.ts")).openS3Store(out, manifest, time);
}
