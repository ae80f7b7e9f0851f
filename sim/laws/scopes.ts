/** The windows that apply to a request, and a log for each. */
import { budgetOf, type WireRequest } from "../facts.ts";
import type { HostPlan, Plan, RatePlan } from "../plan.ts";
import { StampLog } from "./stamp-log.ts";

/** Maximum time between the grant and the sending of a probe. */
export const JITTER_US = 200_000;

/** One window that applies to a request. */
export interface RateScope {
  readonly name: string;
  readonly rate: RatePlan;
  readonly isTotal: boolean;
}

export function hostOf(plan: Plan, { host }: WireRequest): HostPlan {
  return plan.hosts.find(({ name }) => name === host) as HostPlan;
}

export function scopesOf({ roleLimits, total }: HostPlan, request: WireRequest): readonly RateScope[] {
  return scopes(budgetOf(request), roleLimits[request.role]?.rates ?? [], total);
}

/** The same for windows of credits. */
export function creditScopesOf({ credits }: HostPlan, request: WireRequest): readonly RateScope[] {
  return credits === undefined ? [] : scopes(`credits, ${budgetOf(request)}`, credits.rates, credits.total);
}

function scopes(role: string, rates: readonly RatePlan[], total: readonly RatePlan[]): readonly RateScope[] {
  const prefix = role.startsWith("credits") ? "credits, " : "";
  return [
    ...rates.map(rate => ({ name: `${role} ${rate.limit}/${rate.windowMs}ms`, rate, isTotal: false })),
    ...total.map(rate => ({ name: `${prefix}total ${rate.limit}/${rate.windowMs}ms`, rate, isTotal: true })),
  ];
}

/** Whether the limits of a role count both requests: those of the same host, role and partition. */
export function isSameBudget(one: WireRequest, other: WireRequest): boolean {
  return one.host === other.host && budgetOf(one) === budgetOf(other);
}

export function logOf(logs: Map<string, StampLog>, key: string): StampLog {
  const log = logs.get(key) ?? new StampLog();
  logs.set(key, log);
  return log;
}
