import { EvictingMap } from "../core/evicting-map.ts";
import type { AimdPolicy } from "../core/limits/aimd.ts";
import type { Route } from "../policy/limit-policies.ts";
import type { Time } from "../time/time.ts";
import { Budget } from "./budget.ts";
import { SentHistory } from "./sent-history.ts";

/**
 * The budgets that several role budgets share: the totals of hosts and services. A service with `per_host` and a `total`
 * has one for each host that is called. Each new one checks two others, and evicts those that behave like a new one and
 * have no role budget (law L11).
 */
export class TotalBudgets {
  readonly #byName: EvictingMap<Budget>;
  /** How many role budgets and totals are directly below each total. */
  readonly #below = new Map<Budget, number>();
  /** What evicted totals have sent: a later policy may have longer windows. */
  readonly #history = new SentHistory<"total">();
  readonly #time: Time;
  /** Called for each new one. */
  readonly #onCreate: (total: Budget, route: Route) => void;

  constructor(time: Time, onCreate: (total: Budget, route: Route) => void) {
    this.#time = time;
    this.#onCreate = onCreate;
    this.#byName = new EvictingMap(total => this.#evict(total));
  }

  get names(): readonly string[] {
    return Array.from(this.#byName.values(), ({ name }) => name);
  }

  /** Of totals that were evicted and have sent something. */
  get evictedNames(): readonly string[] {
    return this.#history.all(this.#time.monotonicUs()).map(({ name }) => name);
  }

  /** The budget is new. What is above it is not evicted until `left` is called. */
  joined({ above }: Budget): void {
    if (above !== undefined) this.#below.set(above, (this.#below.get(above) ?? 0) + 1);
  }

  /** The budget is evicted or detached. */
  left({ above }: Budget): void {
    if (above === undefined) return;
    const below = (this.#below.get(above) ?? 0) - 1;
    if (below > 0) this.#below.set(above, below);
    else this.#below.delete(above);
  }

  /** The limits have changed: the budget has other totals above it. */
  move(budget: Budget, above: Budget | undefined): void {
    this.left(budget);
    budget.above = above;
    this.joined(budget);
  }

  /**
   * A total that a reload removes starts again if it comes back, with what its role budgets have sent. Otherwise these
   * requests would count twice. The same is true for a total that was evicted before.
   */
  drop(name: string): void {
    const total = this.#byName.get(name);
    if (total !== undefined) this.left(total);
    this.#byName.delete(name);
    this.#history.take(name, "total", this.#time.monotonicUs());
  }

  /** The lowest total of a route, with those above it, each created on first use; undefined if it has none. */
  of(route: Route, aimd: AimdPolicy): Budget | undefined {
    return route.above.reduceRight<Budget | undefined>((outer, { name, policy }) => {
      const total = this.#byName.get(name) ?? this.#create(new Budget(name, policy, outer), route);
      // A reload visits only the totals of existing role budgets; the others still have the old policy.
      if (total.policy !== policy) total.reload(policy, aimd);
      if (total.above !== outer) this.move(total, outer);
      return total;
    }, undefined);
  }

  #create(total: Budget, route: Route): Budget {
    this.joined(total);
    const former = this.#history.take(total.name, "total", this.#time.monotonicUs());
    if (former !== undefined) total.absorb([former]);
    this.#onCreate(total, route);
    this.#byName.add(total.name, total);
    return total;
  }

  #evict(total: Budget): boolean {
    if (this.#below.has(total) || !total.isExpired(this.#time.monotonicUs())) return false;
    const { name, log, windows, costLogs } = total;
    this.#history.add({ name, role: "total", log, windows, costLogs }, true);
    this.left(total);
    return true;
  }
}
