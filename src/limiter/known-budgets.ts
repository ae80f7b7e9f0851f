import { EvictingMap } from "../core/evicting-map.ts";
import type { Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { IdleBudgets } from "./idle-budgets.ts";
import type { RoleBudget, StoreState } from "./role-budget.ts";

export interface KnownBudgetsDeps {
  readonly time: Time;
  readonly store: StoreState;
  /** Up to this many nothing is evicted, so that the counts in snapshots go on. */
  readonly keptKeys: number;
  /** Whether idle budgets may be kept in the smaller form. */
  readonly mayPack: () => boolean;
  /** Whether a budget is never evicted. */
  readonly isKept: (roleBudget: RoleBudget) => boolean;
  /** Called for each budget that is evicted. */
  readonly onEvict: (roleBudget: RoleBudget) => void;
}

/**
 * The budgets of one role by name. Each new one checks two others: those that behave like a new one are evicted
 * (law L11), and idle ones are kept in a smaller form until they are used again.
 */
export class KnownBudgets {
  readonly #deps: KnownBudgetsDeps;
  readonly #live: EvictingMap<RoleBudget>;
  readonly #idle: IdleBudgets;
  #isChanging = false;

  constructor(role: Role, deps: KnownBudgetsDeps) {
    this.#deps = deps;
    this.#live = new EvictingMap(roleBudget => this.#remove(roleBudget), deps.keptKeys);
    const { time, store, onEvict } = deps;
    this.#idle = new IdleBudgets({ role, store, nowUs: () => time.monotonicUs(), onEvict });
  }

  get(name: string): RoleBudget | undefined {
    return this.#live.get(name) ?? this.#revive(name);
  }

  add(roleBudget: RoleBudget): void {
    this.#live.add(roleBudget.name, roleBudget);
  }

  delete(name: string): void {
    this.#live.delete(name);
    this.#idle.delete(name);
  }

  /** All budgets, to be read. Idle ones are copies. */
  *[Symbol.iterator](): IterableIterator<RoleBudget> {
    yield* this.#live.values();
    yield* this.#idle.copies();
  }

  /** The budgets whose names are wanted, to be changed. */
  named(isWanted: (name: string) => boolean): readonly RoleBudget[] {
    // None of those that are revived may become idle again before it is changed.
    this.#isChanging = true;
    for (const name of this.#idle.names()) if (isWanted(name)) this.#revive(name);
    this.#isChanging = false;
    return [...this.#live.values()].filter(({ name }) => isWanted(name));
  }

  #revive(name: string): RoleBudget | undefined {
    const roleBudget = this.#idle.take(name);
    if (roleBudget !== undefined) this.#live.add(name, roleBudget);
    return roleBudget;
  }

  /**
   * Evicts the budget or makes it idle; false if it stays. Responses to its requests may still arrive:
   * `RoleBudgets.current` finds the object that replaced it.
   */
  #remove(roleBudget: RoleBudget): boolean {
    const { time, mayPack, isKept, onEvict } = this.#deps;
    if (isKept(roleBudget)) return false;
    if (roleBudget.isEvictable(time.monotonicUs())) onEvict(roleBudget);
    else if (this.#isChanging || !mayPack() || !this.#idle.add(roleBudget)) return false;
    roleBudget.isDetached = true;
    return true;
  }
}
