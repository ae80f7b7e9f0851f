/** `docstokg/limiter`: the rate limiter without HTTP and breakers. */

export type { StoreEvent } from "./core/store-event.ts";
export {
  BusyError,
  ConfigError,
  type Constraint,
  HubClosedError,
  isDocstokgError,
  RateLimitExceeded,
  RejectedError,
  StoreError,
} from "./errors.ts";
export type { AcquireRequest, ImmediateRequest } from "./gate/acquire-request.ts";
export {
  type AnsweredRequest,
  type CooldownRequest,
  type LimiterSnapshot,
  type RateGrant,
  RateLimiter,
  type RateLimiterOptions,
  type SendingGrant,
} from "./gate/rate-limiter.ts";
export type {
  HoldSnapshot,
  KeySnapshot,
  LimitOrderSnapshot,
  TotalOrderSnapshot,
  WindowSnapshot,
} from "./limiter/key-snapshot.ts";
export type { LimiterEvent } from "./limiter/limiter-events.ts";
export type { Refusal } from "./limiter/refusal.ts";
export type { EventOrigin, Listener } from "./listeners.ts";
export type {
  AimdOptions,
  BackendOptions,
  BudgetLimits,
  GlobalLimits,
  HostLimits,
  LimitsByRole,
  RatelimitsOptions,
  ReplacedMembers,
  RoleLimits,
  ServiceLimits,
  TierLimits,
} from "./policy/ratelimit-options.ts";
export type { LimitPart, Role } from "./policy/roles.ts";
export type { StoreName } from "./stores/open-store.ts";
export type { Time, Timer } from "./time/time.ts";
