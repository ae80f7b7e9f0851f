/** The front door: re-exports only. */

export * from "./breaker.ts";
export * from "./errors.ts";
export * from "./http/public.ts";
export * from "./limiter.ts";
export { type LoadedPolicy, loadPolicy, type PolicyOverrides, type PolicySources } from "./policy/load.ts";
export { SystemTime, systemTime } from "./time/system-time.ts";
export type { Time, Timer } from "./time/time.ts";
