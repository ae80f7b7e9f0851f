import type { LimitPolicies, Route } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { isServiceName } from "../policy/service-name.ts";
import { type Budget, budgetsAbove } from "./budget.ts";
import { formerName, keyOf, withoutKeys } from "./former-members.ts";
import type { MovedPlaces } from "./moved-places.ts";
import { partitionsByName, type Reloaded, routeAt, type TakenOver } from "./recount.ts";
import { type CountingBudgets, RequestBatch } from "./request-batch.ts";
import type { RoleBudget } from "./role-budget.ts";

/**
 * The requests that were granted before a reload and are not over. Each counts in every budget that may apply to it now.
 * Until it is written, it counts as if it were written at the present instant (law L1). It has a slot until it ends.
 */
export class FormerRequests {
  readonly #batches = new Set<RequestBatch>();
  /** Those of services: by the limits that they were granted by, and by the role and name of the service. */
  readonly #ofServices = new Map<LimitPolicies, Map<string, Set<RequestBatch>>>();

  /** The batch of a request; undefined if it was granted since the last reload. */
  of(roleBudget: RoleBudget, generation: number): RequestBatch | undefined {
    if (roleBudget.generation === generation) return undefined;
    for (const batch of this.#batches)
      if (batch.roleBudget === roleBudget && batch.generation === generation) return batch;
    return undefined;
  }

  /** To be called when requests of a batch have ended. */
  ended(batch: RequestBatch): void {
    if (!batch.isOver) return;
    this.#batches.delete(batch);
    const { roleBudget, limits } = batch;
    const key = keyOf(roleBudget.name, roleBudget.role);
    const byService = this.#ofServices.get(limits);
    const ofService = byService?.get(key);
    ofService?.delete(batch);
    if (ofService?.size === 0) byService?.delete(key);
    if (byService?.size === 0) this.#ofServices.delete(limits);
  }

  /** A reload begins: until `countAgain` is called, no budget counts the requests in flight. */
  takeOut(roleBudgets: readonly RoleBudget[], before: LimitPolicies): void {
    // First the older batches, so that each role budget has its own requests only.
    for (const batch of this.#batches) batch.takeOut();
    for (const roleBudget of roleBudgets) {
      if (!roleBudget.hasPending && roleBudget.inFlight === 0) continue;
      const batch = new RequestBatch(roleBudget, before);
      batch.takeOut();
      this.#add(batch);
    }
  }

  #add(batch: RequestBatch): void {
    this.#batches.add(batch);
    const { name, role } = batch.roleBudget;
    if (!isServiceName(name)) return;
    const byService = this.#ofServices.get(batch.limits) ?? new Map<string, Set<RequestBatch>>();
    const key = keyOf(name, role);
    this.#ofServices.set(batch.limits, byService.set(key, (byService.get(key) ?? new Set()).add(batch)));
  }

  /** Counts the requests in flight in the budgets of the new limits. */
  countAgain(reloaded: Reloaded): TakenOver[] {
    const partitionsOf = partitionsByName(reloaded);
    // Common budgets first: a partition that a later batch creates counts the requests of `dividedAt` at that time.
    const commonFirst = [...this.#batches].sort((a, b) => Number(a.partition !== "") - Number(b.partition !== ""));
    return commonFirst.flatMap(batch => {
      const budgets = budgetsOf(batch, reloaded, partitionsOf);
      batch.countIn(budgets);
      return batch.unknownToStore(budgets);
    });
  }

  /**
   * Called when a partition is used for the first time. `divided` has the requests that were granted before the limits
   * were split by partition. The partition counts all of them.
   */
  partitionCreated(partition: RoleBudget, divided: RoleBudget): TakenOver[] {
    const budgets = new Map([[partition, partition]]);
    return [...this.#batches].flatMap(batch => {
      if (!batch.budgets.has(divided)) return [];
      batch.countIn(budgets);
      return batch.unknownToStore(budgets);
    });
  }

  /**
   * Called for each new budget. Its host may have belonged to a service whose budget has granted requests that are still
   * in flight; then the new budget counts them too. If it has no partition, it counts those of each partition of the
   * service.
   */
  created(roleBudget: RoleBudget): TakenOver[] {
    const { name, role } = roleBudget;
    return Array.from(this.#ofServices).flatMap(([limits, byService]) => {
      const former = formerName(name, role, limits);
      if (former === undefined || former === name) return [];
      const batches = [...(byService.get(keyOf(former, role)) ?? [])];
      return batches.flatMap(batch => {
        if (name !== commonName(name) && withoutKeys(batch.roleBudget.name) !== withoutKeys(former)) return [];
        const budgets = new Map([roleBudget, ...budgetsAbove(roleBudget)].map(budget => [budget, roleBudget]));
        batch.countIn(budgets);
        return batch.unknownToStore(budgets);
      });
    });
  }
}

function budgetsOf(
  batch: RequestBatch,
  { now, budgetAt, dividedAt, moved }: Reloaded,
  partitionsOf: ReturnType<typeof partitionsByName>,
): CountingBudgets {
  const { role } = batch.roleBudget;
  const budgets = new Map<Budget, RoleBudget>();
  for (const route of routesOf(batch, now, moved)) {
    const roleBudget = budgetAt(route, role);
    const isDivided = batch.mayHavePartition && route.roleBudget.isPerPartition;
    const partitions = isDivided ? [dividedAt(route, role), ...partitionsOf(route.name, role)] : [];
    for (const each of [roleBudget, ...partitions]) budgets.set(each, each);
    for (const total of budgetsAbove(roleBudget)) budgets.set(total, roleBudget);
  }
  // No budget of the new limits is known, because the hosts that a suffix matches are not recorded. The former role
  // budget keeps the requests. If a later reload contains the service again, they count there.
  if (budgets.size === 0) budgets.set(batch.roleBudget, batch.roleBudget);
  return budgets;
}

function routesOf(
  { roleBudget: { name, role }, limits, partition }: RequestBatch,
  now: LimitPolicies,
  moved: MovedPlaces,
): readonly Route[] {
  const same = now.routeByName(name, role);
  const routes = moved.of(name, role, limits).map(place => routeAt(place, role, partition, now));
  return same?.name === name ? [same, ...routes] : routes;
}
