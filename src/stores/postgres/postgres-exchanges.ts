import { StoreError } from "../../errors.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../store.ts";
import { callText, type ExchangeCall, repliesOf } from "./exchange-call.ts";
import type { PostgresClient } from "./postgres-client.ts";
import { PostgresLedger } from "./postgres-ledger.ts";

export interface ExchangeOptions {
  readonly client: Pick<PostgresClient, "query">;
  readonly processId: string;
  /** The exchanges of this process so far had this number at most. */
  readonly lastNumber: number;
  readonly leaseUs: number;
  /** Replaces the clock of the server in tests. */
  readonly serverUs?: (() => number) | undefined;
}

interface QueuedCall extends ExchangeCall {
  readonly resolve: (replies: readonly LeaseReply[]) => void;
  readonly reject: (error: unknown) => void;
}

/** An exchange that was not acknowledged. */
interface UncertainExchange {
  readonly number: number;
  /** As the callers gave them. */
  readonly settlements: readonly Settlement[];
  readonly requests: readonly LeaseRequest[];
}

/** Every 64th exchange deletes expired rows. */
const SWEEP_EVERY = 64;

/**
 * Each exchange runs one function in the database and uses the clock of the server. Requests of this process that
 * arrive during an exchange share the next exchange.
 */
export class PostgresExchanges {
  readonly #options: ExchangeOptions;
  #queue: QueuedCall[] = [];
  #running: Promise<void> | undefined;
  #number: number;
  #uncertain: UncertainExchange | undefined;
  readonly #ledger = new PostgresLedger();
  #processes = 1;
  /** When the processes were last counted, by the clock of the server. */
  #countedUs = 0;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#number = options.lastNumber;
  }

  get processes(): number {
    return this.#processes;
  }

  exchange(
    settlements: readonly Settlement[],
    requests: readonly LeaseRequest[],
    reports: readonly UseReport[],
    dead: readonly string[],
  ): Promise<readonly LeaseReply[]> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly LeaseReply[]>();
    this.#queue.push({ settlements, requests, reports, dead, resolve, reject });
    this.#running ??= this.#runAll();
    return promise;
  }

  /** Waits for the calls so far, and removes this process from the count of processes. */
  async close(): Promise<void> {
    await this.#running;
    const { client, processId } = this.#options;
    await client.query("DELETE FROM processes WHERE id = $1", [processId]).catch(() => undefined);
  }

  async #runAll(): Promise<void> {
    // Calls made in the same turn of the event loop share an exchange.
    await Promise.resolve();
    while (this.#queue.length > 0) {
      const calls = this.#queue;
      this.#queue = [];
      try {
        const replies = await this.#run(calls);
        let at = 0;
        for (const { requests, resolve } of calls) {
          resolve(replies.slice(at, at + requests.length));
          at += requests.length;
        }
      } catch (error) {
        for (const { reject } of calls) reject(error);
      }
    }
    this.#running = undefined;
  }

  async #run(calls: readonly QueuedCall[]): Promise<readonly LeaseReply[]> {
    const { client, processId, leaseUs, serverUs } = this.#options;
    if (this.#uncertain !== undefined) await this.#clarify(this.#uncertain);
    const settlements = calls.flatMap(call => call.settlements);
    const requests = calls.flatMap(call => call.requests);
    const reports = calls.flatMap(call => call.reports);
    const dead = [...new Set(calls.flatMap(call => call.dead))];
    const call = callText({ settlements: this.#ledger.corrected(settlements), requests, reports, dead });
    this.#number += 1;
    this.#uncertain = { number: this.#number, settlements, requests };
    const [result] = await client.query("SELECT * FROM exchange($1, $2, $3, $4, $5, $6, $7)", [
      ...[processId, this.#number, leaseUs, call, this.#countedUs],
      ...[this.#number % SWEEP_EVERY === 0, serverUs?.() ?? null],
    ]);
    const row = result?.rows[0];
    const replies = repliesOf(requests, numbersOf(row?.["reply"]));
    this.#uncertain = undefined;
    this.#ledger.acknowledged(settlements);
    const count = row?.["process_count"];
    if (typeof count === "number") {
      this.#processes = Math.max(1, count);
      this.#countedUs = Number(row?.["now_us"]);
    }
    return replies;
  }

  /**
   * Asks whether an exchange that was not acknowledged took effect. If not, it never will. If this reply is lost too,
   * the same question is asked again, and the answer is the same.
   */
  async #clarify({ number, settlements, requests }: UncertainExchange): Promise<void> {
    const [result] = await this.#options.client.query("SELECT * FROM resume($1, $2)", [
      ...[this.#options.processId, number],
    ]);
    const row = result?.rows[0];
    if (row?.["last_exchange"] === number && row["last_reply"] !== null) {
      const replies = repliesOf(requests, numbersOf(row["last_reply"]));
      const grants = requests.flatMap(({ claims }, index) => {
        const reply = replies[index];
        return reply?.kind === "granted" ? [{ keys: claims.map(({ key }) => key), units: reply.units }] : [];
      });
      this.#ledger.unacknowledged(settlements, grants);
    }
    this.#uncertain = undefined;
  }
}

function numbersOf(value: unknown): readonly number[] {
  if (!Array.isArray(value)) throw new StoreError("postgres: unexpected reply of the server");
  return value as readonly number[];
}
