import { StoreError } from "../../errors.ts";
import { leaseAll, reportAll, settleAll } from "../exchange.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../store.ts";
import { BudgetTable } from "./budget-table.ts";
import type { PostgresClient } from "./postgres-client.ts";
import { CLOCK_US, literal, textArray } from "./postgres-literal.ts";

export interface ExchangeOptions {
  readonly client: PostgresClient;
  readonly processId: string;
  readonly schema: string;
  readonly leaseUs: number;
  /** Replaces the clock of the server in tests. */
  readonly serverUs?: (() => number) | undefined;
}

interface QueuedCall {
  readonly settlements: readonly Settlement[];
  readonly requests: readonly LeaseRequest[];
  readonly reports: readonly UseReport[];
  readonly resolve: (replies: readonly LeaseReply[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A transaction whose commit was not acknowledged. */
interface UncertainCommit {
  readonly exchange: number;
  readonly settlements: readonly Settlement[];
  /** Units that were granted, and that no caller has got. */
  readonly granted: readonly Settlement[];
}

/** Every 64th transaction deletes expired rows, at most so many. */
const SWEEP_EVERY = 64;
const SWEPT_AT_ONCE = 200;

/**
 * Exchanges of one process with the store. The first statements lock the budgets and read them with the clock of the
 * server; the core decides; the last statements write the budgets and commit. Calls that arrive meanwhile share the next
 * transaction. Locks are taken in one order, so that no two processes wait for each other.
 */
export class PostgresExchanges {
  readonly #options: ExchangeOptions;
  #queue: QueuedCall[] = [];
  #running: Promise<void> | undefined;
  #exchange = 0;
  #lastUs = 0;
  #uncertain: UncertainCommit | undefined;
  /** Settlements that the store has applied although the caller was told that it has not: the caller repeats them. */
  readonly #applied = new Map<string, { written: number; returned: number }>();
  #processes = 1;

  constructor(options: ExchangeOptions) {
    this.#options = options;
  }

  get processes(): number {
    return Math.max(1, this.#processes);
  }

  exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[],
  ): Promise<readonly LeaseReply[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly LeaseReply[]>();
    this.#queue.push({ settlements, requests, reports, resolve, reject });
    this.#running ??= this.#runAll();
    return promise;
  }

  /** Waits for the calls so far, and removes this process from those that are counted. */
  async close(): Promise<void> {
    await this.#running;
    const { client, processId } = this.#options;
    await client.query("DELETE FROM processes WHERE id = $1", [processId]).catch(() => undefined);
  }

  async #runAll(): Promise<void> {
    // Calls made in the same turn of the event loop share a transaction.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const calls = this.#queue;
      this.#queue = [];
      try {
        const replies = await this.#transact(calls);
        for (const [index, { resolve }] of calls.entries()) resolve(replies[index] ?? []);
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#running = undefined;
  }

  async #transact(calls: readonly QueuedCall[]): Promise<readonly (readonly LeaseReply[])[]> {
    const { client, processId, leaseUs } = this.#options;
    const keys = new Set<string>(this.#uncertain?.granted.flatMap(each => each.keys));
    for (const { settlements, requests, reports } of calls) {
      for (const settlement of settlements) for (const key of settlement.keys) keys.add(key);
      for (const { claims } of requests) for (const { key } of claims) keys.add(key);
      for (const { claim } of reports) keys.add(claim.key);
    }
    const { nowUs, budgets } = await this.#begin([...keys]);
    const context = { process: processId, nowUs, leaseUs };
    const settlements = this.#unapplied(calls.flatMap(call => call.settlements));
    settleAll(budgets, [...settlements, ...(this.#uncertain?.granted ?? [])], context);
    this.#uncertain = undefined;
    for (const { reports } of calls) reportAll(budgets, reports, context);
    const replies = calls.map(({ requests }) => leaseAll(budgets, requests, context));
    const exchange = this.#exchange + 1;
    this.#exchange = exchange;
    try {
      await client.query(this.#ending(exchange, nowUs, budgets));
    } catch (error) {
      this.#uncertain = { exchange, settlements, granted: grantedIn(calls, replies) };
      throw error;
    }
    return replies;
  }

  async #begin(keys: readonly string[]): Promise<{ readonly nowUs: number; readonly budgets: BudgetTable }> {
    const { client, processId, schema, leaseUs, serverUs } = this.#options;
    const clock = serverUs === undefined ? CLOCK_US : literal(serverUs());
    const names = textArray(keys.map(key => `${schema} ${key}`));
    const results = await client.query(`BEGIN;
      SELECT pg_advisory_xact_lock(hash) FROM (
        SELECT DISTINCT hashtextextended(name, 5577) AS hash FROM unnest(${names}) AS name ORDER BY hash) AS hashes;
      SELECT key, state FROM budgets WHERE key = ANY (${textArray(keys)});
      SELECT ${clock} AS now_us, (SELECT exchange FROM processes WHERE id = ${literal(processId)}) AS exchange,
        (SELECT count(*) FROM processes WHERE id <> ${literal(processId)} AND seen_us > ${clock} - ${leaseUs}) AS others;`);
    const [, , budgets, status] = results;
    const row = status?.rows[0];
    if (budgets === undefined || row === undefined) throw new StoreError("postgres: unexpected reply of the server");
    this.#processes = Number(row["others"]) + 1;
    this.#settleUncertain(row["exchange"] === null ? undefined : Number(row["exchange"]));
    // A clock that was set back must not let a unit out earlier.
    this.#lastUs = Math.max(this.#lastUs, Number(row["now_us"]));
    return { nowUs: this.#lastUs, budgets: new BudgetTable(budgets.rows) };
  }

  #ending(exchange: number, nowUs: number, budgets: BudgetTable): string {
    const { processId, leaseUs } = this.#options;
    const limit = `LIMIT ${SWEPT_AT_ONCE} FOR UPDATE SKIP LOCKED`;
    const swept = `
      DELETE FROM budgets WHERE key IN (SELECT key FROM budgets WHERE expires_us < ${literal(nowUs)} ${limit});
      DELETE FROM records WHERE name IN (SELECT name FROM records WHERE keep_until_us < ${literal(nowUs)} ${limit});
      DELETE FROM processes WHERE id IN (
        SELECT id FROM processes WHERE seen_us < ${literal(nowUs - 10 * leaseUs)} ${limit});`;
    return `${budgets.saved(nowUs, leaseUs)}
      INSERT INTO processes (id, seen_us, exchange) VALUES (${literal(processId)}, ${literal(nowUs)}, ${exchange})
        ON CONFLICT (id) DO UPDATE SET seen_us = excluded.seen_us, exchange = excluded.exchange;
      ${exchange % SWEEP_EVERY === 0 ? swept : ""} COMMIT;`;
  }

  /**
   * If the last commit was not acknowledged, the stored number says whether it took effect. If so, its settlements must
   * not be applied again, and the units that it granted are returned: the caller was told that there are none.
   */
  #settleUncertain(stored: number | undefined): void {
    const uncertain = this.#uncertain;
    if (uncertain === undefined) return;
    if (stored !== uncertain.exchange) {
      this.#uncertain = undefined;
      return;
    }
    for (const { keys, written, returned } of uncertain.settlements)
      for (const key of keys) {
        const known = this.#applied.get(key) ?? { written: 0, returned: 0 };
        this.#applied.set(key, { written: known.written + written, returned: known.returned + returned });
      }
  }

  /** The settlements without what the store has applied already. */
  #unapplied(settlements: readonly Settlement[]): readonly Settlement[] {
    if (this.#applied.size === 0) return settlements;
    return settlements.flatMap(({ keys, written, returned }) =>
      keys.map(key => {
        const known = this.#applied.get(key) ?? { written: 0, returned: 0 };
        const rest = {
          written: Math.max(0, known.written - written),
          returned: Math.max(0, known.returned - returned),
        };
        if (rest.written + rest.returned === 0) this.#applied.delete(key);
        else this.#applied.set(key, rest);
        return {
          keys: [key],
          written: Math.max(0, written - known.written),
          returned: Math.max(0, returned - known.returned),
        };
      }),
    );
  }
}

function grantedIn(calls: readonly QueuedCall[], replies: readonly (readonly LeaseReply[])[]): readonly Settlement[] {
  return calls.flatMap(({ requests }, call) =>
    requests.flatMap(({ claims }, index) => {
      const reply = replies[call]?.[index];
      if (reply?.kind !== "granted") return [];
      return [{ keys: claims.map(({ key }) => key), written: 0, returned: reply.units }];
    }),
  );
}
