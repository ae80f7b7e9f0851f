import { EvictingMap } from "../core/evicting-map.ts";
import type { Role } from "../policy/roles.ts";
import type { Time } from "../time/time.ts";
import { IdleBudget } from "./idle-budget.ts";
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
  readonly #role: Role;
  readonly #deps: KnownBudgetsDeps;
  readonly #live: EvictingMap<RoleBudget>;
  readonly #idle: EvictingMap<IdleBudget>;
  #isChanging = false;

  constructor(role: Role, deps: KnownBudgetsDeps) {
    this.#role = role;
    this.#deps = deps;
    this.#live = new EvictingMap(roleBudget => this.#remove(roleBudget), deps.keptKeys);
    this.#idle = new EvictingMap(idle => {
      if (!idle.isEvictable(deps.time.monotonicUs())) return false;
      deps.onEvict(this.#revived(idle));
      return true;
    });
  }

  get(name: string): RoleBudget | undefined {
    const live = this.#live.get(name);
    if (live !== undefined) return live;
    const idle = this.#idle.get(name);
    return idle && this.#revive(idle);
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
    for (const idle of this.#idle.values()) yield this.#revived(idle);
  }

  /** The budgets whose names are wanted, to be changed. */
  named(isWanted: (name: string) => boolean): readonly RoleBudget[] {
    // None of those that are revived may become idle again before it is changed.
    this.#isChanging = true;
    for (const idle of [...this.#idle.values()]) if (isWanted(idle.name)) this.#revive(idle);
    this.#isChanging = false;
    return [...this.#live.values()].filter(({ name }) => isWanted(name));
  }

  #revive(idle: IdleBudget): RoleBudget {
    const roleBudget = this.#revived(idle);
    this.#idle.delete(idle.name);
    this.#live.add(idle.name, roleBudget);
    return roleBudget;
  }

  #revived(idle: IdleBudget): RoleBudget {
    return idle.revive(this.#role, this.#deps.store);
  }

  /**
   * Evicts the budget or makes it idle; false if it stays. Responses to its requests may still arrive:
   * `RoleBudgets.current` finds the object that replaced it.
   */
  #remove(roleBudget: RoleBudget): boolean {
    const { time, mayPack, isKept, onEvict } = this.#deps;
    if (isKept(roleBudget)) return false;
    const nowUs = time.monotonicUs();
    if (roleBudget.isEvictable(nowUs)) onEvict(roleBudget);
    else {
      const idle = this.#isChanging || !mayPack() ? undefined : IdleBudget.of(roleBudget, nowUs);
      if (idle === undefined) return false;
      this.#idle.add(idle.name, idle);
    }
    roleBudget.isDetached = true;
    return true;
  }
}
