import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Time } from "../../time/time.ts";
import type { FileFlag } from "../downloads/file-check.ts";
import type { Candidate } from "../resolvers/resolver.ts";

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
  /** What the file is of its work. @default article */
  readonly role?: Candidate["role"];
  /** The file of the work that had this path, and the path that it has now. */
  readonly displaced?: { readonly sha256: string; readonly path: string } | undefined;
}

/** The file that a URL has given, with the validators for a conditional request. */
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

/**
 * The tables `files`, `sources` and `parts` of the manifest. URLs are stored as hashes (column `place`), because they may
 * contain signatures and tokens.
 */
export class ManifestFiles {
  readonly #time: Time;
  readonly #file: StatementSync;
  readonly #ofWork: StatementSync;
  readonly #insert: StatementSync;
  readonly #move: StatementSync;
  readonly #source: StatementSync;
  readonly #setSource: StatementSync;
  readonly #part: StatementSync;
  readonly #parts: StatementSync;
  readonly #partsOf: StatementSync;
  readonly #setPart: StatementSync;
  readonly #deletePart: StatementSync;
  readonly #deleteParts: StatementSync;

  constructor(db: DatabaseSync, time: Time) {
    this.#time = time;
    this.#file = db.prepare("SELECT sha256, path, bytes, media_type, flag FROM files WHERE sha256 = ?");
    this.#insert = db.prepare(
      `INSERT INTO files (sha256, path, bytes, media_type, added_ms, flag) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (sha256) DO UPDATE SET path = excluded.path`,
    );
    this.#ofWork = db.prepare(
      `SELECT sha256, path, bytes, media_type, flag FROM work_files JOIN files USING (sha256) WHERE work = ?
       ORDER BY role, path`,
    );
    this.#move = db.prepare("UPDATE files SET path = ? WHERE sha256 = ?");
    this.#source = db.prepare(
      `SELECT sources.etag, sources.last_modified, sources.run, files.sha256, files.path, files.bytes, files.media_type,
         files.flag
       FROM sources JOIN files USING (sha256) WHERE place = ?`,
    );
    this.#setSource = db.prepare(
      `INSERT INTO sources (place, sha256, etag, last_modified, run) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (place) DO UPDATE SET sha256 = excluded.sha256, etag = excluded.etag,
         last_modified = excluded.last_modified, run = excluded.run`,
    );
    const parts = "SELECT place, work, file, etag, total_bytes, shelving FROM parts";
    this.#part = db.prepare(`${parts} WHERE place = ?`);
    this.#parts = db.prepare(parts);
    this.#partsOf = db.prepare(`${parts} WHERE work = ?`);
    this.#setPart = db.prepare(
      `INSERT INTO parts (place, work, file, etag, total_bytes, shelving) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (place) DO UPDATE SET work = excluded.work, file = excluded.file, etag = excluded.etag,
         total_bytes = excluded.total_bytes, shelving = excluded.shelving`,
    );
    this.#deletePart = db.prepare("DELETE FROM parts WHERE place = ?");
    this.#deleteParts = db.prepare("DELETE FROM parts WHERE work = ?");
  }

  file(sha256: string): StoredFile | undefined {
    const row = this.#file.get(sha256);
    return row === undefined ? undefined : fileOf(row);
  }

  /** The files of a work, the article first. */
  ofWork(work: number): readonly StoredFile[] {
    return this.#ofWork.all(work).map(fileOf);
  }

  source(urlHash: string): KnownSource | undefined {
    const row = this.#source.get(urlHash);
    if (row === undefined) return undefined;
    const { etag, last_modified, run } = row;
    return { file: fileOf(row), etag: textOf(etag), lastModified: textOf(last_modified), run: Number(run) };
  }

  /** Records a file and its source. The caller opens the transaction. */
  addFile(run: number, downloaded: DownloadedFile): void {
    const { sha256, path, bytes, mediaType, urlHash, etag, lastModified, flag, displaced } = downloaded;
    if (displaced !== undefined) this.#move.run(displaced.path, displaced.sha256);
    this.#insert.run(sha256, path, bytes, mediaType, this.#time.wallMs(), flag ?? null);
    this.#setSource.run(urlHash, sha256, etag ?? null, lastModified ?? null, run);
  }

  part(urlHash: string): PartialDownload | undefined {
    const row = this.#part.get(urlHash);
    return row === undefined ? undefined : partOf(row);
  }

  parts(): readonly PartialDownload[] {
    return this.#parts.all().map(partOf);
  }

  partsOf(work: number): readonly PartialDownload[] {
    return this.#partsOf.all(work).map(partOf);
  }

  savePart({ urlHash, work, file, validator, totalBytes, destination }: PartialDownload): void {
    const shelving = destination === undefined ? null : JSON.stringify(destination);
    this.#setPart.run(urlHash, work, file, validator ?? null, totalBytes ?? null, shelving);
  }

  deletePart(urlHash: string): void {
    this.#deletePart.run(urlHash);
  }

  deleteParts(work: number): void {
    this.#deleteParts.run(work);
  }
}

type Row = Readonly<Record<string, unknown>>;

function fileOf(row: Row): StoredFile {
  return {
    sha256: String(row["sha256"]),
    path: String(row["path"]),
    bytes: Number(row["bytes"]),
    mediaType: String(row["media_type"]),
    ...(row["flag"] === "no-eof" ? { flag: "no-eof" } : {}),
  };
}

function partOf({ place, work, file, etag, total_bytes, shelving }: Row): PartialDownload {
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

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
