import { randomBytes } from "node:crypto";
import {
  fileOfRow,
  type KnownSource,
  type ManifestFiles,
  type PartialDownload,
  partOfRow,
  type StoredFile,
  sourceOfRow,
} from "../manifest-files.ts";
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
    await this.#worker.apply(
      work,
      [
        `saved AS (INSERT INTO parts (place, work, file, etag, total_bytes, shelving)
           SELECT $3, id, $4, $5, $6::bigint, $7 FROM changed
           ON CONFLICT (work, place) DO UPDATE SET file = excluded.file, etag = excluded.etag,
             total_bytes = excluded.total_bytes, shelving = excluded.shelving)`,
      ],
      "SELECT 1 FROM changed",
      [urlHash, file, validator ?? null, totalBytes ?? null, shelving],
    );
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
}
