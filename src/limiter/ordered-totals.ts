import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { budgetPolicy } from "../policy/budget-policy.ts";
import type { Route, TotalBudget } from "../policy/limit-policies.ts";
import { commonName } from "../policy/partition-name.ts";
import { withoutTier } from "../policy/service-name.ts";
import type { OrderedPolicies } from "./ordered-policies.ts";

/** The total of a host or service for which the policy sets none. */
const NO_TOTAL = budgetPolicy({});

/**
 * The totals above a budget, with the orders of operators. An order for a host or service without a total adds one.
 * @param owners the names whose orders apply to the budget: its host or service; for a budget `service <name>:<host>`, the
 *   service and then the host
 */
export function orderedAbove(
  { name, above }: Route,
  owners: readonly string[],
  ordersOf: (owner: string) => readonly OrderedLimit[],
  policies: OrderedPolicies,
): readonly TotalBudget[] {
  const own = withoutTier(commonName(name));
  // A service with `per_host` has a total for each host, of the same name as the budget.
  const ownerOf = (total: string) => (total === own ? (owners[0] ?? own) : total);
  const known = above.map(total => {
    const owner = ownerOf(withoutTier(total.name));
    return { ...total, policy: policies.of(total.policy, ordersOf(owner), owner) };
  });
  const added = [own, ...owners.slice(1)]
    .filter(total => above.every(each => withoutTier(each.name) !== total))
    .map(total => ({ name: total, policy: policies.of(NO_TOTAL, ordersOf(ownerOf(total)), ownerOf(total)) }))
    .filter(({ policy }) => policy !== NO_TOTAL);
  // Nearest first: the total of the budget itself, that of its host, those of services.
  const isOwn = (total: TotalBudget) => withoutTier(total.name) === own;
  return [
    ...added.filter(isOwn),
    ...known.filter(isOwn),
    ...added.filter(total => !isOwn(total)),
    ...known.filter(total => !isOwn(total)),
  ];
}
