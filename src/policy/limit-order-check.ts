import { formatRates, type Rate } from "../core/limits/rate.ts";
import type { RoleBudgetPolicy } from "./budget-policy.ts";
import type { LoadedPolicy } from "./load.ts";
import { implies } from "./rate-order.ts";
import { ROLES, type Role } from "./roles.ts";
import { isServiceName, withoutTier } from "./service-name.ts";

/** A host or `service <name>`, and one role of it or all of them. */
export interface LimitTarget {
  readonly unit: string;
  readonly role?: Role | undefined;
}

/** A role whose policy is stricter than the ordered rates. */
export interface StricterRole {
  /** The owner of the budget: a host or `service <name>`. */
  readonly unit: string;
  readonly role: Role;
  /** The ordered rate that is too loose. */
  readonly ordered: string;
  /** The rate of the policy that is stricter. */
  readonly configured: string;
}

/**
 * The budgets that an order for this host or service changes. The requests of a host may be counted by the budget of its
 * service; then that is the target, because every process reads the order there.
 */
export function limitTargetsOf(policy: LoadedPolicy, { unit, role }: LimitTarget): readonly LimitTarget[] {
  const roles = role === undefined ? ROLES : [role];
  const owners = Map.groupBy(roles, each => ownerOf(policy, unit, each));
  return [...owners].flatMap(([owner, ofOwner]) =>
    ofOwner.length === ROLES.length ? [{ unit: owner }] : ofOwner.map(each => ({ unit: owner, role: each })),
  );
}

/** The roles in which the policy is stricter than these rates: there an order without force has no effect. */
function stricterRoles(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  rates: readonly Rate[],
): readonly StricterRole[] {
  return rolesOf(targets).flatMap(({ unit, role }) => {
    const configured = policyOf(policy, unit, role)?.rates ?? [];
    for (const ordered of rates) {
      const stricter = configured.find(rate => implies(rate, ordered) && !implies(ordered, rate));
      if (stricter !== undefined)
        return [{ unit, role, ordered: formatRates([ordered]), configured: formatRates([stricter]) }];
    }
    return [];
  });
}

/** The roles in which these rates allow more than the policy in any window, with the rates of the policy. */
export function looserRoles(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  rates: readonly Rate[],
): readonly { readonly unit: string; readonly role: Role; readonly configured: string }[] {
  return rolesOf(targets).flatMap(({ unit, role }) => {
    const { rates: configured = [], labels = [] } = policyOf(policy, unit, role) ?? {};
    const isLooser = configured.some(rate => !rates.some(ordered => implies(ordered, rate)));
    return isLooser ? [{ unit, role, configured: labels.join("+") }] : [];
  });
}

/** Whether the limits of all these roles only report (`mode: shadow`). */
export function isShadowTarget(policy: LoadedPolicy, targets: readonly LimitTarget[]): boolean {
  return rolesOf(targets).every(({ unit, role }) => policyOf(policy, unit, role)?.isShadow === true);
}

/**
 * The roles that keep the rates of the policy, because those are stricter. Throws a RangeError if that are all roles:
 * then the order would do nothing.
 * @param hint how the order can be given all the same
 */
export function checkWithinPolicy(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  rates: readonly Rate[],
  hint: string,
): readonly StricterRole[] {
  const stricter = stricterRoles(policy, targets, rates);
  const [first] = stricter;
  if (first === undefined || stricter.length < rolesOf(targets).length) return stricter;
  const { unit, role, ordered, configured } = first;
  throw new RangeError(`${ordered} is looser than ${configured} of ${unit} (${role}) in the policy; ${hint}`);
}

function rolesOf(targets: readonly LimitTarget[]): readonly { readonly unit: string; readonly role: Role }[] {
  return targets.flatMap(({ unit, role }) => (role === undefined ? ROLES : [role]).map(each => ({ unit, role: each })));
}

function ownerOf({ ratelimits }: LoadedPolicy, unit: string, role: Role): string {
  return isServiceName(unit) ? unit : withoutTier(ratelimits.resolved.route(unit, role).name);
}

/** Undefined for a service that the policy does not have. */
function policyOf({ ratelimits }: LoadedPolicy, unit: string, role: Role): RoleBudgetPolicy | undefined {
  const { resolved } = ratelimits;
  if (!isServiceName(unit)) return resolved.route(unit, role).roleBudget;
  const entry = resolved.entries.find(({ name }) => name === unit);
  return entry && resolved.routeOf(entry, role).roleBudget;
}
