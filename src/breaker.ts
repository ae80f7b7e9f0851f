/** `docstokg/breaker`: the breakers alone, for those who want only that. */

export type { BreakerEvent, CircuitState } from "./breaker/breaker-events.ts";
export {
  type AllowRequest,
  BreakerRegistry,
  type BreakerRegistryOptions,
  type CallFacts,
  type FailureReport,
} from "./breaker/breaker-registry.ts";
export type { Denial } from "./breaker/denial.ts";
export type { HostStatus, RoleStatus } from "./breaker/host-status.ts";
export type { Permit } from "./breaker/permit.ts";
export type { CallResult } from "./core/breaker/call-result.ts";
export type { Outcome } from "./core/breaker/classify.ts";
export { type DateReference, retryAfterMs } from "./core/breaker/retry-after.ts";
export {
  BreakerOpenError,
  ConfigError,
  type Constraint,
  isDocstokgError,
  type OpenReason,
  RejectedError,
} from "./errors.ts";
export type { Listener } from "./listeners.ts";
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
  RollingWindowOptions,
  TrialCallOptions,
} from "./policy/breaker-options.ts";
export type { Role } from "./policy/roles.ts";
export type { Time, Timer } from "./time/time.ts";
