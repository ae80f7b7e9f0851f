import type { Limits, SharedBudget } from "../policy/limits.ts";
import { ROLES, type Role } from "../policy/roles.ts";
import { Budget, Lane } from "./budget.ts";
import { ForgetfulMap } from "./forgetful-map.ts";

/** The lanes of a process, and the budgets above them. */
export class Lanes implements Iterable<Lane> {
  readonly #limits: Limits;
  readonly #byRole: Readonly<Record<Role, ForgetfulMap<Lane>>>;
  /** As many as the policy names. */
  readonly #shared = new Map<SharedBudget, Budget>();
  readonly #kept = new Set<Lane>();

  constructor(limits: Limits, isForgettable: (lane: Lane) => boolean) {
    this.#limits = limits;
    const make = () => new ForgetfulMap<Lane>(lane => !this.#kept.has(lane) && isForgettable(lane));
    this.#byRole = { metadata: make(), landing: make(), artifact: make() };
  }

  /** The lane of a request, made on its first use. Throws a RangeError for what is not a host. */
  at(host: string, role: Role, path?: string): Lane {
    const lanes = this.#byRole[role];
    // Known lanes carry canonical names, so that a name found here needs no more parsing.
    const known = path === undefined ? lanes.get(host) : undefined;
    if (known !== undefined) return known;
    const route = this.#limits.route(host, role, path);
    const existing = lanes.get(route.name);
    if (existing !== undefined) return existing;
    const above = route.above.reduceRight<Budget | undefined>(
      (outer, budget) => this.#sharedAt(budget, outer),
      undefined,
    );
    const lane = new Lane(route.name, role, route.lane, above);
    lanes.add(route.name, lane);
    return lane;
  }

  /** A lane that is there before its first request, and is never forgotten. */
  keep(host: string, role: Role): void {
    this.#kept.add(this.at(host, role));
  }

  *[Symbol.iterator](): IterableIterator<Lane> {
    for (const role of ROLES) yield* this.#byRole[role].values();
  }

  #sharedAt(shared: SharedBudget, above: Budget | undefined): Budget {
    const known = this.#shared.get(shared);
    if (known !== undefined) return known;
    const budget = new Budget(shared.name, shared.policy, above);
    this.#shared.set(shared, budget);
    return budget;
  }
}
