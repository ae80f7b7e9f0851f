import type { LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import type { BreakerEvent } from "../breaker/breaker-events.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { Listener } from "../listeners.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import type { Environment } from "../policy/environment.ts";
import type { PolicyOverrides } from "../policy/flag-layer.ts";
import type { IdentitiesOptions } from "../policy/identity-options.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import type { StoreName } from "../stores/open-store.ts";
import type { Time } from "../time/time.ts";
import type { HttpEvent } from "./http-events.ts";
import type { CallOptions } from "./stages/stage.ts";

/** Everything that a hub tells. */
export type HubEvent = HttpEvent | LimiterEvent | BreakerEvent;

export interface PolicyOptions {
  /** A file, or the same as an object; extends the shipped one. */
  readonly ratelimits?: string | RatelimitsOptions | undefined;
  readonly breakers?: string | BreakersOptions | undefined;
  /** How each host is told who calls. */
  readonly identities?: string | IdentitiesOptions | undefined;
}

export interface RetryOptions {
  /** Attempts in all, the first included. @default 4 */
  readonly attempts?: number | undefined;
  /** The widest first pause; it doubles from there. @default 500 */
  readonly baseMs?: number | undefined;
  /** @default 30_000 */
  readonly capMs?: number | undefined;
  /** No attempt begins later than this after the call, unless the call has a deadline of its own. @default 120_000 */
  readonly deadlineMs?: number | undefined;
}

export interface NetworkOptions {
  /** False refuses addresses of private networks, at every hop. @default true */
  readonly allowPrivate?: boolean | undefined;
  /** `host:port:address:port`, as for curl: where to connect instead. */
  readonly connectTo?: readonly string[] | undefined;
  readonly lookup?: LookupFunction | undefined;
  readonly tls?: { readonly ca?: string | Buffer } | undefined;
  readonly headersTimeoutMs?: number | undefined;
  readonly bodyTimeoutMs?: number | undefined;
  readonly connectTimeoutMs?: number | undefined;
}

/** Every field is optional. */
export interface HubOptions {
  readonly policy?: PolicyOptions | undefined;
  /** The environment's layer of the policy, and where keys come from. @default process.env */
  readonly env?: Environment | undefined;
  /** The last layer of the policy, as flags say it. */
  readonly overrides?: PolicyOverrides | undefined;
  /** Where limits are shared with other processes. @default the policy's `backend`, which is "memory" */
  readonly store?: StoreName | undefined;
  /** @default "memory" */
  readonly cache?: "memory" | `sqlite:${string}` | false | undefined;
  /** Who hears of everything. One that throws breaks nothing. */
  readonly telemetry?: readonly Listener<HubEvent>[] | undefined;
  /** @default docstokg with its version and `mailto` */
  readonly userAgent?: string | undefined;
  /** Whom a service may write to when we are a nuisance. @default DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  readonly retry?: false | RetryOptions | undefined;
  readonly network?: NetworkOptions | undefined;
  /** A body that nobody goes on reading for so long is given up, and its slot is free. @default 60_000 */
  readonly unreadBodyMs?: number | undefined;
  /** What holds for every call that does not say otherwise. */
  readonly defaults?: CallOptions | undefined;
  readonly time?: Time | undefined;
  /** The luck of the draw for jitters, in [0, 1). @default Math.random */
  readonly random?: (() => number) | undefined;
  /** The wire itself, instead of our own agent; `network` does not apply then. It is left open by `close`. */
  readonly dispatcher?: Dispatcher | undefined;
}
