import { randomBytes } from "node:crypto";
import { sha256Of } from "../../../files/file-hash.ts";
import {
  fileOfRow,
  type KnownDownload,
  type ManifestFiles,
  type PartialDownload,
  partOfRow,
  type StoredFile,
  sourceOfRow,
} from "../manifest-files.ts";
import type { Row } from "../manifest-row.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

const FILE_COLUMNS = "files.sha256, files.path, files.bytes, files.media_type, files.flag";

/**
 * The tables `files`, `sources` and `parts`. The column `place` has the hash of the URL. A partial file belongs to one
 * work and is named after its worker: two workers that download the same URL must not write to one file.
 */
export class PostgresFiles implements ManifestFiles {
  readonly #connection: PostgresConnection;
  readonly #worker: PostgresWorker;
  /** The prefix of all partial files of this manifest: other manifests may use the same folder at the same time. */
  readonly #partPrefix: string;

  /** @param name of the manifest */
  constructor(connection: PostgresConnection, worker: PostgresWorker, name: string) {
    this.#connection = connection;
    this.#worker = worker;
    this.#partPrefix = `p${sha256Of(name).slice(0, 12)}`;
  }

  async file(sha256: string): Promise<StoredFile | undefined> {
    const [row] = await this.#connection.lookUp(`SELECT ${FILE_COLUMNS} FROM files WHERE sha256 = $1`, [sha256]);
    return row && fileOfRow(row);
  }

  async knownDownload(urlHash: string, work: number): Promise<KnownDownload> {
    const [row = {}] = await this.#connection.lookUp(
      `SELECT sources.etag, sources.last_modified, sources.run, ${FILE_COLUMNS}, parts.place, parts.work, parts.file,
         parts.etag AS part_etag, parts.total_bytes, parts.shelving,
         (SELECT json_agg(of_work) FROM (SELECT ${FILE_COLUMNS} FROM work_files JOIN files USING (sha256) WHERE work = $2
          ORDER BY role, path) AS of_work) AS of_work
       FROM (SELECT $1::text AS place) AS wanted
         LEFT JOIN (sources JOIN files USING (sha256)) ON sources.place = wanted.place
         LEFT JOIN parts ON parts.place = wanted.place AND parts.work = $2`,
      [urlHash, work],
    );
    return {
      source: typeof row["sha256"] === "string" ? sourceOfRow(row) : undefined,
      part: typeof row["file"] === "string" ? partOfRow({ ...row, etag: row["part_etag"] }) : undefined,
      ofWork: ((row["of_work"] ?? []) as readonly Row[]).map(fileOfRow),
    };
  }

  newPartName(): string {
    return `${this.#partPrefix}w${this.#worker.id}-${randomBytes(12).toString("hex")}.part`;
  }

  isOwnPart(file: string): boolean {
    return file.startsWith(`${this.#partPrefix}w${this.#worker.id}-`);
  }

  async savePart(part: PartialDownload): Promise<StoredFile | undefined> {
    const { urlHash, work, file, validator, totalBytes, destination } = part;
    const shelving = destination === undefined ? null : JSON.stringify(destination);
    const rows = await this.#worker.apply(
      work,
      [
        `saved AS (INSERT INTO parts (place, work, file, etag, total_bytes, shelving)
           SELECT $3, id, $4, $5, $6::bigint, $7 FROM changed
           ON CONFLICT (work, place) DO UPDATE SET file = excluded.file, etag = excluded.etag,
             total_bytes = excluded.total_bytes, shelving = excluded.shelving)`,
      ],
      `SELECT ${FILE_COLUMNS} FROM changed LEFT JOIN files ON files.sha256 = $8`,
      [urlHash, file, validator ?? null, totalBytes ?? null, shelving, destination?.sha256 ?? null],
    );
    // The reply was lost.
    if (rows === undefined) return destination && this.file(destination.sha256);
    const [row] = rows;
    return typeof row?.["sha256"] === "string" ? fileOfRow(row) : undefined;
  }

  async deletePart(urlHash: string, work: number): Promise<void> {
    await this.#worker.apply(
      work,
      ["gone AS (DELETE FROM parts WHERE place = $3 AND work IN (SELECT id FROM changed))"],
      "SELECT 1 FROM changed",
      [urlHash],
    );
  }

  async abandoned(files: readonly string[]): Promise<readonly string[]> {
    // Earlier versions named partial files without the prefix.
    const workerOfName = `^(?:${this.#partPrefix})?w([0-9]{1,15})-`;
    const rows = await this.#connection.read(
      // The name of another manifest has no worker: NULL NOT IN (...) would be true if there is no row in `workers`.
      `SELECT name
       FROM (SELECT name, substring(name FROM $2)::bigint AS worker FROM unnest($1::text[]) AS name) AS listed
       WHERE worker IS NOT NULL AND NOT EXISTS (SELECT 1 FROM workers WHERE id = worker)
         AND NOT EXISTS (SELECT 1 FROM parts WHERE file = name)`,
      [files, workerOfName],
    );
    return rows.map(({ name }) => String(name));
  }
}
