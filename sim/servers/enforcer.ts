import type { RatePlan, ServerModel } from "../plan.ts";
import { FixedWindow } from "./fixed-window.ts";
import { Gcra } from "./gcra.ts";
import { SlidingLog } from "./sliding-log.ts";
import { Tokens } from "./tokens.ts";
import { TwoBuckets } from "./two-buckets.ts";

/** How a server enforces a rate. `has` and `count` are separate, so that all rates are checked before one counts. */
export interface Enforcer {
  has(units: number, nowUs: number): boolean;
  count(units: number, nowUs: number): void;
  /** Units that would be accepted now, for rate limit headers. */
  remaining(nowUs: number): number;
}

const MODELS: Readonly<Record<ServerModel, new (limit: number, windowUs: number) => Enforcer>> = {
  "fixed-window": FixedWindow,
  "sliding-log": SlidingLog,
  tokens: Tokens,
  gcra: Gcra,
  "two-buckets": TwoBuckets,
};

export function enforcerOf(model: ServerModel, { limit, windowMs }: RatePlan): Enforcer {
  return new MODELS[model](limit, windowMs * 1000);
}
