import type { OntologyManifest } from "./ontology-manifest.ts";
import type { WorkFolder } from "./work-folder.ts";

/** One version of an ontology in the store. */
export interface StoredVersion {
  /** The id in `sources.yaml`. */
  readonly id: string;
  /** The name of the version's folder inside the folder of the ontology. */
  readonly folder: string;
  /** The content of `manifest.json`. */
  readonly manifest: OntologyManifest;
  /** Absolute path of the ontology file, or its address in S3. */
  readonly path: string;
}

/**
 * Ontology files as `<id>/<version>/<id>.<extension>`, each with its manifest. A version appears complete or not at all,
 * and its file is never modified afterwards.
 */
export interface OntologyStore extends Disposable {
  /** Absolute path of the store folder, or `s3://bucket/prefix`. */
  readonly root: string;
  /** Partial files and locks on this machine. */
  readonly work: WorkFolder;
  /** Call it before `add`. Rejects if versions cannot be stored. Removes the parts of interrupted uploads. */
  prepare(): Promise<void>;
  /** The ids of all ontologies that have a folder, sorted. */
  ids(): Promise<readonly string[]>;
  /** All versions of an ontology, the newest first. A folder without a valid manifest is left out. */
  versions(id: string): Promise<readonly StoredVersion[]>;
  /** The names of the folders of an ontology that have no valid manifest, sorted. */
  foldersWithoutManifest(id: string): Promise<readonly string[]>;
  /** The stored version whose manifest has this hash and whose file has the length in the manifest. */
  findByHash(id: string, sha256: string): Promise<StoredVersion | undefined>;
  /** Whether the file of a version has the hash in its manifest. In S3 the hash recorded at the upload is compared. */
  isIntact(version: StoredVersion, signal?: AbortSignal): Promise<boolean>;
  /** Reads the file of a version and computes its SHA-256; undefined if the file is missing. */
  hashOf(version: StoredVersion, signal?: AbortSignal): Promise<string | undefined>;
  /**
   * The path of the file of a version on this machine. A file in S3 is copied to the work folder.
   * @throws DownloadError if the file in S3 is missing or has another hash than in its manifest.
   */
  localFile(version: StoredVersion, signal?: AbortSignal): Promise<string>;
  /**
   * Moves a finished file to its place. Equal bytes under the same version are stored once; other bytes under the same
   * version get a folder of their own.
   */
  add(file: string, manifest: OntologyManifest, signal?: AbortSignal): Promise<StoredVersion>;
  /** Writes changed fields of the manifest, such as the time of the last check. */
  updateManifest(version: StoredVersion, changes: Partial<OntologyManifest>): Promise<StoredVersion>;
  /** Removes a version. Other processes see the complete version or none. */
  remove(version: StoredVersion): Promise<void>;
  /** Deletes the unfinished files that killed processes have left. The caller must hold the lock of the id. */
  removeLeftovers(id: string): Promise<void>;
  /** Writes a small file to the root of the store, complete or not at all. */
  writeText(name: string, text: string): Promise<void>;
}

export const MANIFEST = "manifest.json";

/** The versions that are defined, the newest download first; of two equal times, the later folder name first. */
export function newestFirst(versions: readonly (StoredVersion | undefined)[]): readonly StoredVersion[] {
  return versions
    .filter(version => version !== undefined)
    .sort((a, b) => compare(b.manifest.fetched_at, a.manifest.fetched_at) || compare(b.folder, a.folder));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
