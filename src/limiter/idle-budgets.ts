import { EvictingMap } from "../core/evicting-map.ts";
import { WindowLog } from "../core/limits/window-log.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import type { Role } from "../policy/roles.ts";
import type { Budget } from "./budget.ts";
import { RoleBudget, type StoreState } from "./role-budget.ts";

export interface IdleBudgetsDeps {
  readonly role: Role;
  readonly store: StoreState;
  readonly nowUs: () => number;
  /** Called for each budget that is evicted. */
  readonly onEvict: (roleBudget: RoleBudget) => void;
}

/** What most idle budgets have in common: hosts without limits of their own, that were called once. */
interface CommonState {
  readonly key: string;
  readonly policy: RoleBudgetPolicy;
  readonly above: Budget | undefined;
  readonly written: number;
  readonly acquired: number;
  readonly isAnswered: boolean;
  readonly hasUnchangedRates: boolean;
  /** The number of budgets with this state. */
  budgets: number;
}

const FIRST_ROWS = 64;

/**
 * The role budgets that have sent one burst and nothing since: a crawler calls a million hosts once. Each has a row of two
 * columns instead of an object, which takes a twentieth of the memory. `take` returns a budget with the same state.
 */
export class IdleBudgets {
  readonly #deps: IdleBudgetsDeps;
  readonly #rows: EvictingMap<number>;
  readonly #states: CommonState[] = [];
  /** The index in `#states` of each state, by its key. */
  readonly #stateIndexes = new Map<string, number>();
  readonly #freeStates: number[] = [];
  /** Numbers of policies and budgets, for the keys of states. */
  readonly #numbers = new WeakMap<object, number>();
  #lastNumber = 0;
  /** When the budget of a row has sent, in monotonic microseconds. */
  #lastUs = new Float64Array(FIRST_ROWS);
  /** The index in `#states` of the state of a row. */
  #stateOf = new Uint32Array(FIRST_ROWS);
  #rowCount = 0;
  #freeRows: number[] = [];

  constructor(deps: IdleBudgetsDeps) {
    this.#deps = deps;
    this.#rows = new EvictingMap((row, name) => {
      if (!this.#isEvictable(row)) return false;
      deps.onEvict(this.#budget(name, row));
      this.#free(row);
      return true;
    });
  }

  /** False if the budget has more state than is kept here. */
  add(budget: RoleBudget): boolean {
    if (!budget.isIdle(this.#deps.nowUs())) return false;
    const state = this.#stateIndexOf(budget);
    const row = this.#freeRows.pop() ?? this.#newRow();
    this.#lastUs[row] = budget.log.lastUs;
    this.#stateOf[row] = state;
    this.#state(row).budgets += 1;
    // A copy: the name of a host is a part of its URL, which would be kept too.
    this.#rows.add(Buffer.from(budget.name).toString(), row);
    return true;
  }

  /** Removes the budget and returns it. */
  take(name: string): RoleBudget | undefined {
    const row = this.#rows.get(name);
    if (row === undefined) return undefined;
    const budget = this.#budget(name, row);
    this.delete(name);
    return budget;
  }

  delete(name: string): void {
    const row = this.#rows.get(name);
    if (row === undefined) return;
    this.#rows.delete(name);
    this.#free(row);
  }

  names(): readonly string[] {
    return Array.from(this.#rows.entries(), ([name]) => name);
  }

  /** Copies of all budgets. */
  *copies(): IterableIterator<RoleBudget> {
    for (const [name, row] of this.#rows.entries()) yield this.#budget(name, row);
  }

  #budget(name: string, row: number): RoleBudget {
    const { role, store } = this.#deps;
    const state = this.#state(row);
    const budget = new RoleBudget(name, role, state.policy, state.above, store);
    budget.log = WindowLog.restore({ written: state.written, pending: 0, lastUs: this.#lastUs[row] as number });
    budget.acquired = state.acquired;
    budget.isAnswered = state.isAnswered;
    budget.hasUnchangedRates = state.hasUnchangedRates;
    return budget;
  }

  /** As `RoleBudget.isEvictable`. */
  #isEvictable(row: number): boolean {
    const { windows, spacingUs } = this.#state(row).policy;
    const quietUs = this.#deps.nowUs() - (this.#lastUs[row] as number);
    return quietUs >= spacingUs && windows.every(({ spanUs }) => quietUs >= spanUs);
  }

  #state(row: number): CommonState {
    return this.#states[this.#stateOf[row] as number] as CommonState;
  }

  #stateIndexOf({ policy, above, log, acquired, isAnswered, hasUnchangedRates }: RoleBudget): number {
    const { written } = log;
    const key = [
      this.#numberOf(policy),
      above && this.#numberOf(above),
      written,
      acquired,
      isAnswered,
      hasUnchangedRates,
    ].join();
    const known = this.#stateIndexes.get(key);
    if (known !== undefined) return known;
    const index = this.#freeStates.pop() ?? this.#states.length;
    this.#states[index] = { key, policy, above, written, acquired, isAnswered, hasUnchangedRates, budgets: 0 };
    this.#stateIndexes.set(key, index);
    return index;
  }

  #numberOf(object: object): number {
    const known = this.#numbers.get(object);
    if (known !== undefined) return known;
    this.#lastNumber += 1;
    this.#numbers.set(object, this.#lastNumber);
    return this.#lastNumber;
  }

  #newRow(): number {
    if (this.#rowCount === this.#lastUs.length) {
      const [lastUs, stateOf] = [this.#lastUs, this.#stateOf];
      this.#lastUs = new Float64Array(2 * lastUs.length);
      this.#lastUs.set(lastUs);
      this.#stateOf = new Uint32Array(2 * stateOf.length);
      this.#stateOf.set(stateOf);
    }
    this.#rowCount += 1;
    return this.#rowCount - 1;
  }

  #free(row: number): void {
    const state = this.#state(row);
    state.budgets -= 1;
    if (state.budgets === 0) {
      this.#stateIndexes.delete(state.key);
      this.#freeStates.push(this.#stateOf[row] as number);
    }
    this.#freeRows.push(row);
    if (this.#freeRows.length < this.#rowCount) return;
    // No row is used: a short crawl must not keep the columns of a long one before it.
    this.#freeRows = [];
    this.#rowCount = 0;
    this.#lastUs = new Float64Array(FIRST_ROWS);
    this.#stateOf = new Uint32Array(FIRST_ROWS);
  }
}
