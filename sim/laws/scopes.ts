/** The windows that apply to a request, and a log for each. */
import type { WireRequest } from "../facts.ts";
import type { HostPlan, Plan, RatePlan } from "../plan.ts";
import { StampLog } from "./stamp-log.ts";

/** Maximum time between the grant and the sending of a probe. */
export const JITTER_US = 200_000;

interface RateScope {
  readonly name: string;
  readonly rate: RatePlan;
}

export function hostOf(plan: Plan, { host }: WireRequest): HostPlan {
  return plan.hosts.find(({ name }) => name === host) as HostPlan;
}

export function scopesOf({ roleLimits, total }: HostPlan, { role }: WireRequest): readonly RateScope[] {
  return [
    ...(roleLimits[role]?.rates ?? []).map(rate => ({ name: `${role} ${rate.limit}/${rate.windowMs}ms`, rate })),
    ...total.map(rate => ({ name: `total ${rate.limit}/${rate.windowMs}ms`, rate })),
  ];
}

export function logOf(logs: Map<string, StampLog>, key: string): StampLog {
  const log = logs.get(key) ?? new StampLog();
  logs.set(key, log);
  return log;
}
