import type { FileFlag } from "../downloads/file-check.ts";
import type { Candidate } from "../resolvers/resolver.ts";
import { type Row, textOf } from "./manifest-row.ts";

/** A finished file in the output folder. */
export interface StoredFile {
  readonly sha256: string;
  /** Relative to the output folder, with forward slashes. */
  readonly path: string;
  readonly bytes: number;
  readonly mediaType: string;
  /** What is unusual about the file; undefined for nothing. */
  readonly flag?: FileFlag | undefined;
}

/** A finished file and its source. */
export interface DownloadedFile extends StoredFile {
  /** SHA-256 of the URL, which identifies the source. */
  readonly urlHash: string;
  /** The URL without secrets: `redactedUrl`. */
  readonly url: string;
  readonly resolver: string;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
  readonly licence?: string | undefined;
  readonly version?: Candidate["version"];
  /** The role of the file in its work. @default article */
  readonly role?: Candidate["role"];
  /**
   * Set if the work has several files. `main`: the URL and licence of this file are those of the work. `further`: any
   * other file. The work stays pending until `Manifest.complete`. @default the only file, and the work is done
   */
  readonly ofSeveral?: "main" | "further" | undefined;
  /** The path that the manifest has for these bytes, if no file exists at that path. The new path replaces it. */
  readonly replaces?: string | undefined;
  /** An earlier file of the same work that had the path of this file. It is moved to `displaced.path`. */
  readonly displaced?: { readonly sha256: string; readonly path: string } | undefined;
}

/** The file that was downloaded from a URL, with the validators for a conditional request. */
export interface KnownSource {
  readonly file: StoredFile;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** The last run that downloaded or revalidated it. */
  readonly run: number;
}

/** A partial file, or a complete file that is about to be moved to its path. */
export interface PartialDownload {
  /** SHA-256 of the URL. */
  readonly urlHash: string;
  readonly work: number;
  /** File name in the folder of partial files. */
  readonly file: string;
  /** Strong validator of these bytes; undefined if they cannot be resumed. */
  readonly validator: string | undefined;
  /** Announced length of the complete file; undefined if it was not announced. */
  readonly totalBytes: number | undefined;
  /** Set when the file is complete: what to record once it has been moved. */
  readonly destination: DownloadedFile | undefined;
}

/** What the manifest knows of a URL and a work before the URL is requested for the work. */
export interface KnownDownload {
  readonly source: KnownSource | undefined;
  readonly part: PartialDownload | undefined;
  /** The files of the work, the article first. */
  readonly ofWork: readonly StoredFile[];
}

/** What the manifest has recorded of a file. */
export interface FinishedFile {
  /**
   * The file with these bytes in the manifest. If another process has stored these bytes first, `file.path` is the path
   * that the other process has used.
   */
  readonly file: StoredFile;
  /** Names of partial files that the work no longer needs. */
  readonly parts: readonly string[];
}

/**
 * The files, sources and partial files of a manifest. URLs are stored as hashes, because they may contain signatures and
 * tokens.
 */
export interface ManifestFiles {
  /** Reads all this in one call, because each exchange with a server costs time. */
  knownDownload(urlHash: string, work: number): Promise<KnownDownload>;
  /** The file with these bytes. */
  file(sha256: string): Promise<StoredFile | undefined>;
  /** A name for a new partial file, which no other process uses. */
  newPartName(): string;
  /** Whether this process has named the partial file. If not, another process may still write to the file. */
  isOwnPart(file: string): boolean;
  /**
   * Records a partial file. Returns the stored file that already has the bytes of `destination`; undefined if there is
   * none. One call does both, because each exchange with a server costs time.
   */
  savePart(part: PartialDownload): Promise<StoredFile | undefined>;
  deletePart(urlHash: string, work: number): Promise<void>;
  /** Returns the partial files of this list that no process uses and no work can resume. */
  abandoned(files: readonly string[]): Promise<readonly string[]>;
}

/** A file of a row with the columns `sha256`, `path`, `bytes`, `media_type` and `flag`. */
export function fileOfRow(row: Row): StoredFile {
  return {
    sha256: String(row["sha256"]),
    path: String(row["path"]),
    bytes: Number(row["bytes"]),
    mediaType: String(row["media_type"]),
    ...(row["flag"] === "no-eof" ? { flag: "no-eof" } : {}),
  };
}

/** A source of a row of `sources` joined with `files`. */
export function sourceOfRow(row: Row): KnownSource {
  const { etag, last_modified, run } = row;
  return { file: fileOfRow(row), etag: textOf(etag), lastModified: textOf(last_modified), run: Number(run) };
}

/** A partial download of a row of `parts`. */
export function partOfRow({ place, work, file, etag, total_bytes, shelving }: Row): PartialDownload {
  const urlHash = String(place);
  const json = textOf(shelving);
  return {
    urlHash,
    work: Number(work),
    file: String(file),
    validator: textOf(etag),
    totalBytes: total_bytes === null ? undefined : Number(total_bytes),
    // Manifests of format 1 have the hash under another key.
    destination: json === undefined ? undefined : { ...(JSON.parse(json) as DownloadedFile), urlHash },
  };
}
