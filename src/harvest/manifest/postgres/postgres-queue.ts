import { isDownloadQueue } from "../../host-queue-key.ts";
import {
  type ManifestQueue,
  type PutOff,
  type Surplus,
  TAKEN_COLUMNS,
  type TakenWork,
  takenOfRows,
  type WaitingWorks,
} from "../manifest-queue.ts";
import type { Row } from "../manifest-row.ts";
import type { KnownTexts } from "./known-texts.ts";
import { NOW_MS } from "./postgres-clock.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

const IS_WAITING = "run = $1 AND state = 'pending' AND taken_by IS NULL";
/** A worker may take this many works of a short list, however many workers there are: one query is about many works. */
const SHARE_MIN = 25;
/** As `SHARE_MIN`, for works that wait for a download: no request is about several of them. */
const DOWNLOADS_MIN = 4;
/** While so many works are left for each worker, shares are not needed: no worker can leave another one without works. */
const WORKS_ENOUGH = 512;
/**
 * SQL: how many works of the run (`$1`) a worker may take; below 0 if it has more. With `WORKS_ENOUGH`: `enough`.
 * Otherwise: an equal share of the works that are left, at least `least`, less the works that it has. So all workers have
 * works of a short list, and of the end of a long list.
 */
const shareOf = (worker: string, least: string, enough: string) => `(
  SELECT CASE WHEN count(*) = max(size.workers) * ${WORKS_ENOUGH} THEN ${enough}
    ELSE greatest(${least}::bigint, ceil(count(*)::numeric / greatest(1, max(size.workers))))
      - (SELECT count(*) FROM works WHERE taken_by = ${worker}) END
  FROM (SELECT count(*) AS workers FROM workers WHERE run = $1) AS size,
    LATERAL (SELECT 1 FROM works WHERE run = $1 AND state = 'pending' LIMIT size.workers * ${WORKS_ENOUGH}) AS pending)`;
const RETURNED = TAKEN_COLUMNS.split(", ")
  .map(column => `works.${column}`)
  .join(", ");

/**
 * The works that wait. `FOR UPDATE SKIP LOCKED` gives each work to one worker. Times are sent as
 * differences: the clock of the worker may be some milliseconds from that of the database.
 */
export class PostgresQueue implements ManifestQueue {
  readonly #connection: PostgresConnection;
  readonly #worker: PostgresWorker;
  readonly #texts: KnownTexts;

  constructor(connection: PostgresConnection, worker: PostgresWorker, texts: KnownTexts) {
    this.#connection = connection;
    this.#worker = worker;
    this.#texts = texts;
  }

  nowMs(): number {
    return this.#worker.clock.nowMs();
  }

  async waiting(run: number): Promise<readonly WaitingWorks[]> {
    const rows = await this.#connection.read(
      `SELECT queue, count(*) AS works, min(not_before_ms) AS not_before_ms, ${NOW_MS} AS now_ms FROM works
       WHERE ${IS_WAITING} GROUP BY queue`,
      [run],
    );
    return rows.map(row => ({ queue: String(row["queue"]), ...this.#waitingOf(row) }));
  }

  async waitingIn(run: number, queue: string): Promise<Omit<WaitingWorks, "queue">> {
    const [row] = await this.#connection.read(
      `SELECT count(*) AS works, min(not_before_ms) AS not_before_ms, ${NOW_MS} AS now_ms FROM works
       WHERE ${IS_WAITING} AND queue = $2`,
      [run, queue],
    );
    return this.#waitingOf(row ?? {});
  }

  async take(run: number, queue: string, nowMs: number, limit: number): Promise<readonly TakenWork[]> {
    const { rows } = await this.#worker.take(
      `WITH due AS (
         SELECT id FROM works WHERE ${IS_WAITING} AND queue = $2 AND not_before_ms <= ${NOW_MS} + $3::bigint
         ORDER BY not_before_ms, id LIMIT greatest(0, least($4::bigint, ${shareOf("$6", "$5", "$4::bigint")})) FOR UPDATE SKIP LOCKED)
       UPDATE works SET taken_by = $6 FROM due WHERE works.id = due.id RETURNING ${RETURNED}`,
      [...[run, queue, Math.round(nowMs - this.nowMs()), limit], isDownloadQueue(queue) ? DOWNLOADS_MIN : SHARE_MIN],
    );
    this.#texts.setRows(rows);
    return takenOfRows(rows);
  }

  async takeLater(
    run: number,
    afterMs: number,
    queues: readonly string[],
    limit: number,
  ): Promise<readonly TakenWork[]> {
    const { rows } = await this.#worker.take(
      `WITH later AS (
         SELECT id FROM works
         WHERE ${IS_WAITING} AND (not_before_ms > ${NOW_MS} + $2::bigint OR queue = ANY($3)) LIMIT $4
         FOR UPDATE SKIP LOCKED)
       UPDATE works SET taken_by = $5 FROM later WHERE works.id = later.id RETURNING ${RETURNED}`,
      [run, Math.round(afterMs - this.nowMs()), queues, limit],
    );
    return takenOfRows(rows);
  }

  async endWaits(run: number, queues: readonly string[]): Promise<void> {
    // Several workers do this at the same time. Each locks the works in the order of their ids.
    await this.#connection.write(
      `WITH held AS (SELECT id FROM works WHERE ${IS_WAITING} AND queue = ANY($2) AND not_before_ms > 0
         AND message IS NOT NULL ORDER BY id FOR UPDATE)
       UPDATE works SET not_before_ms = 0 FROM held WHERE works.id = held.id`,
      [run, queues],
    );
    await this.#worker.announce();
  }

  async putOff(work: number, putOff: PutOff): Promise<TakenWork | undefined> {
    const { queue, notBeforeMs, progress = null, message = null, inherited } = putOff;
    const delayMs = notBeforeMs === 0 ? null : Math.ceil(notBeforeMs - this.nowMs());
    const columns = `queue = $3, not_before_ms = coalesce(${NOW_MS} + $4::bigint, 0), progress = $5, message = $6`;
    const result = await this.#worker.release(work, columns, [queue, delayMs, progress, message], inherited);
    return typeof result === "string" ? undefined : result;
  }

  async surplus(run: number): Promise<Surplus> {
    const shares = `${shareOf("$2", "$3", "0")} AS downloads, ${shareOf("$2", "$4", "0")} AS queries`;
    const [row] = await this.#connection.read(`SELECT ${shares}`, [run, this.#worker.id, DOWNLOADS_MIN, SHARE_MIN]);
    const beyond = (share: unknown) => Math.max(0, -Number(share ?? 0));
    return { downloads: beyond(row?.["downloads"]), queries: beyond(row?.["queries"]) };
  }

  announce(): Promise<void> {
    return this.#worker.announce();
  }

  async isFinished(run: number): Promise<boolean> {
    const [row] = await this.#connection.read(
      `SELECT EXISTS (SELECT 1 FROM works WHERE run = $1 AND state = 'pending') AS has_works,
         EXISTS (SELECT 1 FROM workers WHERE run = $1 AND is_listing AND id <> $2) AS is_listed`,
      [run, this.#worker.id],
    );
    return row?.["has_works"] === false && row["is_listed"] === false;
  }

  #waitingOf(row: Row): Omit<WaitingWorks, "queue"> {
    const works = Number(row["works"] ?? 0);
    const notBeforeMs = Number(row["not_before_ms"] ?? 0);
    if (notBeforeMs === 0) return { works, notBeforeMs };
    return { works, notBeforeMs: this.nowMs() + notBeforeMs - Number(row["now_ms"]) };
  }
}
