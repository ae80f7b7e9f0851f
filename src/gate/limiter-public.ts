/** `docstokg/limiter`: the limiter alone, for those who want only that. */
export type { Role } from "../policy/roles.ts";
export type { RatelimitsOptions } from "../policy/schema.ts";
export type { GateEvent } from "./gate-events.ts";
export type { Grant, Refusal } from "./grant.ts";
export {
  type AcquireRequest,
  type AnsweredRequest,
  type LimiterSnapshot,
  RateLimiter,
  type RateLimiterOptions,
} from "./limiter.ts";
export type { Listener } from "./listeners.ts";
export type { LaneSnapshot } from "./snapshot.ts";
