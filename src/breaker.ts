/** `docstokg/breaker`: circuit breakers without the hub and the rate limiter. */

export type { BreakerEvent, CircuitName, CircuitState } from "./breaker/breaker-events.ts";
export type { AllowRequest } from "./breaker/breakers.ts";
export type { BreakerDenial } from "./breaker/denial.ts";
export type { HostStatus, RoleStatus } from "./breaker/host-status.ts";
export type { BreakerPermit } from "./breaker/permit.ts";
export type { CallResult } from "./core/breaker/call-result.ts";
export type { Outcome, ResponseFacts } from "./core/breaker/classify.ts";
export { type DateReference, parseRetryAfterMs } from "./core/breaker/retry-after.ts";
export type { StoreEvent } from "./core/store-event.ts";
export {
  BreakerOpenError,
  ConfigError,
  type Constraint,
  isDocstokgError,
  type OpenReason,
  RejectedError,
  StoreError,
} from "./errors.ts";
export {
  BreakerRegistry,
  type BreakerRegistryOptions,
  type CallFacts,
  type FailureReport,
} from "./gate/breaker-registry.ts";
export type { EventOrigin, Listener } from "./listeners.ts";
export type {
  AdaptiveResetOptions,
  AdvancedBreakerOptions,
  BreakerDefaults,
  BreakersOptions,
  CircuitOptions,
  CircuitsByRole,
  ClassifyOptions,
  CooldownStoreOptions,
  HalfOpenOptions,
  HostBreakerOptions,
  RampUpOptions,
  RollingWindowOptions,
  ThrottleRuleOptions,
  TrialCallOptions,
} from "./policy/breaker-options.ts";
export type { Role } from "./policy/roles.ts";
export type { StoreName } from "./stores/open-store.ts";
export type { Time, Timer } from "./time/time.ts";
