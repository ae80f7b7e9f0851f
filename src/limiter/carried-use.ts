import { isOfUnnamedHost } from "../policy/budget-unit.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import type { Role } from "../policy/roles.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import { DividedBudgets } from "./divided-budgets.ts";
import { FormerMembers, type FormerService } from "./former-members.ts";
import { FormerRequests } from "./former-requests.ts";
import { MovedPlaces } from "./moved-places.ts";
import { countAgain, type Reloaded, type TakenOver, unitsOf } from "./recount.ts";
import type { RoleBudget } from "./role-budget.ts";
import { type FormerBudget, SentHistory } from "./sent-history.ts";

/**
 * Keeps the requests that were sent or are in flight when limits are reloaded: they count in every budget that applies
 * to them now (law L1).
 */
export class CarriedUse {
  readonly history = new SentHistory();
  readonly formerRequests = new FormerRequests();
  readonly #divided = new DividedBudgets();
  readonly #formerMembers = new FormerMembers();
  readonly #takenOver: TakenOver[] = [];
  readonly #isShared: () => boolean;

  /** `isShared`: whether the budgets are shared through a store, which has to know the units that they take over. */
  constructor(isShared: () => boolean) {
    this.#isShared = isShared;
  }

  /**
   * Counts in a new budget the units that an earlier budget of its name sent. A partition also counts units that were
   * sent before its limits were divided, and requests in flight that may be its own.
   */
  created(roleBudget: RoleBudget, nowUs: number): void {
    const { name, role } = roleBudget;
    const former = this.history.take(name, role, nowUs);
    if (former !== undefined) roleBudget.absorb([former]);
    for (const service of this.#formerMembers.formerServicesOf(roleBudget, nowUs))
      this.#countFormerService(roleBudget, service, nowUs);
    this.#report(this.formerRequests.created(roleBudget));
    const divided = this.#divided.ofPartition(name, role);
    if (divided === undefined) return;
    roleBudget.absorb([divided]);
    this.#report([{ budget: roleBudget, roleBudget, units: unitsOf(roleBudget, [divided], nowUs) }]);
    this.#report(this.formerRequests.partitionCreated(roleBudget, divided));
  }

  /** A reload begins: until `countAgain` is called, no budget counts the requests in flight. */
  takeOut(roleBudgets: readonly RoleBudget[], before: LimitPolicies): void {
    this.formerRequests.takeOut(roleBudgets, before);
  }

  /** Counts what these role budgets and those that are gone have sent, and all requests in flight, by the new limits. */
  countAgain(roleBudgets: readonly RoleBudget[], reloaded: Omit<Reloaded, "dividedAt" | "moved">): void {
    const { before, now, nowUs } = reloaded;
    const all: Reloaded = {
      ...{ ...reloaded, moved: new MovedPlaces(now) },
      dividedAt: (route, role) => this.#divided.at(route, role),
    };
    // A budget that this reload has removed is in the history too.
    const senders = new Set([...roleBudgets, ...this.history.all(nowUs), ...this.#divided.takeAll(nowUs)]);
    // First, because it compares with the budgets that the former limits had.
    this.#report(this.#formerMembers.countAgain(all));
    this.#report(countAgain([...senders], all));
    this.#formerMembers.reloaded(senders, before, now, nowUs);
    this.#report(this.formerRequests.countAgain(all));
    // Otherwise the next reload would count them once more.
    this.history.remove(
      ({ name, role }) =>
        !all.moved.isUnmoved(name, role, before) &&
        (isOfUnnamedHost(name, before) || isCountedElsewhere(before, name, role)) &&
        now.routeByName(name, role)?.name !== name,
    );
  }

  /**
   * The units that budgets have taken over from others. They have to be reported, because the store does not know them.
   * Each entry is returned once.
   */
  takeTakenOver(): readonly TakenOver[] {
    return this.#takenOver.splice(0);
  }

  /** The host of a new budget was a member of a service until a reload: the budget counts what the service had sent. */
  #countFormerService(roleBudget: RoleBudget, { name, before, senders, merged }: FormerService, nowUs: number): void {
    const counted = before.routeByName(name, roleBudget.role)?.above ?? [];
    const totals = budgetsAbove(roleBudget).filter(total => counted.every(({ name: known }) => known !== total.name));
    const count = (budget: Budget, sent: readonly FormerBudget[]) => {
      budget.absorb(sent);
      this.#report([{ budget, roleBudget, units: unitsOf(budget, sent, nowUs) }]);
    };
    count(roleBudget, merged);
    for (const total of totals) count(total, senders);
  }

  #report(takenOver: readonly TakenOver[]): void {
    if (this.#isShared()) this.#takenOver.push(...takenOver);
  }
}

/**
 * Whether other budgets count the units of this budget after a reload has removed it. True for a service with at least
 * one member that is not a suffix. False for one that has only suffixes, because their hosts are not known, and for a
 * service with `per_host`, because its budget is used again when the service comes back.
 */
export function isCountedElsewhere(before: LimitPolicies, name: string, role: Role): boolean {
  return before.placesOf(name, role).some(({ service }) => service === undefined);
}
