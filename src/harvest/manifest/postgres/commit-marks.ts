import { randomUUID } from "node:crypto";
import type { Queryable, SqlParameter } from "../../../stores/postgres/postgres-driver.ts";
import { NOW_MS } from "./postgres-clock.ts";

/** The number that a transaction writes to a row (`slot`). If the row has it, the transaction was committed. */
export interface CommitMark {
  readonly slot: number;
  readonly number: number;
}

/** Older marks are deleted. An operation is repeated for at most 10 minutes. */
const KEPT_MS = 24 * 3_600_000;

/**
 * Finds out whether a transaction was committed if its connection broke before the reply. Each transaction writes its
 * number to a row of this process that no other transaction uses at the same time. The id of the transaction
 * (`pg_xact_status`) is not enough: after a crash the server may give it to another transaction.
 */
export class CommitMarks {
  readonly #client = randomUUID();
  readonly #freeSlots: number[] = [];
  #slots = 0;
  #numbers = 0;

  /** A mark in a row that no other transaction uses until it is released. */
  next(): CommitMark {
    this.#numbers += 1;
    return { slot: this.#freeSlots.pop() ?? this.#slots++, number: this.#numbers };
  }

  release({ slot }: CommitMark): void {
    this.#freeSlots.push(slot);
  }

  /** The first statement of the transaction. It has no parameters, so that it is sent together with BEGIN. */
  statementFor({ slot, number }: CommitMark): string {
    return `INSERT INTO commits (client, slot, number, at_ms) VALUES ('${this.#client}', ${slot}, ${number}, ${NOW_MS})
      ON CONFLICT (client, slot) DO UPDATE SET number = excluded.number, at_ms = excluded.at_ms`;
  }

  /**
   * A part of a `WITH` clause that writes the mark if the part `changed` has a row.
   * @param firstParameter the position of the first of its three parameters
   */
  partFor(firstParameter: number): string {
    return `mark AS (INSERT INTO commits (client, slot, number, at_ms)
      SELECT $${firstParameter}::uuid, $${firstParameter + 1}::integer, $${firstParameter + 2}::bigint, ${NOW_MS}
      FROM changed LIMIT 1
      ON CONFLICT (client, slot) DO UPDATE SET number = excluded.number, at_ms = excluded.at_ms)`;
  }

  parametersOf({ slot, number }: CommitMark): readonly SqlParameter[] {
    return [this.#client, slot, number];
  }

  /**
   * Writes the same row as the transaction, so that it waits if the server has not ended the transaction yet. A transaction
   * that begins only afterwards is not seen: `PostgresConnection.apply` sends the mark in its only statement, which a proxy
   * could pass on after its connection to the client broke.
   */
  async isCommitted(client: Queryable, { slot, number }: CommitMark): Promise<boolean> {
    const { rows } = await client.query(
      `INSERT INTO commits (client, slot, number, at_ms) VALUES ($1, $2, 0, ${NOW_MS})
       ON CONFLICT (client, slot) DO UPDATE SET at_ms = excluded.at_ms RETURNING number`,
      [this.#client, slot],
    );
    return Number(rows[0]?.["number"]) === number;
  }
}

/** Deletes marks that no process looks up any more. */
export const DELETE_OLD_MARKS = `DELETE FROM commits WHERE at_ms < ${NOW_MS} - ${KEPT_MS}`;
