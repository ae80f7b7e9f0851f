/** `docstokg/breaker`: the breakers alone, for those who want only that. */
export type { Outcome } from "../core/classify.ts";
export { type ReceivedAt, retryAfterMs } from "../core/retry-after.ts";
export {
  BreakerOpenError,
  ConfigError,
  type Constraint,
  isDocstokgError,
  type OpenReason,
  RejectedError,
} from "../errors.ts";
export type { BreakersOptions } from "../policy/breaker-schema.ts";
export type { Role } from "../policy/roles.ts";
export type { Time, Timer } from "../time/time.ts";
export type { BreakerEvent, CircuitState } from "./breaker-events.ts";
export type { HostStatus, RoleStatus } from "./breaker-status.ts";
export {
  type AllowRequest,
  BreakerRegistry,
  type BreakerRegistryOptions,
  type CallFacts,
  type FailureReport,
} from "./breakers.ts";
export type { Denial } from "./denial.ts";
export type { Listener } from "./listeners.ts";
export type { CallResult, Permit } from "./permit.ts";
