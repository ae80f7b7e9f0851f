/** `docstokg`: the hub, with the limiter and the breaker. Re-exports, after a check of the runtime. */

import "./http/supported-runtime.ts";

export * from "./breaker.ts";
export type { CacheMode } from "./core/cache/cache-control.ts";
export {
  BodyUnreadError,
  BreakerOpenError,
  BusyError,
  ConfigError,
  type ConfigProblem,
  type Constraint,
  DeadlineExceededError,
  type DecidedBy,
  DocstokgError,
  type DocstokgErrorCode,
  DownloadError,
  HubClosedError,
  isDocstokgError,
  type LearnedFrom,
  type OpenCircuit,
  type OpenReason,
  type OrderedRate,
  PrivateAddressError,
  RateLimitExceeded,
  RedirectError,
  RejectedError,
  type RejectionDetails,
  StoreError,
  type WaitBound,
} from "./errors.ts";
export type { CallOptions, CostResponse, JudgedOutcome } from "./http/call-options.ts";
export type { HubAgents } from "./http/clients/hub-agents.ts";
export { createHub } from "./http/create-hub.ts";
export type { AttemptCause, AttemptOutcome, HttpEvent, RecordedOutcome } from "./http/http-events.ts";
export type {
  CacheSnapshot,
  FetchInput,
  FetchOptions,
  Hub,
  HubCounts,
  HubSnapshot,
  RequestOptions,
} from "./http/hub.ts";
export type { BreakerStatus, HubBreakers, OpenCircuitOptions } from "./http/hub-breakers.ts";
export type { HoldOptions, HubLimits, ResetLimitOptions, SetLimitOptions } from "./http/hub-limits.ts";
export type {
  HubEvent,
  HubListener,
  HubOptions,
  NetworkOptions,
  PolicyOptions,
  RetryOptions,
} from "./http/hub-options.ts";
export type { AttemptTrace, CallTrace, StartedAttempt, StartedCall, Tracer } from "./http/tracing.ts";
export * from "./limiter.ts";
export type { Environment } from "./policy/environment.ts";
export type { ExplainedValue, ValueSource } from "./policy/explanation.ts";
export type { PolicyOverrides } from "./policy/flag-layer.ts";
export type {
  HostIdentityOptions,
  IdentitiesOptions,
  IdentityFieldsOptions,
  IdentityTemplates,
} from "./policy/identity-options.ts";
export type { PolicySources } from "./policy/load.ts";
export type { PolicyChange } from "./policy/policy-changes.ts";
export type { PolicyMode, PolicyRow } from "./policy/policy-row.ts";
export { loadPolicy, type Policy } from "./policy/public-policy.ts";
export type { StoreName } from "./stores/open-store.ts";
export { SystemTime, systemTime } from "./time/system-time.ts";
export type { Time, Timer } from "./time/time.ts";
