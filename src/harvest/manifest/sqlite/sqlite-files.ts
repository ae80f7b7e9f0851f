import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { sha256Of } from "../../../files/file-hash.ts";
import type { Time } from "../../../time/time.ts";
import {
  type DownloadedFile,
  fileOfRow,
  type KnownDownload,
  type ManifestFiles,
  type PartialDownload,
  partOfRow,
  type StoredFile,
  sourceOfRow,
} from "../manifest-files.ts";

/**
 * The tables `files`, `sources` and `parts`. The column `place` has the hash of the URL. A partial file belongs to one
 * work: two works that download the same URL must not write to one file.
 */
export class SqliteFiles implements ManifestFiles {
  readonly #time: Time;
  /** The prefix of all partial files of this manifest: other manifests may use the same folder at the same time. */
  readonly #partPrefix: string;
  readonly #file: StatementSync;
  readonly #ofWork: StatementSync;
  readonly #insert: StatementSync;
  readonly #move: StatementSync;
  readonly #source: StatementSync;
  readonly #setSource: StatementSync;
  readonly #part: StatementSync;
  readonly #parts: StatementSync;
  readonly #setPart: StatementSync;
  readonly #deletePart: StatementSync;
  readonly #deleteParts: StatementSync;
  readonly #forgetEnded: StatementSync;

  /** @param path of the manifest */
  constructor(db: DatabaseSync, path: string, time: Time) {
    this.#time = time;
    this.#partPrefix = `m${sha256Of(resolve(path)).slice(0, 12)}-`;
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
    this.#part = db.prepare(`${parts} WHERE work = ? AND place = ?`);
    this.#parts = db.prepare(parts);
    this.#setPart = db.prepare(
      `INSERT INTO parts (place, work, file, etag, total_bytes, shelving) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (work, place) DO UPDATE SET file = excluded.file, etag = excluded.etag,
         total_bytes = excluded.total_bytes, shelving = excluded.shelving`,
    );
    this.#deletePart = db.prepare("DELETE FROM parts WHERE work = ? AND place = ? RETURNING file");
    this.#deleteParts = db.prepare("DELETE FROM parts WHERE work = ? RETURNING file");
    this.#forgetEnded = db.prepare(
      `DELETE FROM parts WHERE shelving IS NULL
         AND EXISTS (SELECT 1 FROM works WHERE works.id = parts.work AND state = 'done')`,
    );
  }

  async file(sha256: string): Promise<StoredFile | undefined> {
    const row = this.#file.get(sha256);
    return row && fileOfRow(row);
  }

  async knownDownload(urlHash: string, work: number): Promise<KnownDownload> {
    const source = this.#source.get(urlHash);
    const part = this.#part.get(work, urlHash);
    const ofWork = this.#ofWork.all(work).map(fileOfRow);
    return { source: source && sourceOfRow(source), part: part && partOfRow(part), ofWork };
  }

  newPartName(): string {
    return `${this.#partPrefix}${randomBytes(12).toString("hex")}.part`;
  }

  isOwnPart(): boolean {
    return true;
  }

  /** Forgets the incomplete files of works that are done or merged: no work resumes them. `abandoned` returns them. */
  forgetEnded(): void {
    this.#forgetEnded.run();
  }

  /** The partial files of all works: no other process uses the manifest. */
  async parts(): Promise<readonly PartialDownload[]> {
    return this.#parts.all().map(partOfRow);
  }

  async savePart(part: PartialDownload): Promise<StoredFile | undefined> {
    const { urlHash, work, file, validator, totalBytes, destination } = part;
    const shelving = destination === undefined ? null : JSON.stringify(destination);
    this.#setPart.run(urlHash, work, file, validator ?? null, totalBytes ?? null, shelving);
    return destination && this.file(destination.sha256);
  }

  async deletePart(urlHash: string, work: number): Promise<void> {
    this.#deletePart.run(work, urlHash);
  }

  async abandoned(files: readonly string[]): Promise<readonly string[]> {
    const known = new Set(this.#parts.all().map(row => row["file"]));
    return files.filter(file => (file.startsWith(this.#partPrefix) || hasNoPrefix(file)) && !known.has(file));
  }

  /** Records a file and its source. The caller opens the transaction. */
  addFile(run: number, downloaded: DownloadedFile): void {
    const { sha256, path, bytes, mediaType, urlHash, etag, lastModified, flag, displaced } = downloaded;
    if (displaced !== undefined) this.#move.run(displaced.path, displaced.sha256);
    this.#insert.run(sha256, path, bytes, mediaType, this.#time.wallMs(), flag ?? null);
    this.#setSource.run(urlHash, sha256, etag ?? null, lastModified ?? null, run);
  }

  /** `deletePart` for a caller that has opened a transaction. Returns the names of the partial files. */
  removePart(urlHash: string, work: number): readonly string[] {
    return this.#deletePart.all(work, urlHash).map(({ file }) => String(file));
  }

  /** The caller opens the transaction. Returns the names of the partial files. */
  removePartsOf(work: number): readonly string[] {
    return this.#deleteParts.all(work).map(({ file }) => String(file));
  }
}

/** Earlier versions named partial files without a prefix. */
function hasNoPrefix(file: string): boolean {
  return !file.includes("-");
}
