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
import type { CallOptions } from "./call-options.ts";
import type { HttpEvent } from "./http-events.ts";
import type { StartedCall, Tracer } from "./tracing.ts";

/** Every event that a hub emits: its own, those of the limiter and those of the breakers. */
export type HubEvent = HttpEvent | LimiterEvent | BreakerEvent;

/** Receives the events of a hub. `telemetry.listener` is one; a plain function is one too. */
export interface HubListener extends Listener<HubEvent> {
  /** Traces the calls of the hub. Of several listeners with a tracer, only the first one traces. @default none */
  readonly tracer?: Tracer | undefined;
  /**
   * Called when a call begins, in the asynchronous context of its caller, also if another listener traces the call.
   * @default none
   */
  readonly callStarted?: ((call: StartedCall) => void) | undefined;
}

/** The sources of the policy. Each entry is the path of a YAML file, or its content as an object. */
export interface PolicyOptions {
  /** Rate limits. They extend the shipped file. @default the file that DOCSTOKG_RLIMITS_YAML names, if any */
  readonly ratelimits?: string | RatelimitsOptions | undefined;
  /** Circuit breakers. They extend the shipped file. @default the file that DOCSTOKG_BREAKERS_YAML names, if any */
  readonly breakers?: string | BreakersOptions | undefined;
  /** How the caller identifies itself to each host. They extend the shipped file. @default the shipped file */
  readonly identities?: string | IdentitiesOptions | undefined;
}

/** When a failed request is sent again. */
export interface RetryOptions {
  /** Attempts in all, the first one included: a whole number of at least 1. @default 4 */
  readonly attempts?: number | undefined;
  /** The longest delay before the second attempt, in ms, 0 or more. It doubles for each further one. @default 500 */
  readonly baseMs?: number | undefined;
  /** The longest delay before any attempt, in ms, 0 or more. A longer Retry-After is obeyed. @default 30_000 */
  readonly capMs?: number | undefined;
  /**
   * No attempt begins later than this after the call, in ms, 0 or more. `deadlineMs` of a call has priority.
   * @default 120_000
   */
  readonly deadlineMs?: number | undefined;
}

/** How the hub connects. */
export interface NetworkOptions {
  /** False refuses to connect to private addresses (PrivateAddressError), also after a redirect. @default true */
  readonly allowPrivate?: boolean | undefined;
  /** `host:port:address:port`, as curl's `--connect-to`: connects to another server for a host. @default none */
  readonly connectTo?: readonly string[] | undefined;
  /**
   * "env": sends through the proxies that `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` of `env` name, as curl does; hosts
   * in `connectTo` are connected directly. The proxy resolves names, so `allowPrivate: false` then refuses only
   * addresses that a URL contains. @default no proxy
   */
  readonly proxy?: "env" | undefined;
  /** Resolves host names. @default `dns.lookup` */
  readonly lookup?: LookupFunction | undefined;
  /** TLS connections to hosts. @default as Node */
  readonly tls?:
    | {
        /** Trusted certificates in PEM, instead of Node's own. @default Node's own */
        readonly ca?: string | Buffer;
      }
    | undefined;
  /**
   * From sending a request to the end of the response headers, in ms; 0 for no limit. Each interim response (1xx) starts it
   * again. @default 60_000
   */
  readonly headersTimeoutMs?: number | undefined;
  /** Between two chunks of a response body, in ms; 0 for no limit. @default 120_000 */
  readonly bodyTimeoutMs?: number | undefined;
  /** From the lookup of the name to the end of the TLS handshake, in ms; 0 for no limit. @default 10_000 */
  readonly connectTimeoutMs?: number | undefined;
}

/** Options of `createHub`. All are optional; an unknown one is a ConfigError. */
export interface HubOptions {
  /** Rate limits, breakers and identities. @default the shipped files */
  readonly policy?: PolicyOptions | undefined;
  /** Environment variables: the second layer of the policy, and the API keys of identities. @default process.env */
  readonly env?: Environment | undefined;
  /** The last layer of the policy, in the form of command-line flags. @default none */
  readonly overrides?: PolicyOverrides | undefined;
  /** The store that processes share limits and circuits through. @default the policy's `backend`, which is "memory" */
  readonly store?: StoreName | undefined;
  /**
   * What calls do while the store does not answer: "share" uses this process's share of each limit and queues calls that
   * need more, "wait" queues all until the store is back, "refuse" fails them at once.
   * @default the policy's `backend.when_store_away`, "share"
   */
  readonly whenStoreAway?: "share" | "wait" | "refuse" | undefined;
  /**
   * The largest number of processes that share the store, 1 or more. A process that has not reached the store yet uses
   * 1/`fleetSize` of each limit; without this option it waits. @default the policy's `backend.fleet_size`, not set
   */
  readonly fleetSize?: number | undefined;
  /** The cache of responses; several processes may use one SQLite file. False for no cache. @default "memory" */
  readonly cache?: "memory" | `sqlite:${string}` | false | undefined;
  /** Functions that are called with every event. One that throws does not affect requests. @default none */
  readonly telemetry?: readonly HubListener[] | undefined;
  /** The User-Agent header, printable ASCII. @default `docstokg/<version> (mailto:<mailto>)` */
  readonly userAgent?: string | undefined;
  /** The address that services can write to about this client. @default the variable DOCSTOKG_MAILTO */
  readonly mailto?: string | undefined;
  /** When a failed request is sent again; false for never. @default `{}` */
  readonly retry?: false | RetryOptions | undefined;
  /** How the hub connects. Not allowed together with `dispatcher`. @default `{}` */
  readonly network?: NetworkOptions | undefined;
  /**
   * A response body whose buffer is full, and that its caller has not read for this time, is aborted and its slot
   * released, in ms, above 0; Infinity for never. @default 60_000
   */
  readonly unreadBodyMs?: number | undefined;
  /** `refusals` of the calls that do not set it: `throw` or `respond`. @default "throw" */
  readonly refusals?: CallOptions["refusals"];
  /**
   * Reads robots.txt before the first landing or artifact request to a host that the policy does not list, and keeps to
   * its Crawl-delay, up to 60 s. Metadata requests and listed hosts are not affected. @default false
   */
  readonly crawlDelay?: boolean | undefined;
  /** Options for calls that do not get them otherwise: of their own, or by `with`, `dispatcher` or `install`. @default none */
  readonly defaults?: CallOptions | undefined;
  /** The clock and the timers, for tests. @default systemTime */
  readonly time?: Time | undefined;
  /** Random numbers in [0, 1) for jitter and backoff, for tests. @default Math.random */
  readonly random?: (() => number) | undefined;
  /**
   * Sends the requests, for example through a proxy. `close` does not close it. @default the hub's own agent
   */
  readonly dispatcher?: Dispatcher | undefined;
}
