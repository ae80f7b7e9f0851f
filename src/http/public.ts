/** What the front door shows of this room. */
export { createHub } from "./create-hub.ts";
export type { HttpEvent } from "./http-events.ts";
export type { CacheSnapshot, FetchInput, FetchOptions, Hub, HubSnapshot, RequestOptions } from "./hub.ts";
export type { HubEvent, HubOptions, NetworkOptions, PolicyOptions, RetryOptions } from "./hub-options.ts";
export type { CallOptions } from "./stages/stage.ts";
