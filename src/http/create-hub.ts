import { AsyncLocalStorage } from "node:async_hooks";
import type { Dispatcher } from "undici";
import { BreakerRegistry } from "../gate/breaker-registry.ts";
import { Gate } from "../gate/gate.ts";
import { breakersOf } from "../gate/registry-breakers.ts";
import { Listeners } from "../listeners.ts";
import { NO_UNIT } from "../policy/breaker-policy.ts";
import { unknownVariables } from "../policy/environment.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { publishedPolicyOf } from "../policy/published-policy.ts";
import { breakerStoreFor, storeFor, storeNamesOf } from "../stores/open-store.ts";
import { hostOfRecord } from "../stores/record-names.ts";
import type { Store } from "../stores/store.ts";
import { systemTime } from "../time/system-time.ts";
import { ActiveRequests } from "./active-requests.ts";
import { openCache } from "./cache/open-cache.ts";
import { StoredResponses } from "./cache/stored-responses.ts";
import { pickCallOptions } from "./call-options.ts";
import { checkHubOptions } from "./check-options.ts";
import { ConnectionCount } from "./connection-count.ts";
import type { HttpEvent } from "./http-events.ts";
import { addListener, HttpHub } from "./http-hub.ts";
import type { Hub } from "./hub.ts";
import { linkInternals } from "./hub-internals.ts";
import type { HubOptions } from "./hub-options.ts";
import { HubPolicy } from "./hub-policy.ts";
import { type CallEnd, RequestTelemetry } from "./request-telemetry.ts";
import { CrawlDelays } from "./robots/crawl-delays.ts";
import { RobotsReader } from "./robots/robots-reader.ts";
import { artifactStage } from "./stages/artifact.ts";
import { attemptStage } from "./stages/attempt.ts";
import { cacheStage } from "./stages/cache.ts";
import { crawlDelayStage } from "./stages/crawl-delay.ts";
import { DeferredStamps } from "./stages/deferred-stamps.ts";
import { identifyStage } from "./stages/identify.ts";
import { redirectStage } from "./stages/redirect.ts";
import { refusalStage } from "./stages/refusal.ts";
import { RetryBudget, retryStage } from "./stages/retry.ts";
import { retryPolicyFrom } from "./stages/retry-policy.ts";
import type { OutgoingRequest, SendRequest } from "./stages/stage.ts";
import { UnreadBodies } from "./stages/unread-bodies.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { Tracers } from "./tracers.ts";
import { proxySettings, usesSocks } from "./wire/proxy-wire.ts";
import { makeProxyWire, makeWire } from "./wire/wire.ts";

const UNREAD_BODY_MS = 60_000;

/** How many idle keys of each role are kept, so that a snapshot still lists them. */
const IDLE_KEYS_MAX = 1024;

/**
 * Loads the policy and makes a hub. Rejects with a ConfigError that lists every problem of the options and the policy,
 * and with a RangeError for an invalid `retry`, `cache`, `userAgent` or `network.connectTo`. Rejects with a StoreError if
 * the shared store can never work: a wrong password, a file of another program. A store that is only unreachable does not
 * stop the hub: `when_store_away` says what calls do in the meantime (law S4).
 */
export async function createHub(options: HubOptions = {}): Promise<Hub> {
  checkHubOptions(options);
  const { time = systemTime, random = Math.random } = options;
  const policy = await HubPolicy.load(options);
  const breakers = new BreakerRegistry({}, { time, random });
  breakersOf(breakers).reload(policy.loaded.breakers.resolved);
  const env = options.env ?? process.env;
  for (const warning of unknownVariables(env)) process.emitWarning(warning, "DocstokgWarning");
  const storeDeps = { policy: policy.loaded, env, time, random };
  const stores = { store: storeFor(options.store, storeDeps), breakerStore: breakerStoreFor(storeDeps) };
  const opening = await Promise.allSettled([stores.store?.openUnlessAway(), stores.breakerStore?.openUnlessAway()]);
  const failed = opening.find(({ status }) => status === "rejected");
  const warn = (message: string) => process.emitWarning(message, "DocstokgWarning");
  try {
    if (failed?.status === "rejected") throw failed.reason;
    return await assembleHub(options, { policy, breakers, warn, ...stores });
  } catch (error) {
    await Promise.all([stores.store?.close(), stores.breakerStore?.close()]);
    throw error;
  }
}

/** The parts that `assembleHub` does not build itself. The simulator passes in stores that fail on purpose. */
export interface HubInputs {
  readonly policy: HubPolicy;
  readonly breakers: BreakerRegistry;
  readonly store: Store | undefined;
  /** The store of the breakers; undefined if they use that of the limits. */
  readonly breakerStore?: Store | undefined;
  /** Called with one sentence when a store goes away, and when it is back. */
  readonly warn?: ((message: string) => void) | undefined;
  /** How many idle keys of each role are kept before some are evicted. */
  readonly keptKeys?: number | undefined;
}

/** Builds a hub from options that were checked. */
export async function assembleHub(options: HubOptions, inputs: HubInputs): Promise<Hub> {
  const { policy, breakers, store, breakerStore, warn, keptKeys = IDLE_KEYS_MAX } = inputs;
  const { time = systemTime, random = Math.random, unreadBodyMs = UNREAD_BODY_MS, dispatcher } = options;
  const limitsEasedListeners: (() => void)[] = [];
  let statusPublisher: StatusPublisher | undefined;
  const onLimitsEased = () => {
    for (const listener of limitsEasedListeners) listener();
    statusPublisher?.limitsChanged();
  };
  const crawlDelays = options.crawlDelay ? new CrawlDelays() : undefined;
  const withCrawlDelays = (limits: LimitPolicies) => crawlDelays?.applyTo(limits) ?? limits;
  const gate = new Gate(withCrawlDelays(policy.loaded.ratelimits.resolved), time, {
    keptKeys,
    breakers,
    store,
    breakerStore,
    random,
    warn,
    onLimitsEased,
    explain: (constraint, { host, role, path, sentKeys }, changes) =>
      policy.decidedBy.of(constraint, { host, role, path, sentKeys }, changes),
    awayPolicy: () => {
      const { when_store_away: mode = "share", fleet_size: fleetSize } = policy.loaded.ratelimits.options.backend ?? {};
      return { mode, fleetSize };
    },
  });
  const listeners = new Listeners<HttpEvent>();
  const tracers = new Tracers();
  for (const listener of options.telemetry ?? []) addListener({ gate, breakers, listeners, policy, tracers }, listener);
  const telemetry = new RequestTelemetry(listeners, breakers, time);
  const activeRequests = new ActiveRequests();
  const wireOptions = { ...options.network, allowPrivate: options.network?.allowPrivate ?? true };
  const proxies = options.network?.proxy === "env" ? proxySettings(options.env ?? process.env) : undefined;
  const wire = dispatcher ?? (proxies === undefined ? makeWire(wireOptions) : makeProxyWire(wireOptions, proxies));
  const retry = retryPolicyFrom(options.retry);
  const cache = await openCache(options.cache, time, error => telemetry.emitCacheTrouble(error));

  // A robots.txt is read for all callers. It is requested outside the context of the caller that needs it first, because
  // the options that this caller has set by `hub.with` must not apply.
  const runInHubContext = AsyncLocalStorage.snapshot();
  const robots =
    crawlDelays &&
    new RobotsReader({
      time,
      request: (...request) => runInHubContext(() => hub.request(...request)),
      product: () => productOf(options.userAgent),
      isListed: (host, path) => {
        const { listed = [], service } = policy.loaded.ratelimits.resolved.scopeOf(host, path);
        return listed.length > 0 || service !== undefined;
      },
      onDelay: (host, delayS) => {
        const seconds = crawlDelays.set(host, delayS);
        if (seconds === undefined) return;
        gate.reload(withCrawlDelays(policy.loaded.ratelimits.resolved));
        listeners.emit({ event_type: "crawl_delay", host, seconds });
      },
    });

  const onRefresh = (request: OutgoingRequest) => {
    tracers.start(request);
    return (end: CallEnd) => telemetry.emitRequest(request, end);
  };
  const callerIdentity = () => policy.callerIdentity;
  const stored = cache && new StoredResponses(cache.store, time, callerIdentity);
  // Innermost stage first: each stage sends through the stage before it in this list.
  const chain: readonly ((next: SendRequest) => SendRequest)[] = [
    // Inside the retry stage, because `maxWaitMs` bounds the wait before each attempt, and inside the artifact stage, which
    // renames the `content-encoding` of a robots.txt.
    next => (robots === undefined ? next : crawlDelayStage({ robots, time }, next)),
    next => retryStage({ policy: retry, budget: new RetryBudget(), breakers, time, random, telemetry }, next),
    artifactStage,
    next => cacheStage({ stored, time, activeRequests, callerIdentity, onRefresh }, next),
    next => redirectStage(origin => policy.hostNames.of(origin), time, next),
    next => refusalStage(time, next),
  ];
  const connections = new ConnectionCount(proxies === undefined);
  // A dispatcher given by the caller need not be an EventEmitter.
  const wireEvents: Partial<Pick<Dispatcher, "on" | "off">> = wire;
  wireEvents.on?.("connect", connections.onOpened);
  const deferredStamps = new DeferredStamps(time);
  const unreadBodies = new UnreadBodies(time, unreadBodyMs);
  const gatedDeps = { gate, breakers, time, deferredStamps, unreadBodies, telemetry };
  const attempt = attemptStage({ ...gatedDeps, wire, connections });
  const innermost = identifyStage(callerIdentity, attempt);
  const send = chain.reduce((next, stage) => stage(next), innermost);

  let destroyingWire: Promise<void> | undefined;
  let closingStores: Promise<unknown> | undefined;
  const statusStore = breakerStore ?? store;
  statusPublisher =
    statusStore &&
    new StatusPublisher({
      store: statusStore,
      time,
      snapshot: () => hub.snapshot(),
      resolvers: () => breakersOf(breakers).table.resolverNames(),
      sharesLimits: store !== undefined,
      policy: () => ({ configHash: policy.configHash, published: () => publishedPolicyOf(policy.loaded) }),
      refresh: names => gate.refreshRecords(names),
      // A resolver calls many hosts, so the mode of the policy as a whole decides.
      isShadow: name => breakersOf(breakers).table.policies.isShadow(hostOfRecord(name) ?? NO_UNIT),
    });
  const hub = new HttpHub({
    gate,
    breakers,
    time,
    policy,
    listeners,
    tracers,
    callDeps: {
      send: statusPublisher === undefined ? send : publishingSend(statusPublisher, send),
      time,
      activeRequests,
      telemetry,
    },
    defaults: pickCallOptions({ refusals: options.refusals, ...pickCallOptions(options.defaults ?? {}) }),
    retryDeadlineMs: retry.deadlineMs,
    cacheStats: () => cache?.store.stats,
    nodeRequestDeps: {
      ...gatedDeps,
      activeRequests,
      callerIdentity,
      tracers,
      invalidate: (request, head) => stored?.invalidate(request, head),
      onStarted: () => statusPublisher?.scheduleWrite(),
    },
    ownsWire: dispatcher === undefined && !(proxies !== undefined && usesSocks(proxies)),
    allowsPrivate: options.network?.allowPrivate ?? true,
    withCrawlDelays,
    onReloaded: onLimitsEased,
    storeNames: loaded => storeNamesOf(options.store, { policy: loaded, env: options.env ?? process.env }),
    shutDown: async () => {
      wireEvents.off?.("connect", connections.onOpened);
      // A dispatcher given by the caller is not closed. `wire.close` would wait for connections that are being opened for
      // aborted requests.
      if (dispatcher === undefined) destroyingWire ??= wire.destroy();
      deferredStamps.stampAll();
      closingStores ??= Promise.all([closeShared(), cache?.close()]);
      await Promise.all([closingStores, destroyingWire]);
    },
  });
  const closeShared = async () => {
    await statusPublisher?.close();
    await gate.close();
    await breakerStore?.close();
  };
  linkInternals(hub, {
    processId: store?.processId,
    processesEnded: processIds => gate.processesEnded(processIds),
    retryMs: (key, role) => gate.retryMs(key, role),
    onLimitsEased: listener => void limitsEasedListeners.push(listener),
    isFree: (host, role) => gate.check({ host, role }) === undefined,
    keepRobots: (kept, onRead) => robots?.keepIn(kept, onRead),
  });
  return hub;
}

/** Sends each request, and schedules a write of the status of the process. */
function publishingSend(statusPublisher: StatusPublisher, send: SendRequest): SendRequest {
  return (request, sink) => {
    statusPublisher.scheduleWrite();
    return send(request, sink);
  };
}

/** The name under which robots.txt addresses a program: the first word of its User-Agent. */
function productOf(userAgent = "docstokg"): string {
  return userAgent.split(/[/\s]/, 1)[0] ?? "";
}
