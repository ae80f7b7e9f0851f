import { AsyncLocalStorage } from "node:async_hooks";
import { type Dispatcher, errors, request as undiciRequest } from "undici";
import type { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { HostStatus } from "../breaker/host-status.ts";
import { HubClosedError, isDocstokgError } from "../errors.ts";
import type { Gate } from "../gate/gate.ts";
import { type KeySnapshot, keySnapshotOf } from "../limiter/key-snapshot.ts";
import type { Listener, Listeners } from "../listeners.ts";
import { hostPolicyRows, type PolicyRow } from "../policy/policy-row.ts";
import { type Role, unknownRoleMessage } from "../policy/roles.ts";
import { withoutStore } from "../stores/open-store.ts";
import type { Time } from "../time/time.ts";
import { Call, type CallDeps } from "./call.ts";
import { mergeCallOptions, pickCallOptions, type TimedCallOptions } from "./call-options.ts";
import { checkCallOptions, checkFetchOptions, checkPolicyOptions, checkRequestOptions } from "./check-options.ts";
import type { HttpEvent } from "./http-events.ts";
import { HubDispatcher } from "./hub-dispatcher.ts";
import type { HubEvent, PolicyOptions } from "./hub-options.ts";
import type { HubPolicy } from "./hub-policy.ts";
import { install } from "./install.ts";
import { toOutgoingRequest } from "./outgoing-request.ts";
import type { CallOptions } from "./stages/stage.ts";

/** What a hub is made of; `createHub` puts it together. */
export interface HubParts {
  readonly gate: Gate;
  readonly breakers: BreakerRegistry;
  readonly time: Time;
  readonly policy: HubPolicy;
  readonly listeners: Listeners<HttpEvent>;
  readonly callDeps: CallDeps;
  readonly defaults: CallOptions | undefined;
  readonly retryDeadlineMs: number;
  readonly cacheStats: () => CacheSnapshot | undefined;
  /** Ends what the hub has opened, once nothing is under way. */
  readonly shutDown: (isForced: boolean) => Promise<void>;
}

export interface CacheSnapshot {
  readonly entries: number;
  readonly bytes: number;
}

export interface HubSnapshot {
  /** Calls that are not over, waiting or sent. */
  readonly calls: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly keys: readonly KeySnapshot[];
  readonly hosts: readonly HostStatus[];
  readonly cache: CacheSnapshot | undefined;
}

export type FetchInput = Parameters<typeof fetch>[0];
export interface FetchOptions extends RequestInit, CallOptions {}
export type RequestOptions = NonNullable<Parameters<typeof undiciRequest>[1]> & CallOptions;

/** Taken before anybody can replace it: a fetch that was patched to come here would come round for ever. */
const builtInFetch = globalThis.fetch;

/**
 * An unchanged program cannot catch our refusals: it waits for its turn as long as it takes, but not through an outage.
 */
const INSTALL_DEFAULTS: CallOptions = { maxWaitMs: Number.POSITIVE_INFINITY, maxBreakerWaitMs: 60_000 };

/** Every request of a process, one way out. Made by `createHub`. */
export class Hub {
  readonly #parts: HubParts;
  readonly #context = new AsyncLocalStorage<CallOptions>();
  /** For callers that say everything in the request's own options. */
  readonly #requestDispatcher: HubDispatcher;
  #closing: Promise<void> | undefined;

  constructor(parts: HubParts) {
    this.#parts = parts;
    this.#requestDispatcher = this.#createDispatcher(undefined);
  }

  /**
   * WHATWG fetch, politely: a plain function, for whoever takes a `fetch`. What we refuse ourselves it rejects with as
   * it is, and not as the `cause` of a failed fetch: libraries take the latter for a broken network, and try again.
   */
  readonly fetch = async (input: FetchInput, options?: FetchOptions | null): Promise<Response> => {
    if (options) checkFetchOptions(options);
    const call = { ...pickCallOptions(options ?? {}), sinceUs: this.#parts.time.monotonicUs() };
    const init = { ...options, dispatcher: this.#createDispatcher(call) };
    try {
      return await builtInFetch(input, init as unknown as RequestInit);
    } catch (error) {
      const cause = error instanceof TypeError ? error.cause : undefined;
      throw isDocstokgError(cause) || cause instanceof RangeError ? cause : error;
    }
  };

  /** `undici.request`, politely. */
  readonly request = async (
    url: string | URL,
    options: RequestOptions = {},
  ): Promise<Dispatcher.ResponseData<unknown>> => {
    checkRequestOptions(options);
    return undiciRequest(url, { ...options, dispatcher: this.#requestDispatcher });
  };

  /** For undici's functions, and for Node's own `fetch(url, { dispatcher })`. */
  dispatcher(call: CallOptions = {}): Dispatcher {
    checkCallOptions(call, "hub.dispatcher");
    return this.#createDispatcher(call);
  }

  /** Makes every fetch of the process pass here; answers with the way back. */
  install(call: CallOptions = INSTALL_DEFAULTS): () => void {
    checkCallOptions(call, "hub.install");
    return install(this.#createDispatcher(undefined, call));
  }

  /** What `work` sends, however indirectly, is sent with these options where it says nothing itself. */
  with<Result>(call: CallOptions, work: () => Result): Result {
    checkCallOptions(call, "hub.with");
    return this.#context.run(mergeCallOptions(call, this.#context.getStore()), work);
  }

  /** Answers with the way to stop listening. */
  listen(listener: Listener<HubEvent>): () => void {
    return addListener(this.#parts, listener);
  }

  snapshot(): HubSnapshot {
    const { gate, breakers, time, callDeps, cacheStats } = this.#parts;
    const nowUs = time.monotonicUs();
    return {
      calls: callDeps.activeRequests.size,
      inFlight: gate.inFlight,
      waiting: gate.waiting,
      keys: Array.from(gate.roleBudgets(), roleBudget => keySnapshotOf(roleBudget, gate, nowUs)),
      hosts: [...breakers.statuses()],
      cache: cacheStats(),
    };
  }

  /** Tells policies apart, for logs: the same wherever the same holds. A reload may change it. */
  get configHash(): string {
    return this.#parts.policy.configHash;
  }

  /** The numbers that hold for a role at a host. */
  policyFor(host: string, role: Role = "metadata"): PolicyRow {
    const row = hostPolicyRows(this.#parts.policy.loaded, { host }).find(candidate => candidate.role === role);
    if (row === undefined) throw new RangeError(unknownRoleMessage(role));
    return row;
  }

  /**
   * Reads the policy again, or another one, and goes on under it: what was sent still counts, what is open stays open,
   * and whoever waits stays in line. Rejects with a ConfigError and changes nothing when it makes no sense.
   */
  async reload(options?: PolicyOptions): Promise<void> {
    if (options !== undefined) checkPolicyOptions(options);
    const { policy, gate, breakers, listeners } = this.#parts;
    await policy.reload(options);
    breakers.reload(withoutStore(policy.loaded.breakers.options));
    gate.reload(policy.loaded.ratelimits.resolved);
    listeners.emit({ event_type: "policy_loaded", config_hash: policy.configHash });
  }

  /** Takes no more requests, lets those it has come to their end, and closes its connections. */
  close(): Promise<void> {
    this.#closing ??= this.#parts.callDeps.activeRequests.whenEmpty().then(() => this.#parts.shutDown(false));
    return this.#closing;
  }

  /** The same at once: what is not over fails with the reason. */
  async destroy(reason: unknown = new errors.ClientDestroyedError()): Promise<void> {
    const { callDeps, shutDown } = this.#parts;
    this.#closing ??= callDeps.activeRequests.whenEmpty();
    callDeps.activeRequests.abortAll(reason);
    // Not after a quiet close, which waits for connections that nobody wants any more.
    await shutDown(true);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** `call` counts before the asynchronous context of whoever uses it, `fallback` after it. */
  #createDispatcher(call: TimedCallOptions | undefined, fallback?: CallOptions): HubDispatcher {
    return new HubDispatcher((options, handler) => this.#dispatch(options, handler, call, fallback));
  }

  #dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler,
    said: TimedCallOptions | undefined,
    fallback: CallOptions | undefined,
  ): void {
    const { callDeps, policy, time, defaults, retryDeadlineMs } = this.#parts;
    try {
      if (this.#closing !== undefined) throw new HubClosedError();
      const call = mergeCallOptions(pickCallOptions(options), said, this.#context.getStore(), fallback, defaults);
      const outgoing = toOutgoingRequest(options, handler, call, {
        hostNames: policy.hostNames,
        nowUs: time.monotonicUs(),
        deadlineMs: retryDeadlineMs,
      });
      new Call(callDeps, outgoing, handler).begin();
    } catch (error) {
      // Never before dispatch has returned: callers have not got hold of their handler until then.
      queueMicrotask(() => handler.onResponseError?.(NO_CONTROLLER, error as Error));
    }
  }
}

/** Whoever listens to a hub listens to all that it is made of, and first hears which policy holds. */
export function addListener(
  { gate, breakers, listeners, policy }: Pick<HubParts, "gate" | "breakers" | "listeners" | "policy">,
  listener: Listener<HubEvent>,
): () => void {
  listeners.emitTo(listener, { event_type: "policy_loaded", config_hash: policy.configHash });
  const stops = [gate.listen(listener), breakers.listen(listener), listeners.add(listener)];
  return () => {
    for (const stop of stops) stop();
  };
}

/** For requests that failed before there was anything to control; undici itself hands over null. */
const NO_CONTROLLER = null as unknown as Dispatcher.DispatchController;
