/** `docstokg/limiter`: the limiter alone, for those who want only that. */
export {
  BusyError,
  ConfigError,
  type Constraint,
  isDocstokgError,
  RateLimitExceeded,
  RejectedError,
} from "./errors.ts";
export {
  type AcquireRequest,
  type AnsweredRequest,
  type LimiterSnapshot,
  type RateGrant,
  RateLimiter,
  type RateLimiterOptions,
  type SendingGrant,
} from "./gate/rate-limiter.ts";
export type { Refusal } from "./limiter/grant.ts";
export type { KeySnapshot } from "./limiter/key-snapshot.ts";
export type { LimiterEvent } from "./limiter/limiter-events.ts";
export type { Listener } from "./listeners.ts";
export type {
  AimdOptions,
  BackendOptions,
  BudgetLimits,
  GlobalLimits,
  GroupLimits,
  HostLimits,
  LimitsByRole,
  RatelimitsOptions,
  RoleLimits,
} from "./policy/ratelimit-options.ts";
export type { Role } from "./policy/roles.ts";
export type { Time, Timer } from "./time/time.ts";
