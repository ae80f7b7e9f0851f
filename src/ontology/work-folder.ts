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

/** Servers send gzip files inside zip files, and tar files inside gzip files. A third layer is not unpacked. */
export const LAYERS_MAX = 2;

/** The file into which a layer of a packed file is unpacked; the outermost layer is 1. */
export function layerPath(packed: string, layer: number): string {
  return `${packed}.${layer}`;
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

  /** The file into which a file of a mirror folder is copied. */
  copyPath(id: string): string {
    return `${this.partialPath(id)}.copy`;
  }

  /** The files that a killed pull may have left and that a later pull cannot continue. */
  leftoverPaths(id: string): readonly string[] {
    const [partial, copy] = [this.partialPath(id), this.copyPath(id)];
    const layers = Array.from({ length: LAYERS_MAX }, (_, index) => index + 1);
    return [copy, ...[partial, copy].flatMap(path => layers.map(layer => layerPath(path, layer)))];
  }

  /** The file that a process locks while it changes an ontology. */
  lockPath(id: string): string {
    return join(this.path, "locks", `${id}.lock`);
  }
}
