import type { Time, Timer } from "../../../time/time.ts";
import type { PostgresConnection } from "./postgres-connection.ts";
import type { PostgresWorker } from "./postgres-worker.ts";

/** SQL: whether no connection holds the lock of a worker. The lock is shared, so that several processes can check. */
export const SESSION_ENDED = "pg_try_advisory_xact_lock_shared(session)";

/** Within this time a live process replaces a broken connection, or records that it has none. */
const ENDED_MS = 2000;
/** After a restart of the server all workers connect again. Until then they have no sessions, though they are alive. */
const SETTLED_MS = 10_000;
const CHECK_MS = 1000;
/** All workers together check the sessions this often on average. */
const CHECK_ALL_MS = 250;

export interface PostgresSessionsOptions {
  readonly connection: PostgresConnection;
  readonly worker: PostgresWorker;
  readonly time: Time;
  /** Called with workers whose session had ended at two checks, one after the other. */
  readonly onEnded: (workers: readonly number[]) => Promise<void>;
}

/**
 * Finds workers whose process has died, long before their lease ends. The server closes the connections of a dead process
 * at once, which releases the lock of its session. A process that is suspended or cannot be reached keeps its session.
 */
export class PostgresSessions {
  readonly #options: PostgresSessionsOptions;
  #timer: Timer | undefined;
  #suspects: ReadonlySet<number> = new Set();
  /** Since when this process has a session; undefined if it has none. */
  #sinceUs: number | undefined;
  #isStopped = true;

  constructor(options: PostgresSessionsOptions) {
    this.#options = options;
  }

  start(): void {
    if (!this.#isStopped) return;
    this.#isStopped = false;
    this.#checkAfter(CHECK_MS);
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** The session of this process has begun or ended. */
  setSession(session: number | undefined): void {
    this.#sinceUs = session === undefined ? undefined : this.#options.time.monotonicUs();
    this.#suspects = new Set();
  }

  #checkAfter(ms: number): void {
    if (this.#isStopped) return;
    this.#timer = this.#options.time.setTimer(ms, () => {
      this.#check().then(
        nextMs => this.#checkAfter(nextMs),
        // The next operation reports what is wrong with the server. Until then the leases count.
        () => this.#checkAfter(CHECK_MS),
      );
    });
  }

  /** Returns the time until the next check. */
  async #check(): Promise<number> {
    const { connection, worker, time, onEnded } = this.#options;
    const isSettled = this.#sinceUs !== undefined && time.monotonicUs() - this.#sinceUs >= SETTLED_MS * 1000;
    if (!worker.isActive || !isSettled) return CHECK_MS;
    const [row] = await connection.lookUp(
      `SELECT count(*) AS workers, array_agg(id) FILTER (WHERE is_ended) AS ended
       FROM (SELECT id, ${SESSION_ENDED} AS is_ended FROM workers WHERE id <> $1) AS others`,
      [worker.id],
    );
    const ended = ((row?.["ended"] ?? []) as readonly (number | string)[]).map(Number);
    const dead = ended.filter(id => this.#suspects.has(id));
    this.#suspects = new Set(ended);
    if (dead.length > 0) await onEnded(dead);
    return this.#suspects.size > 0 ? ENDED_MS : Math.max(CHECK_MS, Number(row?.["workers"]) * CHECK_ALL_MS);
  }
}
