import { randomBytes } from "node:crypto";
import type { Queryable } from "../../../stores/postgres/postgres-driver.ts";
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
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

const FILE_COLUMNS = "files.sha256, files.path, files.bytes, files.media_type, files.flag";
const PARTS = "SELECT place, work, file, etag, total_bytes, shelving FROM parts";

/**
 * The tables `files`, `sources` and `parts`. The column `place` has the hash of the URL. A partial file belongs to one
 * work and is named after its worker: two workers that download the same URL must not write to one file.
 */
export class PostgresFiles implements ManifestFiles {
  readonly #connection: PostgresConnection;
  readonly #worker: PostgresWorker;

  constructor(connection: PostgresConnection, worker: PostgresWorker) {
    this.#connection = connection;
    this.#worker = worker;
  }

  async file(sha256: string): Promise<StoredFile | undefined> {
    const [row] = await this.#connection.read(`SELECT ${FILE_COLUMNS} FROM files WHERE sha256 = $1`, [sha256]);
    return row && fileOfRow(row);
  }

  async ofWork(work: number): Promise<readonly StoredFile[]> {
    const rows = await this.#connection.read(
      `SELECT ${FILE_COLUMNS} FROM work_files JOIN files USING (sha256) WHERE work = $1 ORDER BY role, path`,
      [work],
    );
    return rows.map(fileOfRow);
  }

  async source(urlHash: string): Promise<KnownSource | undefined> {
    const [row] = await this.#connection.read(
      `SELECT sources.etag, sources.last_modified, sources.run, ${FILE_COLUMNS}
       FROM sources JOIN files USING (sha256) WHERE place = $1`,
      [urlHash],
    );
    return row && sourceOfRow(row);
  }

  newPartName(): string {
    return `w${this.#worker.id}-${randomBytes(12).toString("hex")}.part`;
  }

  isOwnPart(file: string): boolean {
    return file.startsWith(`w${this.#worker.id}-`);
  }

  async part(urlHash: string, work: number): Promise<PartialDownload | undefined> {
    const [row] = await this.#connection.read(`${PARTS} WHERE place = $1 AND work = $2`, [urlHash, work]);
    return row && partOfRow(row);
  }

  async partsOf(work: number): Promise<readonly PartialDownload[]> {
    return (await this.#connection.read(`${PARTS} WHERE work = $1`, [work])).map(partOfRow);
  }

  async savePart({ urlHash, work, file, validator, totalBytes, destination }: PartialDownload): Promise<void> {
    const shelving = destination === undefined ? null : JSON.stringify(destination);
    await this.#connection.transaction(async client => {
      await this.#worker.check(client, work);
      await client.query(
        `INSERT INTO parts (place, work, file, etag, total_bytes, shelving) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (work, place) DO UPDATE SET file = excluded.file, etag = excluded.etag,
           total_bytes = excluded.total_bytes, shelving = excluded.shelving`,
        [urlHash, work, file, validator ?? null, totalBytes ?? null, shelving],
      );
    });
  }

  async deletePart(urlHash: string, work: number): Promise<void> {
    await this.#connection.transaction(async client => {
      await this.#worker.check(client, work);
      await client.query("DELETE FROM parts WHERE place = $1 AND work = $2", [urlHash, work]);
    });
  }

  async abandoned(files: readonly string[]): Promise<readonly string[]> {
    const rows = await this.#connection.read(
      `SELECT name FROM unnest($1::text[]) AS name WHERE name NOT IN (SELECT file FROM parts)
         AND substring(name FROM '^w([0-9]{1,15})-')::bigint NOT IN (SELECT id FROM workers)`,
      [files],
    );
    return rows.map(({ name }) => String(name));
  }

  /** Records a file and its source. Returns the file that has these bytes: another worker may have stored them first. */
  async addFile(client: Queryable, run: number, downloaded: DownloadedFile): Promise<StoredFile> {
    const { sha256, path, bytes, mediaType, urlHash, etag, lastModified, flag, displaced, replaces } = downloaded;
    if (displaced !== undefined)
      await client.query("UPDATE files SET path = $1 WHERE sha256 = $2", [displaced.path, displaced.sha256]);
    await client.query(
      `INSERT INTO files (sha256, path, bytes, media_type, added_ms, flag) VALUES ($1, $2, $3, $4, ${NOW_MS}, $5)
       ON CONFLICT (sha256) DO UPDATE SET path = excluded.path WHERE files.path = $6`,
      [sha256, path, bytes, mediaType, flag ?? null, replaces ?? null],
    );
    await client.query(
      `INSERT INTO sources (place, sha256, etag, last_modified, run) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (place) DO UPDATE SET sha256 = excluded.sha256, etag = excluded.etag,
         last_modified = excluded.last_modified, run = excluded.run`,
      [urlHash, sha256, etag ?? null, lastModified ?? null, run],
    );
    const { rows } = await client.query(`SELECT ${FILE_COLUMNS} FROM files WHERE sha256 = $1`, [sha256]);
    return fileOfRow(rows[0] ?? {});
  }
}
