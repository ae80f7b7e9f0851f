import { homedir } from "node:os";
import { join } from "node:path";
import { sha256Of } from "../files/file-hash.ts";
import { isS3Url } from "../files/s3/s3-url.ts";

/** The name of the work folder inside a store folder. No id begins with a dot. */
const WORK_FOLDER_NAME = ".ontofetch";

/**
 * The folder on this machine for the files of a store that are not versions: partial files, drafts, locks, limits and
 * cached responses. For a store in S3 it is in the user's cache folder.
 * @param store the store folder, or `s3://bucket/prefix`
 */
export function workFolderOf(store: string): string {
  if (!isS3Url(store)) return join(store, WORK_FOLDER_NAME);
  const cache = process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return join(cache, "docstokg", "ontologies", sha256Of(store).slice(0, 24));
}

/** Paths in the work folder of a store. */
export class WorkFolder {
  /** Absolute path. */
  readonly path: string;

  constructor(store: string) {
    this.path = workFolderOf(store);
  }

  /** The file that an unfinished download of this ontology is written to. */
  partialPath(id: string): string {
    return join(this.path, "partial", `${id}.part`);
  }

  /** The file that a process locks while it changes an ontology. */
  lockPath(id: string): string {
    return join(this.path, "locks", `${id}.lock`);
  }
}
