import { randomBytes } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Time } from "../../../time/time.ts";
import {
  type DownloadedFile,
  fileOfRow,
  type KnownSource,
  type ManifestFiles,
  type PartialDownload,
  partOfRow,
  type StoredFile,
  sourceOfRow,
} from "../manifest-files.ts";

/** The tables `files`, `sources` and `parts`. The column `place` has the hash of the URL. */
export class SqliteFiles implements ManifestFiles {
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

  async file(sha256: string): Promise<StoredFile | undefined> {
    const row = this.#file.get(sha256);
    return row === undefined ? undefined : fileOfRow(row);
  }

  async ofWork(work: number): Promise<readonly StoredFile[]> {
    return this.#ofWork.all(work).map(fileOfRow);
  }

  async source(urlHash: string): Promise<KnownSource | undefined> {
    const row = this.#source.get(urlHash);
    return row === undefined ? undefined : sourceOfRow(row);
  }

  newPartName(): string {
    return `${randomBytes(12).toString("hex")}.part`;
  }

  isOwnPart(): boolean {
    return true;
  }

  async part(urlHash: string): Promise<PartialDownload | undefined> {
    const row = this.#part.get(urlHash);
    return row === undefined ? undefined : partOfRow(row);
  }

  /** Of all works: no other process uses the manifest. */
  async parts(): Promise<readonly PartialDownload[]> {
    return this.#parts.all().map(partOfRow);
  }

  async partsOf(work: number): Promise<readonly PartialDownload[]> {
    return this.#partsOf.all(work).map(partOfRow);
  }

  async savePart({ urlHash, work, file, validator, totalBytes, destination }: PartialDownload): Promise<void> {
    const shelving = destination === undefined ? null : JSON.stringify(destination);
    this.#setPart.run(urlHash, work, file, validator ?? null, totalBytes ?? null, shelving);
  }

  async deletePart(urlHash: string): Promise<void> {
    this.removePart(urlHash);
  }

  async abandoned(files: readonly string[]): Promise<readonly string[]> {
    const known = new Set(this.#parts.all().map(row => row["file"]));
    return files.filter(file => !known.has(file));
  }

  /** Records a file and its source. The caller opens the transaction. */
  addFile(run: number, downloaded: DownloadedFile): void {
    const { sha256, path, bytes, mediaType, urlHash, etag, lastModified, flag, displaced } = downloaded;
    if (displaced !== undefined) this.#move.run(displaced.path, displaced.sha256);
    this.#insert.run(sha256, path, bytes, mediaType, this.#time.wallMs(), flag ?? null);
    this.#setSource.run(urlHash, sha256, etag ?? null, lastModified ?? null, run);
  }

  /** `deletePart` for a caller that has opened a transaction. */
  removePart(urlHash: string): void {
    this.#deletePart.run(urlHash);
  }

  /** The caller opens the transaction. */
  deleteParts(work: number): void {
    this.#deleteParts.run(work);
  }
}
