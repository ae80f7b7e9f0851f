import { WindowLog } from "../core/limits/window-log.ts";
import type { RoleBudgetPolicy } from "../policy/budget-policy.ts";
import type { Role } from "../policy/roles.ts";
import type { Budget } from "./budget.ts";
import { RoleBudget, type StoreState } from "./role-budget.ts";

/**
 * A role budget that has sent one burst and nothing since, in less than half of the memory: a crawler calls a million hosts
 * once. `revive` returns a budget with the same state.
 */
export class IdleBudget {
  readonly name: string;
  readonly #policy: RoleBudgetPolicy;
  readonly #above: Budget | undefined;
  readonly #written: number;
  readonly #lastUs: number;
  readonly #acquired: number;
  readonly #isAnswered: boolean;
  readonly #hasUnchangedRates: boolean;

  private constructor(budget: RoleBudget) {
    this.name = budget.name;
    this.#policy = budget.policy;
    this.#above = budget.above;
    this.#written = budget.log.written;
    this.#lastUs = budget.log.lastUs;
    this.#acquired = budget.acquired;
    this.#isAnswered = budget.isAnswered;
    this.#hasUnchangedRates = budget.hasUnchangedRates;
  }

  /** Undefined if the budget has more state than an idle one keeps. */
  static of(budget: RoleBudget, nowUs: number): IdleBudget | undefined {
    return budget.isIdle(nowUs) ? new IdleBudget(budget) : undefined;
  }

  revive(role: Role, store: StoreState): RoleBudget {
    const budget = new RoleBudget(this.name, role, this.#policy, this.#above, store);
    budget.log = WindowLog.restore({ written: this.#written, pending: 0, lastUs: this.#lastUs });
    budget.acquired = this.#acquired;
    budget.isAnswered = this.#isAnswered;
    budget.hasUnchangedRates = this.#hasUnchangedRates;
    return budget;
  }

  /** As `RoleBudget.isEvictable`. */
  isEvictable(nowUs: number): boolean {
    const { windows, spacingUs } = this.#policy;
    const quietUs = nowUs - this.#lastUs;
    return quietUs >= spacingUs && windows.every(({ spanUs }) => quietUs >= spanUs);
  }
}
