import { AsyncLocalStorage } from "node:async_hooks";
import { type Dispatcher, errors, request as undiciRequest } from "undici";
import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import { breakersOf } from "../breaker/registry-breakers.ts";
import { HubClosedError, isDocstokgError } from "../errors.ts";
import type { Gate } from "../gate/gate.ts";
import type { EventOrigin, Listener, Listeners } from "../listeners.ts";
import { hostPolicyRows, type PolicyRow } from "../policy/policy-row.ts";
import { type Role, unknownRoleMessage } from "../policy/roles.ts";
import { policyTarget } from "../policy/target.ts";
import type { Time } from "../time/time.ts";
import { Call, type CallDeps } from "./call.ts";
import { type CallOptions, type InnerCallOptions, mergeCallOptions, pickCallOptions } from "./call-options.ts";
import { checkCallOptions, checkFetchOptions, checkPolicyOptions, checkRequestOptions } from "./check-options.ts";
import { FetchCall } from "./fetch-call.ts";
import { wrapGlobalFetch } from "./global-fetch.ts";
import type { HttpEvent } from "./http-events.ts";
import type { CacheSnapshot, FetchInput, FetchOptions, Hub, HubSnapshot, RequestOptions } from "./hub.ts";
import { HubDispatcher } from "./hub-dispatcher.ts";
import type { HubEvent, HubListener, PolicyOptions } from "./hub-options.ts";
import type { HubPolicy } from "./hub-policy.ts";
import { install } from "./install.ts";
import { toOutgoingRequest } from "./outgoing-request.ts";
import type { Tracers } from "./tracers.ts";

/** The parts of a hub; `assembleHub` builds them. */
export interface HubParts {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  readonly policy: HubPolicy;
  readonly listeners: Listeners<HttpEvent>;
  readonly tracers: Tracers;
  readonly callDeps: CallDeps;
  readonly defaults: CallOptions | undefined;
  readonly retryDeadlineMs: number;
  readonly cacheStats: () => CacheSnapshot | undefined;
  /**
   * Closes the connections, stores and cache of the hub. Called when no request is active, or with `isForced` while
   * requests end.
   */
  readonly shutDown: (isForced: boolean) => Promise<void>;
}

/** Read when this module is loaded: a global fetch that was later replaced by `hub.fetch` would call itself forever. */
const builtInFetch = globalThis.fetch;

/** A program that does not know the hub cannot handle refusals: it waits for rate limits, but not through an outage. */
const INSTALL_DEFAULTS: CallOptions = { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 60_000 };

/** The implementation of `Hub`, whose members are documented there. */
export class HttpHub implements Hub {
  readonly #parts: HubParts;
  readonly #context = new AsyncLocalStorage<CallOptions>();
  /** The call of the global fetch that a request of an installed hub belongs to. */
  readonly #fetchCalls = new AsyncLocalStorage<FetchCall>();
  /** Used by `request`, whose call options reach the dispatcher among the request's own options. */
  readonly #requestDispatcher: HubDispatcher;
  #closing: Promise<void> | undefined;

  constructor(parts: HubParts) {
    this.#parts = parts;
    this.#requestDispatcher = this.#createDispatcher(undefined);
  }

  readonly fetch = async (input: FetchInput, options?: FetchOptions | null): Promise<Response> => {
    if (options) checkFetchOptions(options);
    const fetchCall = new FetchCall(input, options, this.#parts.time.monotonicUs());
    const call = { ...pickCallOptions(options ?? {}), fetchCall };
    const init = { ...options, dispatcher: this.#createDispatcher(call) };
    try {
      return await builtInFetch(input, init as unknown as RequestInit);
    } catch (error) {
      const cause = error instanceof TypeError ? error.cause : undefined;
      throw isDocstokgError(cause) || cause instanceof RangeError ? cause : error;
    }
  };

  readonly request = async (
    url: string | URL,
    options: RequestOptions = {},
  ): Promise<Dispatcher.ResponseData<unknown>> => {
    checkRequestOptions(options);
    return undiciRequest(url, { ...options, dispatcher: this.#requestDispatcher });
  };

  dispatcher(call: CallOptions = {}): Dispatcher {
    checkCallOptions(call, "hub.dispatcher");
    return this.#createDispatcher(call);
  }

  install(call: CallOptions = INSTALL_DEFAULTS): () => void {
    checkCallOptions(call, "hub.install");
    const uninstall = install(this.#createDispatcher(undefined, call));
    // A dispatcher gets no cache mode, and cannot see which requests are redirects of one call.
    const unwrap = wrapGlobalFetch((fetch, input, options) =>
      this.#fetchCalls.run(new FetchCall(input, options, this.#parts.time.monotonicUs()), fetch),
    );
    return () => {
      unwrap();
      uninstall();
    };
  }

  with<Result>(call: CallOptions, work: () => Result): Result {
    checkCallOptions(call, "hub.with");
    return this.#context.run(mergeCallOptions(call, this.#context.getStore()), work);
  }

  listen(listener: HubListener): () => void {
    return addListener(this.#parts, listener);
  }

  snapshot(): HubSnapshot {
    const { gate, breakers, callDeps, cacheStats } = this.#parts;
    return {
      calls: callDeps.activeRequests.calls,
      inFlight: gate.inFlight,
      waiting: gate.waiting,
      keys: gate.keySnapshots(),
      hosts: [...breakers.statuses()],
      cache: cacheStats(),
    };
  }

  get configHash(): string {
    return this.#parts.policy.configHash;
  }

  policyFor(target: string | URL, role: Role = "metadata"): PolicyRow {
    const { loaded } = this.#parts.policy;
    const row = hostPolicyRows(loaded, policyTarget(loaded, target)).find(candidate => candidate.role === role);
    if (row === undefined) throw new RangeError(unknownRoleMessage(role));
    return row;
  }

  async reload(options?: PolicyOptions): Promise<void> {
    if (options !== undefined) checkPolicyOptions(options);
    const { policy, gate, breakers, listeners } = this.#parts;
    await policy.reload(options);
    breakersOf(breakers).reload(policy.loaded.breakers.resolved);
    gate.reload(policy.loaded.ratelimits.resolved);
    listeners.emit({ event_type: "policy_loaded", config_hash: policy.configHash });
  }

  close(): Promise<void> {
    this.#closing ??= this.#parts.callDeps.activeRequests.whenEmpty().then(() => this.#parts.shutDown(false));
    return this.#closing;
  }

  async destroy(reason: unknown = new errors.ClientDestroyedError()): Promise<void> {
    const { callDeps, shutDown } = this.#parts;
    this.#closing ??= callDeps.activeRequests.whenEmpty();
    callDeps.activeRequests.abortAll(reason);
    // Does not wait for a close() in progress: that one waits for connections which are aborted here.
    await shutDown(true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** `call` has priority over the options of `with`, which have priority over `fallback`. */
  #createDispatcher(call: InnerCallOptions | undefined, fallback?: CallOptions): HubDispatcher {
    return new HubDispatcher((options, handler) => this.#dispatch(options, handler, call, fallback));
  }

  #dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    given: InnerCallOptions | undefined,
    fallback: CallOptions | undefined,
  ): void {
    const { callDeps, policy, time, defaults, retryDeadlineMs } = this.#parts;
    try {
      if (this.#closing !== undefined) throw new HubClosedError();
      const fetchCall = fallback === undefined ? undefined : this.#fetchCalls.getStore();
      const call = mergeCallOptions(
        pickCallOptions(options),
        given ?? (fetchCall && { fetchCall }),
        this.#context.getStore(),
        fallback,
        defaults,
      );
      const outgoing = toOutgoingRequest(options, handler, call, {
        hostNames: policy.hostNames,
        nowUs: time.monotonicUs(),
        deadlineMs: retryDeadlineMs,
      });
      this.#parts.tracers.start(outgoing);
      new Call(callDeps, outgoing, handler).begin();
    } catch (error) {
      // After dispatch has returned: callers do not expect their handler to be called before.
      queueMicrotask(() => handler.onResponseError?.(NO_CONTROLLER, error as Error));
    }
  }
}

type ListenerDeps = Pick<HubParts, "gate" | "breakers" | "listeners" | "policy" | "tracers">;

/** Adds a listener to the hub, its gate and its breakers. Its first event is `policy_loaded`. */
export function addListener(
  { gate, breakers, listeners, policy, tracers }: ListenerDeps,
  listener: HubListener,
): () => void {
  const sourced = withSource(listener, policy);
  listeners.emitTo(sourced, { event_type: "policy_loaded", config_hash: policy.configHash });
  const stops = [gate.listen(sourced), breakers.listen(sourced), listeners.add(sourced)];
  if (listener.tracer !== undefined) stops.push(tracers.add(listener.tracer));
  return () => {
    for (const stop of stops) stop();
  };
}

/** One listener may listen to several hubs: each event comes with its hub. */
function withSource(listener: HubListener, source: EventOrigin): Listener<HubEvent> {
  const sourced = (event: HubEvent) => listener(event, source);
  return Object.defineProperty(sourced, "isListening", { get: () => listener.isListening });
}

/** For a request that failed before it was sent. undici passes null in this case. */
const NO_CONTROLLER = null as unknown as Dispatcher.DispatchController;
