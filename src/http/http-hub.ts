import { AsyncLocalStorage } from "node:async_hooks";
import type { AgentOptions } from "node:https";
import { type Dispatcher, request as undiciRequest } from "undici";
import { ConfigError, HubClosedError, isDocstokgError } from "../errors.ts";
import type { BreakerRegistry } from "../gate/breaker-registry.ts";
import type { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import type { EventOrigin, Listener, Listeners } from "../listeners.ts";
import { type ExplainedValue, explainTarget } from "../policy/explanation.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import type { LoadedPolicy } from "../policy/load.ts";
import type { PolicyChange } from "../policy/policy-changes.ts";
import { hostPolicyRows, type PolicyRow } from "../policy/policy-row.ts";
import { isRole, type Role, unknownRoleMessage } from "../policy/roles.ts";
import { policyTarget } from "../policy/target.ts";
import type { StoreNames } from "../stores/open-store.ts";
import type { Time } from "../time/time.ts";
import { Call, type CallDeps } from "./call.ts";
import {
  type CallOptions,
  type InnerCallOptions,
  mergeCallOptions,
  NO_OPTIONS,
  pickCallOptions,
} from "./call-options.ts";
import { checkCallOptions, checkFetchOptions, checkPolicyOptions, checkRequestOptions } from "./check-options.ts";
import { BypassDetector } from "./clients/bypass-detector.ts";
import { BypassReports } from "./clients/bypass-reports.ts";
import { createHubAgents, type HubAgents } from "./clients/hub-agents.ts";
import { checkNodeCall, type NodeClientDeps, nodeInterceptor } from "./clients/node-client.ts";
import { hookNodeHttp, type NodeInterceptor } from "./clients/node-hooks.ts";
import type { NodeRequestDeps } from "./clients/node-request.ts";
import { FetchCall, urlOf } from "./fetch-call.ts";
import { fetchHeaders, fetchInit } from "./fetch-init.ts";
import { wrapGlobalFetch } from "./global-fetch.ts";
import { GlobalFetchCall } from "./global-fetch-call.ts";
import type { HttpEvent } from "./http-events.ts";
import type { CacheSnapshot, FetchInput, FetchOptions, Hub, HubCounts, HubSnapshot, RequestOptions } from "./hub.ts";
import { type HubBreakers, RegistryHubBreakers } from "./hub-breakers.ts";
import { FetchDispatcher, HubDispatcher } from "./hub-dispatcher.ts";
import { GateHubLimits, type HubLimits } from "./hub-limits.ts";
import type { HubEvent, HubListener, PolicyOptions } from "./hub-options.ts";
import type { HubPolicy } from "./hub-policy.ts";
import { install } from "./install.ts";
import { type OutgoingRequestDeps, originOf, SignalAges, toOutgoingRequest } from "./outgoing-request.ts";
import { replayableBody } from "./replayable-body.ts";
import { RequestTargets } from "./request-target.ts";
import { storeProblems } from "./store-problems.ts";
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
  /** Without options that are undefined. */
  readonly defaults: CallOptions | undefined;
  readonly retryDeadlineMs: number;
  readonly cacheStats: () => CacheSnapshot | undefined;
  readonly nodeRequestDeps: NodeRequestDeps;
  /** False when a dispatcher of the caller opens the connections, or undici to a SOCKS proxy: these are not marked as own. */
  readonly ownsWire: boolean;
  /** Whether requests to private addresses are allowed. */
  readonly allowsPrivate: boolean;
  /** The limits of a policy, with the Crawl-delays that were read so far. */
  readonly withCrawlDelays: (limits: LimitPolicies) => LimitPolicies;
  /** Called after each reload. */
  readonly onReloaded: () => void;
  /** The stores that a policy names. The hub has opened those of its first policy. */
  readonly storeNames: (policy: LoadedPolicy) => StoreNames;
  /** Closes the connections, stores and cache of the hub. Called when no request is active, or all were aborted. */
  readonly shutDown: () => Promise<void>;
}

/**
 * The global fetch when this module is loaded: usually Node's own. If it were read later, a program that replaces the
 * global fetch by `hub.fetch` would call itself forever.
 */
const builtInFetch = globalThis.fetch;

/** A program that does not know the hub cannot handle refusals. So it waits for rate limits, but not for a long outage. */
const INSTALL_DEFAULTS: CallOptions = { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 60_000 };

/** Bounds the events of a reload that replaces a policy of thousands of hosts. */
const CHANGE_EVENTS_MAX = 200;

/** The implementation of `Hub`, whose members are documented there. */
export class HttpHub implements Hub {
  readonly breakers: HubBreakers;
  readonly limits: HubLimits;
  readonly #parts: HubParts;
  readonly #context = new AsyncLocalStorage<CallOptions>();
  /** The call of the global fetch that a request of an installed hub belongs to. */
  readonly #globalFetchCalls = new AsyncLocalStorage<GlobalFetchCall>();
  /** Used by `request`, whose call options reach the dispatcher among the request's own options. */
  readonly #requestDispatcher: HubDispatcher;
  readonly #targets = new RequestTargets();
  readonly #outgoing: OutgoingRequestDeps;
  readonly #bypassReports: BypassReports;
  readonly #installations = new Set<object>();
  #closing: Promise<void> | undefined;
  #reloading: Promise<unknown> = Promise.resolve();

  constructor(parts: HubParts) {
    this.#parts = parts;
    this.#bypassReports = new BypassReports(parts.listeners);
    this.#requestDispatcher = this.#createDispatcher(undefined);
    const { breakers, gate, time, policy, retryDeadlineMs } = parts;
    this.#outgoing = { policy, signalAges: new SignalAges(), time, defaultDeadlineMs: retryDeadlineMs };
    this.breakers = new RegistryHubBreakers(breakers, time, () => policy.loaded);
    this.limits = new GateHubLimits(gate, breakers, () => policy.loaded);
  }

  readonly fetch = async (input: FetchInput, options?: FetchOptions | null): Promise<Response> => {
    if (options) checkFetchOptions(options);
    if (this.#closing !== undefined) throw new HubClosedError();
    const { time, callDeps } = this.#parts;
    const fetchCall = new FetchCall(input, options, time.monotonicUs());
    // Node's fetch follows redirects itself.
    const call = { ...(options ? pickCallOptions(options) : undefined), fetchCall, maxRedirections: 0 };
    const init = fetchInit(options, new FetchDispatcher(this.#dispatchFetch, call));
    fetchCall.keepHubOpen(callDeps.activeRequests);
    try {
      let target = input;
      const given = options?.body;
      const body = given && this.#withDefaults(call, undefined)?.idempotent ? replayableBody(given) : undefined;
      if (body !== undefined) {
        // The caller may change its URL and headers while the body is read.
        if (input instanceof URL) target = input.href;
        init["headers"] = fetchHeaders(input, init, body.contentType);
        fetchCall.bodyBytes = await body.bytes;
        init["body"] = fetchCall.bodyBytes;
      }
      const response = await builtInFetch(target, init);
      // If a hub is installed, a replaced fetch that ignores `init.dispatcher` reaches it through the global dispatcher, so
      // this is not reported.
      if (!fetchCall.isSent && this.#installations.size === 0) this.#bypassReports.addUnseen(urlOf(input));
      return response;
    } catch (error) {
      const cause = error instanceof TypeError ? error.cause : undefined;
      throw isDocstokgError(cause) || cause instanceof RangeError ? cause : error;
    } finally {
      fetchCall.release();
    }
  };

  // Not async: the promise of undici is returned itself, and costs no second promise.
  readonly request = (url: string | URL, options?: RequestOptions): Promise<Dispatcher.ResponseData<unknown>> => {
    try {
      if (options) checkRequestOptions(options);
      const target = this.#targets.of(url);
      const dispatcher = this.#requestDispatcher;
      // undici's own function is slower: it parses every URL and copies the options twice. For an invalid URL it throws the
      // error that callers know.
      if (target === undefined) return undiciRequest(url, { ...options, dispatcher });
      const { origin, path } = target;
      if (!options) return dispatcher.request({ origin, path, method: "GET" });
      const method = options.method || (options.body ? "PUT" : "GET");
      return dispatcher.request({ ...options, origin, path, method });
    } catch (error) {
      return Promise.reject(error);
    }
  };

  dispatcher(call: CallOptions = {}): Dispatcher {
    checkCallOptions(call, "hub.dispatcher");
    return this.#createDispatcher(pickCallOptions(call));
  }

  install(call: CallOptions = {}): () => void {
    checkCallOptions(call, "hub.install");
    const own: CallOptions = { ...this.#parts.defaults, ...pickCallOptions(call) };
    // Without `maxBreakerWaitMs`, a `maxWaitMs` bounds the wait for circuits too.
    const fallback = own.maxWaitMs === undefined ? { ...INSTALL_DEFAULTS, ...own } : own;
    const uninstall = install(this.#createDispatcher(undefined, fallback));
    // A dispatcher gets no cache mode, and cannot see which requests are redirects of one call.
    const unwrap = wrapGlobalFetch((fetch, input, options) =>
      new GlobalFetchCall(input, options, this.#parts.callDeps.activeRequests).run(this.#globalFetchCalls, fetch),
    );
    const unhook = hookNodeHttp(this.#nodeInterceptor(undefined, fallback));
    const undetect = new BypassDetector(request => this.#bypassReports.add(request)).start(this.#parts.ownsWire);
    this.#installations.add(fallback);
    return () => {
      this.#installations.delete(fallback);
      undetect();
      unhook();
      unwrap();
      uninstall();
    };
  }

  agents(call: CallOptions = {}, options: AgentOptions = {}): HubAgents {
    checkCallOptions(call, "hub.agents");
    checkNodeCall(call, "hub.agents");
    return createHubAgents(this.#nodeInterceptor(pickCallOptions(call)), options);
  }

  with<Result>(call: CallOptions, work: () => Result): Result {
    checkCallOptions(call, "hub.with");
    const inner = mergeCallOptions(pickCallOptions(call), this.#context.getStore());
    return this.#context.run(inner ?? NO_OPTIONS, work);
  }

  listen(listener: HubListener): () => void {
    return addListener(this.#parts, listener);
  }

  snapshot(): HubSnapshot {
    const { gate, breakers, cacheStats } = this.#parts;
    return { ...this.counts(), keys: gate.keySnapshots(), hosts: [...breakers.statuses()], cache: cacheStats() };
  }

  counts(): HubCounts {
    const { gate, callDeps } = this.#parts;
    return { calls: callDeps.activeRequests.calls, inFlight: gate.inFlight, waiting: gate.waiting };
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

  explain(target: string | URL, role: Role = "metadata"): readonly ExplainedValue[] {
    if (!isRole(role)) throw new RangeError(unknownRoleMessage(role));
    return explainTarget(this.#parts.policy.loaded, target, role);
  }

  async reload(options?: PolicyOptions): Promise<readonly PolicyChange[]> {
    if (options !== undefined) checkPolicyOptions(options);
    // Reloads run one after the other, so that the policy of the last call stays in force.
    const reloaded = this.#reloading.then(() => this.#reload(options));
    this.#reloading = reloaded.catch(() => undefined);
    return reloaded;
  }

  async #reload(options: PolicyOptions | undefined): Promise<readonly PolicyChange[]> {
    const { policy, gate, breakers, listeners, storeNames, withCrawlDelays, onReloaded } = this.#parts;
    try {
      const next = await policy.prepareReload(options);
      const problems = storeProblems(storeNames(policy.loaded), storeNames(next.loaded), next.loaded);
      if (problems.length > 0) throw new ConfigError(problems);
      breakersOf(breakers).reload(next.loaded.breakers.resolved);
      gate.reload(withCrawlDelays(next.loaded.ratelimits.resolved));
      const changes = next.apply();
      emitReload(listeners, policy.configHash, changes);
      onReloaded();
      return changes;
    } catch (error) {
      if (error instanceof ConfigError) listeners.emit({ event_type: "policy_rejected", message: error.message });
      throw error;
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#parts.callDeps.activeRequests.whenEmpty().then(() => this.#parts.shutDown());
    return this.#closing;
  }

  async destroy(
    reason: unknown = new HubClosedError("the hub was destroyed while the request was running"),
  ): Promise<void> {
    const { callDeps, shutDown } = this.#parts;
    this.#closing ??= callDeps.activeRequests.whenEmpty();
    callDeps.activeRequests.abortAll(reason);
    await shutDown();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #nodeInterceptor(call: CallOptions | undefined, fallback?: CallOptions): NodeInterceptor {
    const { nodeRequestDeps, allowsPrivate, policy } = this.#parts;
    const deps: NodeClientDeps = {
      ...nodeRequestDeps,
      allowsPrivate,
      hostNames: () => policy.hostNames,
      isClosed: () => this.#closing !== undefined,
    };
    return nodeInterceptor(deps, () => this.#withDefaults(call, fallback) ?? NO_OPTIONS);
  }

  /** In order of priority: `given`, the options of `with`, `fallback`, the defaults of the hub. */
  #withDefaults(given: InnerCallOptions | undefined, fallback: CallOptions | undefined): InnerCallOptions | undefined {
    const call = mergeCallOptions(given, this.#context.getStore());
    return mergeCallOptions(mergeCallOptions(call, fallback), this.#parts.defaults);
  }

  #createDispatcher(call: CallOptions | undefined, fallback?: CallOptions): HubDispatcher {
    // Only an installed hub, which has a fallback, wraps the global fetch.
    const globalCall = () => (fallback === undefined ? undefined : this.#globalFetchCalls.getStore());
    return new HubDispatcher(
      (options, handler) => {
        const fetchCall = globalCall()?.callOf(originOf(options), this.#parts.time.monotonicUs());
        const given = mergeCallOptions(pickCallOptions(options), call ?? (fetchCall && { fetchCall }));
        this.#dispatch(options, handler, given, fallback);
      },
      options => globalCall()?.expects(originOf(options)) === true,
    );
  }

  /** For `fetch`, which does not pass its call options on to the dispatcher. */
  readonly #dispatchFetch = (
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    call: InnerCallOptions,
  ) => this.#dispatch(options, handler, call, undefined);

  #dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    given: InnerCallOptions | undefined,
    fallback: CallOptions | undefined,
  ): void {
    const { callDeps, tracers } = this.#parts;
    try {
      if (this.#closing !== undefined && !given?.fetchCall?.keepsHubOpen) throw new HubClosedError();
      const call = this.#withDefaults(given, fallback) ?? NO_OPTIONS;
      const outgoing = toOutgoingRequest(options, handler, call, this.#outgoing);
      tracers.start(outgoing);
      new Call(callDeps, outgoing, handler).begin();
    } catch (error) {
      failLater(handler, error as Error);
    }
  }
}

/** Fails after dispatch has returned, because callers do not expect a call of their handler before that. */
function failLater(handler: Dispatcher.DispatchHandler, error: Error): void {
  queueMicrotask(() => handler.onResponseError?.(NO_CONTROLLER, error));
}

type ListenerDeps = Pick<HubParts, "gate" | "breakers" | "listeners" | "policy" | "tracers">;

/** Adds a listener to the hub, its gate and its breakers. Its first event is `policy_loaded`. */
export function addListener(
  { gate, breakers, listeners, policy, tracers }: ListenerDeps,
  listener: HubListener,
): () => void {
  const sourced = sourcedListener(listener, policy);
  if (!listeners.has(sourced))
    listeners.emitTo(sourced, { event_type: "policy_loaded", config_hash: policy.configHash });
  const stops = [gate.listen(sourced), breakers.listen(sourced), listeners.add(sourced)];
  if (listener.tracer !== undefined) stops.push(tracers.add(listener.tracer));
  if (listener.callStarted !== undefined) stops.push(tracers.addObserver(listener.callStarted));
  return () => {
    // Once: the listener may have been added again since.
    for (const stop of stops.splice(0)) stop();
  };
}

function emitReload(listeners: Listeners<HttpEvent>, configHash: string, changes: readonly PolicyChange[]): void {
  listeners.emit({ event_type: "policy_loaded", config_hash: configHash });
  for (const { setting, old, new: now, source } of changes.slice(0, CHANGE_EVENTS_MAX))
    listeners.emit({ event_type: "policy_changed", setting, old, new: now, source, changes: changes.length });
}

const sourcedListeners = new WeakMap<EventOrigin, WeakMap<HubListener, Listener<HubEvent>>>();

/** The same function for the same listener and hub: a listener that is added twice gets each event once. */
function sourcedListener(listener: HubListener, source: EventOrigin): Listener<HubEvent> {
  const known = sourcedListeners.get(source) ?? new WeakMap<HubListener, Listener<HubEvent>>();
  const sourced = known.get(listener) ?? withSource(listener, source);
  sourcedListeners.set(source, known.set(listener, sourced));
  return sourced;
}

/** One listener may listen to several hubs, so each event is passed with the hub that it comes from. */
function withSource(listener: HubListener, source: EventOrigin): Listener<HubEvent> {
  const sourced = (event: HubEvent) => listener(event, source);
  // Bound, and not called by a second function, because it runs several times for each request.
  const listensTo = listener.listensTo?.bind(listener);
  return listensTo === undefined ? sourced : Object.assign(sourced, { listensTo });
}

/** For a request that failed before it was sent. undici passes null in this case. */
const NO_CONTROLLER = null as unknown as Dispatcher.DispatchController;
