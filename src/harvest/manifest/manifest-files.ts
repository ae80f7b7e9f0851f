import { createHash } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Time } from "../../time/time.ts";
import type { Candidate } from "../resolvers/resolver.ts";

/** A file that lies where it belongs. */
export interface StoredFile {
  readonly sha256: string;
  /** From the folder of the run, with forward slashes. */
  readonly path: string;
  readonly bytes: number;
  readonly mediaType: string;
}

/** A file and where it came from. */
export interface DownloadedFile extends StoredFile {
  /** The address by which the ledger knows it: `placeOf`. */
  readonly place: string;
  /** The same as others may see it. */
  readonly url: string;
  readonly resolver: string;
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
  readonly licence?: string | undefined;
  readonly version?: Candidate["version"];
}

/** What we have from an address, and what to ask its server with. */
export interface KnownSource {
  readonly file: StoredFile;
  readonly etag: string | undefined;
  readonly lastModified: string | undefined;
  /** The run that has last heard that it holds. */
  readonly run: number;
}

/** A file that has come in part, or whole and is about to be put in its place. */
export interface PartialDownload {
  /** Where it comes from: `placeOf`. */
  readonly place: string;
  readonly work: number;
  /** Its name among the parts. */
  readonly file: string;
  /** What stands for exactly these bytes (`strongValidator`); undefined when they cannot be gone on with. */
  readonly validator: string | undefined;
  /** Where it is to go, once it has come whole. */
  readonly shelving: DownloadedFile | undefined;
}

/**
 * Which files there are, by what is in them, and where each came from. Addresses are kept as hashes: theirs may hold
 * signatures and tokens.
 */
export class ManifestFiles {
  readonly #time: Time;
  readonly #file: StatementSync;
  readonly #insert: StatementSync;
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
    this.#file = db.prepare("SELECT sha256, path, bytes, media_type FROM files WHERE sha256 = ?");
    this.#insert = db.prepare(
      `INSERT INTO files (sha256, path, bytes, media_type, added_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (sha256) DO UPDATE SET path = excluded.path`,
    );
    this.#source = db.prepare(
      `SELECT sources.etag, sources.last_modified, sources.run, files.sha256, files.path, files.bytes, files.media_type
       FROM sources JOIN files USING (sha256) WHERE place = ?`,
    );
    this.#setSource = db.prepare(
      `INSERT INTO sources (place, sha256, etag, last_modified, run) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (place) DO UPDATE SET sha256 = excluded.sha256, etag = excluded.etag,
         last_modified = excluded.last_modified, run = excluded.run`,
    );
    this.#part = db.prepare("SELECT place, work, file, etag, shelving FROM parts WHERE place = ?");
    this.#parts = db.prepare("SELECT place, work, file, etag, shelving FROM parts");
    this.#partsOf = db.prepare("SELECT place, work, file, etag, shelving FROM parts WHERE work = ?");
    this.#setPart = db.prepare(
      `INSERT INTO parts (place, work, file, etag, shelving) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT (place) DO UPDATE SET work = excluded.work, file = excluded.file, etag = excluded.etag,
         shelving = excluded.shelving`,
    );
    this.#deletePart = db.prepare("DELETE FROM parts WHERE place = ?");
    this.#deleteParts = db.prepare("DELETE FROM parts WHERE work = ?");
  }

  file(sha256: string): StoredFile | undefined {
    const row = this.#file.get(sha256);
    return row === undefined ? undefined : fileOf(row);
  }

  source(place: string): KnownSource | undefined {
    const row = this.#source.get(place);
    if (row === undefined) return undefined;
    const { etag, last_modified, run } = row;
    return { file: fileOf(row), etag: textOf(etag), lastModified: textOf(last_modified), run: Number(run) };
  }

  /** Notes a file and its source; within the transaction of whoever calls. */
  addFile(run: number, { sha256, path, bytes, mediaType, place, etag, lastModified }: DownloadedFile): void {
    this.#insert.run(sha256, path, bytes, mediaType, this.#time.wallMs());
    this.#setSource.run(place, sha256, etag ?? null, lastModified ?? null, run);
  }

  part(place: string): PartialDownload | undefined {
    const row = this.#part.get(place);
    return row === undefined ? undefined : partOf(row);
  }

  parts(): readonly PartialDownload[] {
    return this.#parts.all().map(partOf);
  }

  partsOf(work: number): readonly PartialDownload[] {
    return this.#partsOf.all(work).map(partOf);
  }

  savePart({ place, work, file, validator, shelving }: PartialDownload): void {
    const later = shelving === undefined ? null : JSON.stringify(shelving);
    this.#setPart.run(place, work, file, validator ?? null, later);
  }

  deletePart(place: string): void {
    this.#deletePart.run(place);
  }

  deleteParts(work: number): void {
    this.#deleteParts.run(work);
  }
}

/** An address as the ledger keeps it. */
export function urlHashOf(url: string): string {
  return createHash("sha256").update(url).digest("hex");
}

type Row = Readonly<Record<string, unknown>>;

function fileOf(row: Row): StoredFile {
  return {
    sha256: String(row["sha256"]),
    path: String(row["path"]),
    bytes: Number(row["bytes"]),
    mediaType: String(row["media_type"]),
  };
}

function partOf({ place, work, file, etag, shelving }: Row): PartialDownload {
  const later = textOf(shelving);
  return {
    place: String(place),
    work: Number(work),
    file: String(file),
    validator: textOf(etag),
    shelving: later === undefined ? undefined : (JSON.parse(later) as DownloadedFile),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
