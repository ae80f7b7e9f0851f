import type { LimitPolicies } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import type { Charge } from "./charge.ts";
import { RoleBudget } from "./role-budget.ts";

/** The budgets that count a batch, each with a role budget whose requests pass it. */
export type CountingBudgets = ReadonlyMap<Budget, RoleBudget>;

/** Requests that one role budget had in flight at a reload. They are settled with every budget that counts them now. */
export class RequestBatch {
  /** The role budget that granted them. */
  readonly roleBudget: RoleBudget;
  readonly generation: number;
  /** The limits that it was granted by. */
  readonly limits: LimitPolicies;
  /** The end of the name of their partition; empty if they have none, or if it is not known. */
  readonly partition: string;
  /** Whether each request may be of any partition. */
  readonly mayHavePartition: boolean;
  /** The store keys that its units were leased from. */
  readonly #leasedKeys: ReadonlySet<string>;
  #budgets: CountingBudgets;
  #units: number;
  readonly #costs: Map<string, number>;
  #inFlight: number;

  /** Takes over all requests that the role budget has in flight. Its later requests get a higher generation number. */
  constructor(roleBudget: RoleBudget, limits: LimitPolicies) {
    const { name, policy, log, costLogs, inFlight } = roleBudget;
    const budgets = [roleBudget, ...budgetsAbove(roleBudget)];
    this.roleBudget = roleBudget;
    this.generation = roleBudget.generation;
    roleBudget.generation += 1;
    this.limits = limits;
    this.partition = name.slice(commonName(name).length);
    this.mayHavePartition = this.partition === "" && !policy.isPerPartition;
    this.#leasedKeys = new Set(budgets.map(({ storeKey }) => storeKey));
    this.#budgets = new Map(budgets.map(budget => [budget, roleBudget]));
    this.#units = log.pending;
    this.#costs = new Map(costLogs.map(({ unit, log: ofUnit }) => [unit, ofUnit.pending]));
    this.#inFlight = inFlight;
  }

  get isOver(): boolean {
    return this.#units === 0 && this.#inFlight === 0;
  }

  get budgets(): CountingBudgets {
    return this.#budgets;
  }

  /** The role budgets that count it. */
  get roleBudgets(): ReadonlySet<RoleBudget> {
    return new Set(this.#budgets.values());
  }

  /** No budget counts it until `countIn` is called. */
  takeOut(): void {
    for (const budget of this.#budgets.keys()) {
      budget.inFlight -= this.#inFlight;
      budget.giveBack(this.#pending);
    }
    this.#budgets = new Map();
  }

  /** Also counts it in these budgets. */
  countIn(budgets: CountingBudgets): void {
    const costs = [...this.#costs.keys()].map(unit => ({ unit }));
    for (const budget of budgets.keys()) {
      if (this.#budgets.has(budget)) continue;
      if (budget instanceof RoleBudget) budget.track(costs);
      budget.inFlight += this.#inFlight;
      budget.reserve(this.#pending);
    }
    this.#budgets = new Map([...this.#budgets, ...budgets]);
  }

  /** The `budgets` for which the store has not leased the units of the batch, with these units. */
  unknownToStore(budgets: CountingBudgets, units = this.#units) {
    return Array.from(budgets, ([budget, roleBudget]) => ({ budget, roleBudget, units })).filter(
      ({ budget, roleBudget }) => !roleBudget.isDetached && !this.#leasedKeys.has(budget.storeKey),
    );
  }

  written(charge: Charge, nowUs: number): void {
    for (const budget of this.#budgets.keys()) budget.writeReserved(charge, nowUs);
    this.#settled(charge);
  }

  giveBack(charge: Charge): void {
    for (const budget of this.#budgets.keys()) budget.giveBack(charge);
    this.#settled(charge);
  }

  /** A request used `more` of a unit than it was charged, and is not written yet. */
  reserveMore(unit: string, more: number): void {
    this.#costs.set(unit, (this.#costs.get(unit) ?? 0) + more);
  }

  freeSlot(): void {
    this.#inFlight -= 1;
    for (const budget of this.#budgets.keys()) budget.inFlight -= 1;
  }

  get #pending(): Charge {
    return { units: this.#units, costs: this.#costs };
  }

  #settled({ units, costs }: Charge): void {
    this.#units -= units;
    for (const [unit, amount] of costs ?? []) this.reserveMore(unit, -amount);
  }
}
