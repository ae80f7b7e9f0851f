/** The front door: re-exports only. */
export * from "./errors.ts";
export * from "./gate/breakers-public.ts";
export * from "./gate/limiter-public.ts";
export * from "./http/public.ts";
export { type LoadedPolicy, loadPolicy, type PolicyOverrides, type PolicySources } from "./policy/load.ts";
export { SystemTime, systemTime } from "./time/system-time.ts";
export type { Time, Timer } from "./time/time.ts";
