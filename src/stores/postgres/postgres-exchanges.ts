import { StoreError } from "../../errors.ts";
import type { LeaseReply, LeaseRequest, Settlement, UseReport } from "../store.ts";
import { callText, type ExchangeCall, repliesOf } from "./exchange-call.ts";
import type { PostgresClient } from "./postgres-client.ts";
import type { SqlRow } from "./postgres-driver.ts";

export interface ExchangeOptions {
  readonly client: PostgresClient;
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
  readonly settlements: readonly Settlement[];
  readonly requests: readonly LeaseRequest[];
}

/** Every 64th exchange deletes expired rows. */
const SWEEP_EVERY = 64;

/**
 * Exchanges of one process with the store: each is one call of a function in the database, at its clock. Calls that
 * arrive meanwhile share the next one.
 */
export class PostgresExchanges {
  readonly #options: ExchangeOptions;
  #queue: QueuedCall[] = [];
  #running: Promise<void> | undefined;
  #number: number;
  #uncertain: UncertainExchange | undefined;
  /** Settlements that the store has applied although the caller got no reply: the caller repeats them. */
  readonly #applied = new Map<string, { written: number; returned: number }>();
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
    const lostGrants = this.#uncertain === undefined ? [] : await this.#resume(this.#uncertain);
    const settlements = [...this.#unapplied(calls.flatMap(call => call.settlements)), ...lostGrants];
    const requests = calls.flatMap(call => call.requests);
    const reports = calls.flatMap(call => call.reports);
    const dead = [...new Set(calls.flatMap(call => call.dead))];
    this.#number += 1;
    this.#uncertain = { number: this.#number, settlements, requests };
    const [result] = await client.query("SELECT * FROM exchange($1, $2, $3, $4, $5, $6, $7)", [
      ...[processId, this.#number, leaseUs, callText({ settlements, requests, reports, dead }), this.#countedUs],
      ...[this.#number % SWEEP_EVERY === 0, serverUs?.() ?? null],
    ]);
    const row = result?.rows[0];
    const numbers = numbersOf(row, "reply");
    const replies = repliesOf(requests, numbers);
    this.#uncertain = undefined;
    const count = row?.["process_count"];
    if (typeof count === "number") {
      this.#processes = Math.max(1, count);
      this.#countedUs = Number(row?.["now_us"]);
    }
    return replies;
  }

  /**
   * Asks whether an exchange that was not acknowledged took effect. If so, its settlements must not be applied again.
   * Its caller got none of the units that it granted: returns the settlements that give them back to the store.
   */
  async #resume({ number, settlements, requests }: UncertainExchange): Promise<readonly Settlement[]> {
    this.#number += 1;
    const [result] = await this.#options.client.query("SELECT * FROM resume($1, $2)", [
      ...[this.#options.processId, this.#number],
    ]);
    const row = result?.rows[0];
    this.#uncertain = undefined;
    if (row?.["last_exchange"] !== number) return [];
    for (const { keys, written, returned } of settlements)
      for (const key of keys) {
        const known = this.#applied.get(key) ?? { written: 0, returned: 0 };
        this.#applied.set(key, { written: known.written + written, returned: known.returned + returned });
      }
    const replies = repliesOf(requests, numbersOf(row, "last_reply"));
    return requests.flatMap(({ claims }, index) => {
      const reply = replies[index];
      if (reply?.kind !== "granted") return [];
      return [{ keys: claims.map(({ key }) => key), written: 0, returned: reply.units }];
    });
  }

  /** The settlements without the units that the store has applied already. */
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

function numbersOf(row: SqlRow | undefined, column: string): readonly number[] {
  const numbers = row?.[column];
  if (!Array.isArray(numbers)) throw new StoreError("postgres: unexpected reply of the server");
  return numbers as readonly number[];
}
