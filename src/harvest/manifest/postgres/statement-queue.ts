import { isTransient, sqlStateOf } from "../../../stores/postgres/postgres-errors.ts";
import type { SqlStatement } from "../../../stores/postgres/statement-group.ts";
import type { Row } from "../manifest-row.ts";

export interface QueuedStatement extends SqlStatement {
  /** The work that the statement changes. @default none */
  readonly work?: number;
  /** The statement is repeated until this time. */
  readonly untilUs: number;
}

interface WaitingStatement {
  readonly statement: QueuedStatement;
  readonly resolve: (rows: readonly Row[] | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Runs statements in one transaction, at most once. Returns the rows of each; undefined if they were applied and the
 * reply was lost. If it rejects with an error of SQL, none has taken effect. After any other error they may have.
 */
export type RunTogether = (statements: readonly QueuedStatement[]) => Promise<readonly (readonly Row[])[] | undefined>;

/** All statements of a group wait for the last one. */
const GROUP_MAX = 32;

/**
 * Sends the statements of many works together: an exchange and a commit for each would cost more than the statements. A
 * statement that comes while none is on its way is sent at once. Those that come meanwhile are sent together after it.
 */
export class StatementQueue {
  readonly #runTogether: RunTogether;
  #waiting: WaitingStatement[] = [];
  #isSending = false;

  constructor(runTogether: RunTogether) {
    this.#runTogether = runTogether;
  }

  /** Returns the rows of the statement when it is committed; undefined if the reply was lost. */
  run(statement: QueuedStatement): Promise<readonly Row[] | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<readonly Row[] | undefined>();
    this.#waiting.push({ statement, resolve, reject });
    if (!this.#isSending) void this.#sendAll();
    return promise;
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0, GROUP_MAX);
      // Works are locked in the order of their ids everywhere, so that transactions do not deadlock.
      await this.#send(group.toSorted((one, other) => (one.statement.work ?? 0) - (other.statement.work ?? 0)));
    }
    this.#isSending = false;
  }

  /** Never rejects. */
  async #send(group: readonly WaitingStatement[]): Promise<void> {
    try {
      const results = await this.#runTogether(group.map(({ statement }) => statement));
      for (const [index, { resolve }] of group.entries()) resolve(results?.[index]);
    } catch (error) {
      // The others must not fail with the one that has failed.
      if (group.length > 1 && hasNoEffect(error)) await Promise.all(group.map(waiting => this.#send([waiting])));
      else for (const { reject } of group) reject(error);
    }
  }
}

/** Whether the server has refused a statement of a group. Otherwise the group may have been committed. */
function hasNoEffect(error: unknown): boolean {
  return sqlStateOf(error) !== undefined && !isTransient(error);
}
