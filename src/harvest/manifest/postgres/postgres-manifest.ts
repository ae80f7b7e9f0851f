import { isDocstokgError, messageOf, StoreError } from "../../../errors.ts";
import type { Time } from "../../../time/time.ts";
import type { DoneReason, Reason } from "../../reason.ts";
import { redactedUrl } from "../../redacted-url.ts";
import type { AttemptRecord, Manifest, ManifestLock, RunPhase, UnfinishedRun } from "../manifest.ts";
import type { DownloadedFile, StoredFile } from "../manifest-files.ts";
import type { WorkerStatus } from "../manifest-workers.ts";
import { DELETE_OLD_MARKS } from "./commit-marks.ts";
import { NOW_MS } from "./postgres-clock.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import type { Queryable } from "./postgres-driver.ts";
import { PostgresFiles } from "./postgres-files.ts";
import { PostgresList } from "./postgres-list.ts";
import { PostgresListener } from "./postgres-listener.ts";
import { PostgresQueue } from "./postgres-queue.ts";
import { PostgresReports } from "./postgres-reports.ts";
import { isCurrent, manifestVersion, migrate } from "./postgres-schema.ts";
import { PostgresTables } from "./postgres-tables.ts";
import { PostgresTakeover, type RecoverParts } from "./postgres-takeover.ts";
import { type PostgresAddress, parsePostgresUrl } from "./postgres-url.ts";
import { PostgresWorker } from "./postgres-worker.ts";
import { PostgresWorks } from "./postgres-works.ts";

/** The longest name of a channel. */
const CHANNEL_CHARS = 63;

/** A manifest in a PostgreSQL database. Any number of processes on any machine work on it at the same time. */
export class PostgresManifest implements Manifest {
  readonly name: string;
  readonly files: PostgresFiles;
  readonly works: PostgresWorks;
  readonly queue: PostgresQueue;
  readonly reports: PostgresReports;
  readonly tables: PostgresTables;
  readonly #connection: PostgresConnection;
  readonly #list: PostgresList;
  readonly #worker: PostgresWorker;
  readonly #takeover: PostgresTakeover;
  readonly #listener: PostgresListener;
  #onChange: () => void = () => undefined;
  #onLost: (error: unknown) => void = () => undefined;

  /** Rejects with a ConfigError if the database cannot be used. @param url may contain a password */
  static async open(url: string, time: Time): Promise<PostgresManifest> {
    const address = parsePostgresUrl(url);
    const connection = await PostgresConnection.open(address, time);
    try {
      await connection.check(client => prepare(client, address.schema));
      return new PostgresManifest(address, connection, time);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Like `open`, but undefined if the schema has no manifest. */
  static async find(url: string, time: Time): Promise<PostgresManifest | undefined> {
    const address = parsePostgresUrl(url);
    const connection = await PostgresConnection.open(address, time);
    try {
      const version = await connection.check(client => manifestVersion(client, address.schema));
      return version === undefined ? undefined : await PostgresManifest.open(url, time);
    } finally {
      await connection.close();
    }
  }

  private constructor({ name, schema, leaseMs }: PostgresAddress, connection: PostgresConnection, time: Time) {
    this.name = name;
    this.#connection = connection;
    this.#list = new PostgresList(connection);
    const channel = `docstokg_${schema}`.slice(0, CHANNEL_CHARS);
    this.#worker = new PostgresWorker({
      ...{ connection, leaseMs, channel, time },
      onRenewed: () => this.#renewed(),
      onLost: error => this.#onLost(error),
    });
    this.#takeover = new PostgresTakeover(connection, this.#worker, leaseMs);
    this.#listener = new PostgresListener(connection, channel, time, () => this.#onChange());
    this.files = new PostgresFiles(connection, this.#worker);
    this.works = new PostgresWorks(connection, this.#list, this.#worker);
    this.queue = new PostgresQueue(connection, this.#worker, time);
    this.reports = new PostgresReports(connection);
    this.tables = new PostgresTables(connection);
  }

  async tryLock(): Promise<ManifestLock | undefined> {
    const workers = await this.reports.workers();
    return workers.some(({ isAlive }) => isAlive) ? undefined : { release: () => undefined };
  }

  async beginRun(command: string, settings?: string): Promise<number> {
    // Runs that were stopped and whose works have moved to a later run have nothing left to do.
    const { rows } = await this.#connection.transaction(async client => {
      await client.query(
        `UPDATE runs SET state = 'interrupted', ended_ms = ${NOW_MS} WHERE state = 'running'
           AND NOT EXISTS (SELECT 1 FROM works WHERE run = runs.id AND state = 'pending')
           AND NOT EXISTS (SELECT 1 FROM workers WHERE run = runs.id AND lease_until_ms >= ${NOW_MS})`,
      );
      await client.query(DELETE_OLD_MARKS);
      return client.query(
        `INSERT INTO runs (command, settings, started_ms, state) VALUES ($1, $2, ${NOW_MS}, 'running') RETURNING id`,
        [command, settings ?? null],
      );
    });
    const run = Number(rows[0]?.["id"]);
    await this.#worker.begin(run, true);
    return run;
  }

  async nextRun(): Promise<UnfinishedRun | undefined> {
    const [row] = await this.#connection.read(
      `SELECT id, settings FROM runs WHERE state = 'running' AND settings IS NOT NULL
         AND (EXISTS (SELECT 1 FROM works WHERE run = runs.id AND state = 'pending')
           OR EXISTS (SELECT 1 FROM workers WHERE run = runs.id AND is_listing AND lease_until_ms >= ${NOW_MS}))
         AND NOT EXISTS (SELECT 1 FROM workers JOIN runs AS exclusive ON exclusive.id = workers.run
           WHERE exclusive.settings IS NULL AND lease_until_ms >= ${NOW_MS})
       ORDER BY id LIMIT 1`,
    );
    return row && { id: Number(row["id"]), settings: String(row["settings"]) };
  }

  async joinRun(run: number): Promise<void> {
    await this.#worker.begin(run, false);
  }

  endListing(): Promise<void> {
    return this.#worker.endListing();
  }

  async endRun(run: number, state: Exclude<RunPhase, "running">): Promise<void> {
    await this.#list.rollback();
    await this.#worker.end();
    // While works are pending or added, the run goes on: other workers have them, or will.
    await this.#connection.write(
      `UPDATE runs SET state = $2, ended_ms = ${NOW_MS} WHERE id = $1 AND state = 'running'
         AND NOT EXISTS (SELECT 1 FROM works WHERE run = $1 AND state = 'pending')
         AND NOT EXISTS (SELECT 1 FROM workers WHERE run = $1 AND is_listing)`,
      [run, state],
    );
    await this.#worker.announce();
  }

  recover(recoverParts: RecoverParts): Promise<void> {
    return this.#takeover.begin(recoverParts);
  }

  watch(onChange: () => void, onLost?: (error: unknown) => void, statusOf?: () => WorkerStatus): void {
    this.#onChange = onChange;
    if (onLost !== undefined) this.#onLost = onLost;
    if (statusOf !== undefined) this.#worker.statusOf = statusOf;
    this.#listener.start();
  }

  beginList(): Promise<void> {
    return this.#list.begin();
  }

  async commitList(): Promise<void> {
    await this.#list.end("COMMIT");
    await this.#worker.announce();
  }

  rollbackList(): Promise<void> {
    return this.#list.rollback();
  }

  async recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void> {
    const { step, resolver, url, status = null, reason, message = null, bytes = 0, sha256 = null } = attempt;
    await this.#connection.write(
      `INSERT INTO attempts (work, run, step, resolver, url, status, reason, message, bytes, sha256, elapsed_ms, ended_ms)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, ${NOW_MS})`,
      [
        work,
        run,
        step,
        resolver,
        redactedUrl(url),
        status,
        reason,
        message,
        bytes,
        sha256,
        Math.round(attempt.elapsedMs),
      ],
    );
  }

  finish(run: number, work: number, reason: DoneReason, downloaded: DownloadedFile): Promise<StoredFile> {
    const { sha256, url, resolver, licence = null, version = null, displaced, role = "article" } = downloaded;
    return this.#connection.transaction(async client => {
      await this.#worker.check(client, work);
      const stored = await this.files.addFile(client, run, downloaded);
      if (displaced !== undefined)
        await client.query("DELETE FROM work_files WHERE work = $1 AND sha256 = $2", [work, displaced.sha256]);
      await client.query(
        `INSERT INTO work_files (work, role, sha256, url, resolver) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (work, sha256) DO UPDATE SET role = excluded.role, url = excluded.url, resolver = excluded.resolver`,
        [work, role, sha256, url, resolver],
      );
      await client.query("DELETE FROM parts WHERE work = $1", [work]);
      await client.query(
        `UPDATE works SET state = 'done', reason = $1, message = NULL, sha256 = $2, url = $3, resolver = $4, licence = $5,
           version = $6, ended_ms = ${NOW_MS}, taken_by = NULL, progress = NULL WHERE id = $7`,
        [reason, sha256, url, resolver, licence, version, work],
      );
      return stored;
    });
  }

  async fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    keepsProgress = false,
  ): Promise<void> {
    await this.#connection.transaction(client =>
      this.#worker.change(
        client,
        `UPDATE works SET state = 'failed', reason = $1, message = coalesce($2, message), sha256 = NULL,
           ended_ms = ${NOW_MS}, taken_by = NULL, progress = CASE WHEN $3 THEN progress ELSE $4 END
         WHERE id = $5 AND taken_by = $6`,
        [reason, message ?? null, keepsProgress, progress ?? null, work],
      ),
    );
  }

  errorFrom(error: unknown): unknown {
    if (isDocstokgError(error)) return error;
    const isOfServer = error instanceof Error && "severity" in error;
    return isOfServer
      ? new StoreError(`cannot write the manifest ${this.name}: ${messageOf(error)}`, { cause: error })
      : error;
  }

  stopWaiting(): void {
    this.#connection.stopWaiting();
  }

  async close(): Promise<void> {
    this.#onChange = () => undefined;
    this.#onLost = () => undefined;
    this.#connection.stopWaiting();
    await this.#list.rollback();
    await this.#listener.stop();
    try {
      await this.#worker.end();
    } catch {
      // The server is away: the works are given back when the lease ends.
    }
    await this.#connection.close();
  }

  async #renewed(): Promise<void> {
    try {
      await this.#takeover.takeOver();
      this.#onChange();
    } catch (error) {
      // A file could not be recovered, or the server does not answer: the run ends with the error.
      this.#onLost(error);
    }
  }
}

/** Creates or migrates the tables. A role that may only read and write rows can use a manifest that is up to date. */
async function prepare(client: Queryable, schema: string): Promise<void> {
  if (isCurrent(await manifestVersion(client, schema))) return;
  await client.query("BEGIN");
  await migrate(client, schema);
  await client.query("COMMIT");
}
