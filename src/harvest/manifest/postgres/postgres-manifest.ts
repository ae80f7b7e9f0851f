import { ConfigError, isDocstokgError, messageOf, StoreError } from "../../../errors.ts";
import type { Queryable } from "../../../stores/postgres/postgres-driver.ts";
import type { Time } from "../../../time/time.ts";
import type { DoneReason, Reason } from "../../reason.ts";
import type { AttemptRecord, FailedState, Manifest, ManifestLock, RunPhase, UnfinishedRun } from "../manifest.ts";
import type { DownloadedFile, FinishedFile } from "../manifest-files.ts";
import type { TakenWork } from "../manifest-queue.ts";
import { INVALID_JSON } from "../manifest-row.ts";
import type { WorkerStatus } from "../manifest-workers.ts";
import { DELETE_OLD_MARKS } from "./commit-marks.ts";
import { KnownTexts } from "./known-texts.ts";
import { NOW_MS } from "./postgres-clock.ts";
import { PostgresConnection } from "./postgres-connection.ts";
import { PostgresFiles } from "./postgres-files.ts";
import { PostgresList } from "./postgres-list.ts";
import { PostgresListener } from "./postgres-listener.ts";
import { PostgresQueue } from "./postgres-queue.ts";
import { PostgresReports } from "./postgres-reports.ts";
import { PostgresResults } from "./postgres-results.ts";
import { PostgresRobots } from "./postgres-robots.ts";
import { isCurrent, manifestVersion, migrate } from "./postgres-schema.ts";
import { PostgresSessions } from "./postgres-sessions.ts";
import { PostgresTables } from "./postgres-tables.ts";
import { PostgresTakeover, type RecoverParts } from "./postgres-takeover.ts";
import { type PostgresAddress, parsePostgresUrl } from "./postgres-url.ts";
import { PostgresWorker } from "./postgres-worker.ts";
import { PostgresWorks } from "./postgres-works.ts";

/** The longest name of a channel. */
const CHANNEL_CHARS = 63;
/** SQLSTATE of a missing table, a missing column, a damaged table and a damaged index. */
const READ_FAILURES: ReadonlySet<string> = new Set(["42P01", "42703", "XX001", "XX002"]);

/** A manifest in a PostgreSQL database. Any number of processes on any machine work on it at the same time. */
export class PostgresManifest implements Manifest {
  readonly name: string;
  readonly files: PostgresFiles;
  readonly works: PostgresWorks;
  readonly queue: PostgresQueue;
  readonly reports: PostgresReports;
  readonly robots: PostgresRobots;
  readonly tables: PostgresTables;
  readonly #connection: PostgresConnection;
  readonly #leaseConnection: PostgresConnection;
  readonly #list: PostgresList;
  readonly #results: PostgresResults;
  readonly #worker: PostgresWorker;
  readonly #takeover: PostgresTakeover;
  readonly #listener: PostgresListener;
  readonly #sessions: PostgresSessions;
  #onChange: () => void = () => undefined;
  #onLost: (error: unknown) => void = () => undefined;
  #onOverdue: (isOverdue: boolean) => void = () => undefined;
  #onDead: (storeIds: readonly string[]) => void = () => undefined;

  /**
   * Rejects with a ConfigError if the database cannot be used, and with a StoreError if its server cannot be reached.
   * @param url may contain a password
   */
  static async open(url: string, time: Time): Promise<PostgresManifest> {
    const address = parsePostgresUrl(url);
    const connection = await PostgresConnection.open(address, time);
    try {
      await connection.check(client => prepare(client, address.schema));
      return new PostgresManifest(address, connection, await PostgresConnection.open(address, time, 1), time);
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  /** Like `open`, but undefined if the schema has no manifest. */
  static async find(url: string, time: Time): Promise<PostgresManifest | undefined> {
    const address = parsePostgresUrl(url);
    const connection = await PostgresConnection.open(address, time);
    let manifest: PostgresManifest | undefined;
    try {
      const version = await connection.check(client => manifestVersion(client, address.schema));
      if (version !== undefined) {
        await connection.check(client => prepare(client, address.schema));
        manifest = new PostgresManifest(address, connection, await PostgresConnection.open(address, time, 1), time);
      }
      return manifest;
    } finally {
      if (manifest === undefined) await connection.close();
    }
  }

  private constructor(
    { name, schema, leaseMs }: PostgresAddress,
    connection: PostgresConnection,
    leaseConnection: PostgresConnection,
    time: Time,
  ) {
    this.name = name;
    this.#connection = connection;
    this.#leaseConnection = leaseConnection;
    this.#list = new PostgresList(connection);
    const channel = `docstokg_${schema}`.slice(0, CHANNEL_CHARS);
    this.#worker = new PostgresWorker({
      ...{ connection, leaseConnection, leaseMs, channel, time },
      onRenewed: () => this.#takeOver(),
      onOverdue: isOverdue => this.#onOverdue(isOverdue),
      onLost: error => this.#onLost(error),
    });
    this.#takeover = new PostgresTakeover(connection, leaseConnection, this.#worker, leaseMs);
    this.#sessions = new PostgresSessions({
      ...{ connection: leaseConnection, worker: this.#worker, time },
      onEnded: workers => this.#takeOver(workers),
    });
    this.#listener = new PostgresListener({
      ...{ connection, channel, time },
      onChange: () => this.#onChange(),
      onDead: storeIds => this.#onDead(storeIds),
      onSession: session => {
        this.#sessions.setSession(session);
        void this.#worker.setSession(session);
      },
    });
    this.files = new PostgresFiles(connection, this.#worker, name);
    const texts = new KnownTexts();
    this.works = new PostgresWorks(connection, this.#list, this.#worker, texts);
    this.queue = new PostgresQueue(connection, this.#worker, texts);
    this.reports = new PostgresReports(connection);
    this.robots = new PostgresRobots(connection);
    this.#results = new PostgresResults(connection, this.#worker, this.files);
    this.tables = new PostgresTables(connection);
  }

  async tryLock(): Promise<ManifestLock | undefined> {
    return (await this.isInUse()) ? undefined : { release: () => undefined };
  }

  async isInUse(): Promise<boolean> {
    return (await this.reports.workers()).some(({ isAlive }) => isAlive);
  }

  async beginRun(command: string, settings?: string, flags?: string): Promise<number> {
    await this.#checkWritable();
    // A stopped run whose works have moved to a later run has nothing left to do.
    const { rows } = await this.#connection.transaction(async client => {
      await client.query(
        `UPDATE runs SET state = 'interrupted', ended_ms = ${NOW_MS} WHERE state = 'running'
           AND NOT EXISTS (SELECT 1 FROM works WHERE run = runs.id AND state = 'pending')
           AND NOT EXISTS (SELECT 1 FROM workers WHERE run = runs.id AND lease_until_ms >= ${NOW_MS})`,
      );
      await client.query(DELETE_OLD_MARKS);
      return client.query(
        `INSERT INTO runs (command, settings, flags, started_ms, state) VALUES ($1, $2, $3, ${NOW_MS}, 'running')
         RETURNING id`,
        [command, settings ?? null, flags ?? null],
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
    // While works are pending or still being added, the run goes on: other workers have these works, or will take them.
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

  watch(
    onChange: () => void,
    onLost?: (error: unknown) => void,
    statusOf?: () => WorkerStatus,
    onOverdue?: (isOverdue: boolean) => void,
  ): void {
    this.#onChange = onChange;
    if (onOverdue !== undefined) this.#onOverdue = onOverdue;
    if (onLost !== undefined) this.#onLost = onLost;
    if (statusOf !== undefined) this.#worker.statusOf = statusOf;
    this.#listener.start();
    this.#sessions.start();
  }

  shareLimits(storeId: string, onDead: (storeIds: readonly string[]) => void): void {
    this.#worker.storeId = storeId;
    this.#onDead = onDead;
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

  recordAttempt(run: number, work: number, attempt: AttemptRecord): Promise<void> {
    return this.#results.recordAttempt(run, work, attempt);
  }

  finish(
    run: number,
    work: number,
    reason: DoneReason,
    downloaded: DownloadedFile,
    attempt?: AttemptRecord,
  ): Promise<FinishedFile> {
    return this.#results.finish(run, work, reason, downloaded, attempt);
  }

  saveProgress(work: number, queue: string, progress: string): Promise<void> {
    return this.#results.saveProgress(work, queue, progress);
  }

  complete(work: number, reason: DoneReason, message?: string, inherited?: number): Promise<TakenWork | undefined> {
    return this.#results.complete(work, reason, message, inherited);
  }

  fail(
    work: number,
    reason: Reason,
    message: string | undefined,
    progress?: string,
    inherited?: number,
  ): Promise<FailedState | TakenWork> {
    return this.#results.fail(work, reason, message, progress, inherited);
  }

  errorFrom(error: unknown): unknown {
    if (isDocstokgError(error)) return error;
    if (error instanceof SyntaxError)
      return new StoreError(`cannot read the manifest ${this.name}: ${INVALID_JSON}`, { cause: error });
    const isOfServer = error instanceof Error && "severity" in error;
    if (!isOfServer) return error;
    const verb = "code" in error && READ_FAILURES.has(String(error.code)) ? "read" : "write";
    return new StoreError(`cannot ${verb} the manifest ${this.name}: ${messageOf(error)}`, { cause: error });
  }

  stopWaiting(): void {
    this.#connection.stopWaiting();
    this.#leaseConnection.stopWaiting();
  }

  async close(): Promise<void> {
    this.#onChange = () => undefined;
    this.#onLost = () => undefined;
    this.#onOverdue = () => undefined;
    this.#onDead = () => undefined;
    this.stopWaiting();
    this.#sessions.stop();
    await this.#list.rollback();
    await this.#listener.stop();
    try {
      await this.#worker.end();
    } catch {
      // The server is away: the works are given back when the lease ends.
    }
    await Promise.all([this.#connection.close(), this.#leaseConnection.close()]);
  }

  /** Writes wait for a server that was demoted. A run that begins on a read-only server is a mistake, and must not wait. */
  async #checkWritable(): Promise<void> {
    const [row] = await this.#connection.read("SHOW transaction_read_only");
    if (row?.["transaction_read_only"] !== "on") return;
    const message = `cannot write the manifest ${this.name}: the server is read-only`;
    throw new ConfigError([{ where: "--manifest", path: "", message }]);
  }

  async #takeOver(suspects?: readonly number[]): Promise<void> {
    try {
      await this.#takeover.takeOver(suspects);
      this.#onChange();
    } catch (error) {
      // A file could not be recovered, or the works could not be given back: the run ends with the error.
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
