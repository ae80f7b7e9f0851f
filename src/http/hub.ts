/** The public types of a hub. `createHub` makes one; its class is in http-hub.ts. */
import type { AgentOptions } from "node:https";
import type { Dispatcher, request as undiciRequest } from "undici";
import type { HostStatus } from "../breaker/host-status.ts";
import type { CacheMode } from "../core/cache/cache-control.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import type { ExplainedValue } from "../policy/explanation.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import type { PolicyRow } from "../policy/policy-row.ts";
import type { Role } from "../policy/roles.ts";
import type { CallOptions } from "./call-options.ts";
import type { HubAgents } from "./clients/hub-agents.ts";
import type { HubBreakers } from "./hub-breakers.ts";
import type { HubLimits } from "./hub-limits.ts";
import type { HubListener, PolicyOptions } from "./hub-options.ts";

/** A URL as text, a `URL`, or a `Request`, as for the global `fetch`. */
export type FetchInput = Parameters<typeof fetch>[0];

/**
 * The options of WHATWG fetch and those of `CallOptions`. An unknown option is a ConfigError if its name is similar to
 * that of a call option, because it is probably misspelled. Other unknown options have no effect, as for WHATWG fetch.
 * `dispatcher` has no effect either, because the hub is the dispatcher.
 */
export interface FetchOptions extends Omit<RequestInit, "cache">, CallOptions {
  /**
   * How the call uses the cache, as WHATWG fetch defines it. `only-if-cached` needs `mode: "same-origin"`; without a
   * stored response it gets a 504. @default "default"
   */
  readonly cache?: CacheMode | undefined;
}

/** The options of `undici.request` and those of `CallOptions`. An unknown option is a ConfigError. */
export type RequestOptions = NonNullable<Parameters<typeof undiciRequest>[1]> & CallOptions;

/** How much the cache holds. */
export interface CacheSnapshot {
  /** Stored responses. A URL has one for each variant that the server's `Vary` makes. */
  readonly entries: number;
  /** Size of the bodies, plus an estimate for the headers. */
  readonly bytes: number;
}

/** The numbers of calls and requests in a hub. */
export interface HubCounts {
  /** Calls that have not ended: queued, sent, or with a body that is still being read. Without background refreshes. */
  readonly calls: number;
  /** Requests that hold a slot: sent, and their body has not ended. */
  readonly inFlight: number;
  /** Requests in the queue for a rate limit, a slot or a cooldown. */
  readonly waiting: number;
}

/** The state of a hub at one instant. */
export interface HubSnapshot extends HubCounts {
  /** One entry per key (a host or service, and a role) that has been used or still has usage in its windows. */
  readonly keys: readonly KeySnapshot[];
  /** The circuits and cooldowns of every host that has been called. */
  readonly hosts: readonly HostStatus[];
  /** Undefined when the hub was created with `cache: false`. */
  readonly cache: CacheSnapshot | undefined;
}

/** All outbound requests of a process go through one hub. Made by `createHub`. */
export interface Hub extends AsyncDisposable {
  /**
   * WHATWG fetch through the hub. It is a plain function, so it fits every library that accepts a `fetch`.
   * Rejects with the hub's own errors themselves (RateLimitExceeded, BreakerOpenError, ...), and not with a TypeError
   * that has them as its `cause`: libraries treat such a TypeError as a network failure and retry.
   */
  readonly fetch: (input: FetchInput, options?: FetchOptions | null) => Promise<Response>;

  /** `undici.request` through the hub. Follows no redirect unless `maxRedirections` is given. */
  readonly request: (url: string | URL, options?: RequestOptions) => Promise<Dispatcher.ResponseData<unknown>>;

  /**
   * An undici Dispatcher that sends through the hub, for undici's functions and for Node's own
   * `fetch(url, { dispatcher })`. Closing it does not close the hub.
   * @param call options for every request that is sent with it
   */
  dispatcher(call?: CallOptions): Dispatcher;

  /**
   * Agents of node:http and node:https that send through the hub, for axios, got, node-fetch, the AWS SDK and others.
   * Limits, circuits, cooldowns and identification apply, requests hold their slot until the body ends, and events are
   * emitted. Responses are not cached and requests are not retried, because these clients own the stream of their request.
   * @param call options for every request that is sent with them. @default `{}`
   * @param options of the agents, as for `https.Agent`. @default `{ keepAlive: true }`
   */
  agents(call?: CallOptions, options?: AgentOptions): HubAgents;

  /**
   * Makes the hub the global dispatcher, so that every `fetch` of the process goes through it, and every request of
   * node:http and node:https, whatever agent it has.
   *
   * If neither `call` nor the `defaults` of the hub have `maxWaitMs`, requests wait for rate limits without a bound, and
   * up to 60 s for circuits and cooldowns (`maxBreakerWaitMs`): a program that does not know the hub cannot handle a
   * refusal.
   * @param call options for requests that do not have them, neither of their own nor by `with`. @default `{}`
   * @returns a function that restores what was there before
   */
  install(call?: CallOptions): () => void;

  /** Runs `work`. Requests that it sends, also through a library, get the options in `call` that they do not set. */
  with<Result>(call: CallOptions, work: () => Result): Result;

  /**
   * Calls `listener` with every event of the hub, starting with `policy_loaded`. A listener that throws does not affect
   * requests; its first error becomes a process warning. A listener that was added already is not added again.
   * @returns a function that removes the listener
   */
  listen(listener: HubListener): () => void;

  /** The state of the hub now. */
  snapshot(): HubSnapshot;

  /** The numbers of `snapshot` that do not take longer with more hosts. */
  counts(): HubCounts;

  /** The circuits of the hub: look at them, open, close and half-open them, with or without a shared store. */
  readonly breakers: HubBreakers;

  /** The rate limits of the hub: look at them, hold a host, and change its limits. */
  readonly limits: HubLimits;

  /** A hash of the effective policy, for logs: equal policies have equal hashes. `reload` may change it. */
  readonly configHash: string;

  /**
   * The effective limits and breaker numbers of a role at a host. Paths of a host can have limits of their own: pass the
   * URL, or `host/path`. Without a scheme, https is meant: requests over http may have limits without a key. Throws a
   * RangeError for a text that is neither a host nor a URL.
   * @param role @default "metadata"
   */
  policyFor(target: string | URL, role?: Role): PolicyRow;

  /**
   * The effective values behind `policyFor`, each with every place that sets it: file and line, variable or flag.
   * The target may also be a name from a snapshot: `service <name>`, `resolver <name>`. Throws a RangeError for other
   * texts.
   * @param role @default "metadata"
   */
  explain(target: string | URL, role?: Role): readonly ExplainedValue[];

  /**
   * Reads the policy again. With `options`, reads that policy instead, and so do later reloads. Usage of windows, open
   * circuits, cooldowns and queued requests are kept. Rejects with a ConfigError, and changes nothing, when the policy is
   * invalid or names another store (`backend`, `advanced.cooldown_store`): a hub cannot change its store.
   * @returns every value that changed; empty when none did
   */
  reload(options?: PolicyOptions): Promise<readonly PolicyChange[]>;

  /** Refuses new requests with a HubClosedError, waits until the running ones have ended, and closes the connections. */
  close(): Promise<void>;

  /**
   * Aborts the running requests and closes the connections.
   * @param reason the error that running requests fail with. @default a HubClosedError
   */
  destroy(reason?: unknown): Promise<void>;
}
