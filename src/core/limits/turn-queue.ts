import { type BudgetMember, type BudgetTables, CLEANED_AT_ONCE } from "./budget-tables.ts";

export interface TurnQueueState {
  readonly head: number;
  readonly tail: number;
  /** Units promised before the first turn (`headStart`), and before the next new one (`end`). */
  readonly headStart: number;
  readonly end: number;
  /** When the process of the first turn is due to ask; below 0 if the first turn has to be looked up. */
  readonly headDueUs: number;
  readonly waiting: number;
}

const EMPTY: TurnQueueState = { head: 1, tail: 1, headStart: 0, end: 0, headDueUs: -1, waiting: 0 };

/** A process that is this late with its turn loses it. */
const TURN_TIMEOUT_US = 1_000_000;

/**
 * The processes that wait for units, in the order in which they get them. Each has one turn and knows when the turn is
 * due, so that only the few processes that are next ask for a free unit.
 */
export class TurnQueue {
  readonly #tables: BudgetTables;
  #head: number;
  #tail: number;
  #headStart: number;
  #end: number;
  #headDueUs: number;
  #waiting: number;

  constructor(tables: BudgetTables, state = EMPTY) {
    this.#tables = tables;
    this.#head = state.head;
    this.#tail = state.tail;
    this.#headStart = state.headStart;
    this.#end = state.end;
    this.#headDueUs = state.headDueUs;
    this.#waiting = state.waiting;
  }

  dump(): TurnQueueState {
    return {
      head: this.#head,
      tail: this.#tail,
      headStart: this.#headStart,
      end: this.#end,
      headDueUs: this.#headDueUs,
      waiting: this.#waiting,
    };
  }

  /** When the process of the first turn is due to ask. */
  get headDueUs(): number {
    return this.#headDueUs;
  }

  /** How many other processes wait. */
  othersWaiting({ turn }: BudgetMember): number {
    return this.#waiting - (turn === undefined ? 0 : 1);
  }

  /**
   * Units that are promised to the processes before this one. Turns behind the first one may have ended, and it is not
   * known which. All of them count as turns before this one. The result is then too low rather than too high, so that
   * enough processes ask for each free unit.
   */
  unitsBefore(member: BudgetMember): number {
    if (this.othersWaiting(member) === 0) return 0;
    const { number, start } = member.turn ?? { number: this.#tail, start: this.#end };
    const units = Math.max(0, start - this.#headStart);
    const turns = number - this.#head;
    const endedTurns = this.#tail - this.#head - this.#waiting;
    return endedTurns <= 0 || turns <= 0 ? units : Math.ceil((units * Math.max(0, turns - endedTurns)) / turns);
  }

  /** Gives the process a turn at the end of the queue, unless it has one, and records when it is to ask again. */
  join(processId: string, member: BudgetMember, units: number, dueUs: number): void {
    if (member.turn !== undefined) member.turn.dueUs = dueUs;
    else {
      member.turn = { number: this.#tail, start: this.#end, dueUs };
      this.#tables.turns.set(this.#tail, processId);
      this.#tail += 1;
      this.#end += units;
      this.#waiting += 1;
    }
    if (member.turn.number !== this.#head) return;
    this.#headStart = member.turn.start;
    this.#headDueUs = dueUs;
  }

  /** Ends the turn of a process: it has got its units, or needs none. */
  leave(member: BudgetMember, nowUs: number): void {
    if (member.turn === undefined) return;
    const { number } = member.turn;
    member.turn = undefined;
    this.#tables.turns.delete(number);
    this.#waiting -= 1;
    if (number === this.#head) this.#advance(nowUs);
  }

  /** Drops the turns of processes that have not asked in time. */
  prune(nowUs: number): void {
    if (this.#head < this.#tail && this.#headDueUs + TURN_TIMEOUT_US <= nowUs) this.#advance(nowUs);
  }

  /** Until when a process with a turn is kept, even if its lease has ended; -1 without a turn. */
  static keptUntilUs({ turn }: BudgetMember): number {
    return turn === undefined ? -1 : turn.dueUs + TURN_TIMEOUT_US;
  }

  #advance(nowUs: number): void {
    for (let step = 0; step < CLEANED_AT_ONCE && this.#head < this.#tail; step += 1) {
      const processId = this.#tables.turns.get(this.#head);
      const member = processId === undefined ? undefined : this.#tables.members.get(processId);
      if (member?.turn !== undefined && member.turn.number === this.#head) {
        if (TurnQueue.keptUntilUs(member) > nowUs) {
          this.#headStart = member.turn.start;
          this.#headDueUs = member.turn.dueUs;
          return;
        }
        member.turn = undefined;
        this.#tables.turns.delete(this.#head);
        this.#waiting -= 1;
      }
      this.#head += 1;
    }
    this.#headDueUs = -TURN_TIMEOUT_US;
    if (this.#head < this.#tail) return;
    this.#headStart = this.#end;
    // The queue is empty. This also corrects the count if the entry of a process was damaged.
    this.#waiting = 0;
  }
}
