import { randomUUID } from "node:crypto";
import type { Queryable } from "../../../stores/postgres/postgres-driver.ts";
import type { SqlStatement } from "../../../stores/postgres/statement-group.ts";
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

  /** The first statement of the transaction, without parameters, so that it is sent together with BEGIN. */
  textFor({ slot, number }: CommitMark): string {
    return writeMark(`'${this.#client}'`, slot, number);
  }

  /** The first statement of the transaction. The server keeps it. */
  statementFor({ slot, number }: CommitMark): SqlStatement {
    return { text: WRITE_MARK, values: [this.#client, slot, number] };
  }

  /**
   * Writes the same row as the transaction, so that it waits if the server has not ended the transaction yet. If the
   * server has not begun it, it fails when it begins: the row has the negative number then.
   */
  async isCommitted(client: Queryable, { slot, number }: CommitMark): Promise<boolean> {
    const { rows } = await client.query(
      `INSERT INTO commits (client, slot, number, at_ms) VALUES ($1, $2, -$3::bigint, ${NOW_MS})
       ON CONFLICT (client, slot) DO UPDATE SET at_ms = excluded.at_ms,
         number = CASE WHEN commits.number = $3::bigint THEN $3::bigint ELSE -$3::bigint END
       RETURNING number`,
      [this.#client, slot, number],
    );
    return Number(rows[0]?.["number"]) === number;
  }
}

/** NULL violates the constraint of the column, and the transaction fails: its process has given it up already. */
function writeMark(client: string, slot: string | number, number: string | number): string {
  return `INSERT INTO commits (client, slot, number, at_ms) VALUES (${client}, ${slot}, ${number}, ${NOW_MS})
    ON CONFLICT (client, slot) DO UPDATE SET at_ms = excluded.at_ms,
      number = CASE WHEN abs(commits.number) < excluded.number THEN excluded.number END`;
}

const WRITE_MARK = writeMark("$1::uuid", "$2::integer", "$3::bigint");

/** Deletes marks that no process looks up any more. */
export const DELETE_OLD_MARKS = `DELETE FROM commits WHERE at_ms < ${NOW_MS} - ${KEPT_MS}`;
