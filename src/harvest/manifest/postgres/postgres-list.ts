import { type PgSingleClient, type Queryable, queryableOf } from "../../../stores/postgres/postgres-driver.ts";
import { RepeatTransaction } from "../../../stores/postgres/postgres-errors.ts";
import type { PostgresConnection } from "./postgres-connection.ts";

/**
 * The transaction of a list that is added completely or not at all, on a connection that is not in the pool. If the
 * connection breaks, the list is not added and the next batch rejects.
 */
export class PostgresList {
  readonly #connection: PostgresConnection;
  #client: PgSingleClient | undefined;

  constructor(connection: PostgresConnection) {
    this.#connection = connection;
  }

  get isOpen(): boolean {
    return this.#client !== undefined;
  }

  /**
   * Runs an action in the transaction of the list, and again if another process has added one of its works meanwhile. The
   * savepoint of the previous batch is released, because the server keeps a lock for each savepoint.
   */
  async add<Value>(action: (client: Queryable) => Promise<Value>): Promise<Value> {
    if (this.#client === undefined) throw new TypeError("no list is open: call beginList first");
    const client = queryableOf(this.#client);
    return this.#connection.replied(() => addTo(client, action));
  }

  async begin(): Promise<void> {
    const client = await this.#connection.transactionClient();
    await client.query("BEGIN; SAVEPOINT batch");
    this.#client = client;
  }

  async end(command: "COMMIT" | "ROLLBACK"): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    await this.#connection.replied(async () => {
      try {
        await client.query(command);
      } finally {
        await client.end();
      }
    });
  }

  /** Removes the list. Never rejects: if the connection breaks, the server rolls back. */
  async rollback(): Promise<void> {
    try {
      await this.end("ROLLBACK");
    } catch {
      // The connection is gone, and its transaction with it.
    }
  }
}

async function addTo<Value>(client: Queryable, action: (client: Queryable) => Promise<Value>): Promise<Value> {
  await client.query("RELEASE SAVEPOINT batch; SAVEPOINT batch");
  for (;;) {
    try {
      return await action(client);
    } catch (error) {
      if (!(error instanceof RepeatTransaction)) throw error;
      await client.query("ROLLBACK TO SAVEPOINT batch");
    }
  }
}
