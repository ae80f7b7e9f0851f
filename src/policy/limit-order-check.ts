import type { OrderedLimit } from "../core/limits/ordered-limit.ts";
import { formatRates } from "../core/limits/rate.ts";
import { type BudgetPolicy, UNLIMITED } from "./budget-policy.ts";
import type { Route } from "./limit-policies.ts";
import type { LoadedPolicy } from "./load.ts";
import { implies } from "./rate-order.ts";
import { type LimitPart, ROLES, type Role } from "./roles.ts";
import { isServiceName, serviceOfName, withoutTier } from "./service-name.ts";

/** A host or `service <name>`, and one role of it, its total, or all roles. */
export interface LimitTarget {
  readonly unit: string;
  readonly role?: LimitPart | undefined;
}

/** What an order sets: rates, slots or both. */
export type WantedLimits = Pick<OrderedLimit, "rates" | "maxConcurrent">;

/** A role or total whose policy is stricter than the order. */
export interface StricterRole {
  /** The owner of the budget: a host or `service <name>`. */
  readonly unit: string;
  readonly role: LimitPart;
  /** The ordered limit that is too loose. */
  readonly ordered: string;
  /** The limit of the policy that is stricter. */
  readonly configured: string;
}

/** A role or total in which a forced order allows more than its policy, and the limits of the policy. */
export type LooserRole = Pick<StricterRole, "unit" | "role" | "configured">;

/** `2/SECOND+100/HOUR, max_concurrent 3`. */
export function limitsText({ rates, maxConcurrent }: WantedLimits): string {
  return orderedLimitsText(formatRates(rates), maxConcurrent);
}

/** As `limitsText`, with the rates as text; empty if there is neither. */
export function orderedLimitsText(rates: string, maxConcurrent: number | undefined): string {
  return [rates, maxConcurrent === undefined ? "" : capText(maxConcurrent)].filter(Boolean).join(", ");
}

/** Throws a RangeError for an order that sets nothing, and for a number of slots that is not whole. */
export function checkWantedLimits({ rates, maxConcurrent }: WantedLimits): void {
  if (rates.length === 0 && maxConcurrent === undefined)
    throw new RangeError("an order needs rates, such as 2/SECOND, or max_concurrent");
  if (maxConcurrent !== undefined && !(Number.isSafeInteger(maxConcurrent) && maxConcurrent >= 1))
    throw new RangeError(`max_concurrent must be a whole number of at least 1, not ${JSON.stringify(maxConcurrent)}`);
}

/**
 * The budgets that an order for this host or service changes. The requests of a host may be counted by the budget of its
 * service; then that is the target, because every process reads the order there. Throws a RangeError for a total that
 * could not count every request.
 */
export function limitTargetsOf(policy: LoadedPolicy, { unit, role }: LimitTarget): readonly LimitTarget[] {
  if (role === "total") return [{ unit: totalOwnerOf(policy, unit), role }];
  const roles = role === undefined ? ROLES : [role];
  const owners = Map.groupBy(roles, each => ownerOf(policy, unit, each));
  return [...owners].flatMap(([owner, ofOwner]) =>
    ofOwner.length === ROLES.length ? [{ unit: owner }] : ofOwner.map(each => ({ unit: owner, role: each })),
  );
}

/**
 * The roles whose policy has a stricter limit than the order, whatever key the requests carry: without force, that part
 * of the order has no effect.
 */
function stricterRoles(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  wanted: WantedLimits,
): readonly StricterRole[] {
  return partsOf(targets).flatMap(({ unit, role }) => {
    const stricter = policiesOf(policy, unit, role).map(each => stricterLimit(each, wanted));
    const [first] = stricter;
    return first === undefined || stricter.includes(undefined) ? [] : [{ unit, role, ...first }];
  });
}

/** A limit of the policy that is stricter than an ordered one. */
function stricterLimit(
  { rates: configured, maxConcurrent: cap }: BudgetPolicy,
  { rates, maxConcurrent = 0 }: WantedLimits,
): Pick<StricterRole, "ordered" | "configured"> | undefined {
  for (const ordered of rates) {
    const stricter = configured.find(rate => implies(rate, ordered) && !implies(ordered, rate));
    if (stricter !== undefined) return { ordered: formatRates([ordered]), configured: formatRates([stricter]) };
  }
  return maxConcurrent > cap ? { ordered: capText(maxConcurrent), configured: capText(cap) } : undefined;
}

/** The roles in which the order allows more than the policy, in a window or in slots, with the limits of the policy. */
export function looserRoles(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  { rates, maxConcurrent = 0 }: WantedLimits,
): readonly LooserRole[] {
  return partsOf(targets).flatMap(({ unit, role }) => {
    const stricter = policiesOf(policy, unit, role).map(({ rates: configured, labels, maxConcurrent: cap }) => {
      const isFaster = rates.length > 0 && configured.some(rate => !rates.some(ordered => implies(ordered, rate)));
      return [isFaster ? labels.join("+") : "", maxConcurrent > cap ? capText(cap) : ""].filter(Boolean).join(", ");
    });
    const configured = stricter.find(Boolean);
    return configured === undefined ? [] : [{ unit, role, configured }];
  });
}

/** Whether the limits of all these roles only report (`mode: shadow`). */
export function isShadowTarget(policy: LoadedPolicy, targets: readonly LimitTarget[]): boolean {
  return partsOf(targets).every(({ unit, role }) =>
    role === "total"
      ? ROLES.every(each => roleRouteOf(policy, unit, each)?.roleBudget.isShadow === true)
      : roleRouteOf(policy, unit, role)?.roleBudget.isShadow === true,
  );
}

/**
 * The roles that keep a limit of the policy, because it is stricter than an ordered one. Throws a RangeError if all roles
 * do so.
 * @param hint last part of the error message: how to give the order anyway
 */
export function checkWithinPolicy(
  policy: LoadedPolicy,
  targets: readonly LimitTarget[],
  wanted: WantedLimits,
  hint: string,
): readonly StricterRole[] {
  const stricter = stricterRoles(policy, targets, wanted);
  const [first] = stricter;
  if (first === undefined || stricter.length < partsOf(targets).length) return stricter;
  const { unit, role, ordered, configured } = first;
  throw new RangeError(`${ordered} is looser than ${configured} of ${unit} (${role}) in the policy; ${hint}`);
}

function partsOf(targets: readonly LimitTarget[]): readonly { readonly unit: string; readonly role: LimitPart }[] {
  return targets.flatMap(({ unit, role }) => (role === undefined ? ROLES : [role]).map(each => ({ unit, role: each })));
}

function ownerOf({ ratelimits }: LoadedPolicy, unit: string, role: Role): string {
  return isServiceName(unit) ? unit : withoutTier(ratelimits.resolved.route(unit, role).name);
}

/** The host or service whose total counts every request to a host. */
function totalOwnerOf(policy: LoadedPolicy, unit: string): string {
  const owners = new Set(ROLES.map(role => ownerOf(policy, unit, role)));
  const [owner = unit, other] = owners;
  if (other !== undefined)
    throw new RangeError(
      `${unit} has no total of its own: some of its roles share the limits of ${[...owners].find(isServiceName)}`,
    );
  const apart = isServiceName(owner) && !hasTotal(policy, owner) ? membersApart(policy, owner) : [];
  if (apart.length > 0)
    throw new RangeError(
      `${owner} has no total in the policy, and ${apart.join(", ")} has limits of its own: add a total to the policy`,
    );
  return owner;
}

/** Hosts of a service that the policy lists, with budgets of their own. */
function membersApart({ ratelimits }: LoadedPolicy, owner: string): readonly string[] {
  const { resolved, options } = ratelimits;
  return Object.keys(options.hosts ?? {}).filter(
    host =>
      resolved.routing.find(host).service === serviceOfName(owner) &&
      ROLES.some(role => withoutTier(resolved.route(host, role).name) !== owner),
  );
}

function hasTotal(policy: LoadedPolicy, owner: string): boolean {
  return !policiesOf(policy, owner, "total").includes(UNLIMITED);
}

/**
 * The policies of a budget, one for each set of keys that its requests carry. `UNLIMITED` for a total that the policy
 * does not set, and for a service that it does not have.
 */
function policiesOf(policy: LoadedPolicy, unit: string, part: LimitPart): readonly BudgetPolicy[] {
  const isOfUnit = ({ name }: { readonly name: string }) => withoutTier(name) === unit;
  const policiesIn = (routes: readonly Route[]) =>
    part === "total"
      ? routes.flatMap(({ above }) => above.filter(isOfUnit).map(total => total.policy))
      : routes.filter(isOfUnit).map(({ roleBudget }) => roleBudget);
  const roles = part === "total" ? ROLES : [part];
  const used = policiesIn(roles.flatMap(role => policy.ratelimits.resolved.routesOf(unit, role)));
  // Calls can name a service whose members all have limits of their own.
  const found = used.length > 0 ? used : policiesIn(roles.flatMap(role => roleRouteOf(policy, unit, role) ?? []));
  return found.length > 0 ? [...new Set(found)] : [UNLIMITED];
}

/** Undefined for a service that the policy does not have. */
function roleRouteOf({ ratelimits }: LoadedPolicy, unit: string, role: Role) {
  const { resolved } = ratelimits;
  if (!isServiceName(unit)) return resolved.route(unit, role);
  const entry = resolved.entries.find(({ name }) => name === unit);
  return entry && resolved.routeOf(entry, role);
}

function capText(slots: number): string {
  return Number.isFinite(slots) ? `max_concurrent ${slots}` : "no max_concurrent";
}
