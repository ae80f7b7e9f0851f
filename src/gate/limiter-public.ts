/** `docstokg/limiter`: the limiter alone, for those who want only that. */
export {
  BusyError,
  ConfigError,
  type Constraint,
  isDocstokgError,
  RateLimitExceeded,
  RejectedError,
} from "../errors.ts";
export type { Role } from "../policy/roles.ts";
export type { HostLimits, RatelimitsOptions, RoleLimits } from "../policy/schema.ts";
export type { Time, Timer } from "../time/time.ts";
export type { GateEvent } from "./gate-events.ts";
export type { Refusal } from "./grant.ts";
export {
  type AcquireRequest,
  type AnsweredRequest,
  type LimiterSnapshot,
  type RateGrant,
  RateLimiter,
  type RateLimiterOptions,
  type SendingGrant,
} from "./limiter.ts";
export type { Listener } from "./listeners.ts";
export type { LaneSnapshot } from "./snapshot.ts";
