import type { Dispatcher } from "undici";
import { BreakerRegistry } from "../breaker/breaker-registry.ts";
import type { StoreError } from "../errors.ts";
import { Gate } from "../gate/gate.ts";
import { Listeners } from "../listeners.ts";
import { unknownVariables } from "../policy/environment.ts";
import { breakerStoreFor, storeFor, withoutStore } from "../stores/open-store.ts";
import type { Store } from "../stores/store.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { ActiveRequests } from "./active-requests.ts";
import type { CacheStore } from "./cache/cache-store.ts";
import { MemoryCache } from "./cache/memory-cache.ts";
import { SqliteCache } from "./cache/sqlite-cache.ts";
import { checkHubOptions } from "./check-options.ts";
import type { HttpEvent } from "./http-events.ts";
import { addListener, HttpHub } from "./http-hub.ts";
import type { Hub } from "./hub.ts";
import type { HubOptions, RetryOptions } from "./hub-options.ts";
import { HubPolicy } from "./hub-policy.ts";
import { RequestTelemetry } from "./request-telemetry.ts";
import { artifactStage } from "./stages/artifact.ts";
import { attemptStage } from "./stages/attempt.ts";
import { cacheStage } from "./stages/cache.ts";
import { DeferredStamps } from "./stages/deferred-stamps.ts";
import { identifyStage } from "./stages/identify.ts";
import { redirectStage } from "./stages/redirect.ts";
import { retrying } from "./stages/retry.ts";
import { RetryBudget } from "./stages/retry-budget.ts";
import type { SendRequest } from "./stages/stage.ts";
import { UnreadBodies } from "./stages/unread-bodies.ts";
import { StatusPublisher } from "./status-publisher.ts";
import { makeWire } from "./wire/wire.ts";

const RETRY = { attempts: 4, baseMs: 500, capMs: 30_000, deadlineMs: 120_000 } as const;
const UNREAD_BODY_MS = 60_000;

/** A hub, with the policy loaded. Rejects with a ConfigError that lists everything wrong with it. */
export async function createHub(options: HubOptions = {}): Promise<Hub> {
  checkHubOptions(options);
  const { time = systemTime, random = Math.random } = options;
  const policy = await HubPolicy.load(options);
  const breakers = new BreakerRegistry(withoutStore(policy.loaded.breakers.options), { time, random });
  const env = options.env ?? process.env;
  for (const warning of unknownVariables(env)) process.emitWarning(warning, "DocstokgWarning");
  const callDeps = { policy: policy.loaded, env, time, random };
  const stores = { store: storeFor(options.store, callDeps), breakerStore: breakerStoreFor(callDeps) };
  return assembleHub(options, { policy, breakers, ...stores });
}

/** What a hub is given rather than makes. Whoever simulates a fleet hands in stores that fail on cue. */
export interface HubInputs {
  readonly policy: HubPolicy;
  readonly breakers: BreakerRegistry;
  readonly store: Store | undefined;
  /** Where breakers are shared, if not with the limits. */
  readonly breakerStore?: Store | undefined;
}

/** The hub itself, for options that were checked. */
export async function assembleHub(options: HubOptions, inputs: HubInputs): Promise<Hub> {
  const { policy, breakers, store, breakerStore } = inputs;
  const { time = systemTime, random = Math.random, unreadBodyMs = UNREAD_BODY_MS, dispatcher } = options;
  const gate = new Gate(policy.loaded.ratelimits.resolved, time, { breakers, store, breakerStore, random });
  const listeners = new Listeners<HttpEvent>();
  for (const listener of options.telemetry ?? []) addListener({ gate, breakers, listeners, policy }, listener);
  const telemetry = new RequestTelemetry(listeners, breakers, time);
  const activeRequests = new ActiveRequests();
  const wire = dispatcher ?? makeWire({ ...options.network, allowPrivate: options.network?.allowPrivate ?? true });
  const retry = retryPolicy(options.retry);
  const cache = await openCache(options.cache, time, error => telemetry.emitCacheTrouble(error));

  // From the wire outwards: each line is the stage around those above it.
  const chain: readonly ((next: SendRequest) => SendRequest)[] = [
    next => identifyStage(() => policy.callerIdentity, next),
    next =>
      retrying(
        {
          policy: retry,
          budget: new RetryBudget(),
          breakers,
          time,
          random,
          retrying: (...about) => telemetry.retrying(...about),
        },
        next,
      ),
    artifactStage,
    next => cacheStage({ store: cache?.store, time, activeRequests }, next),
    next => redirectStage(origin => policy.hostNames.of(origin), next),
  ];
  let connections = 0;
  const onConnect = () => {
    connections += 1;
  };
  // One that was handed in need not tell of its connections.
  const events: Partial<Pick<Dispatcher, "on" | "off">> = wire;
  events.on?.("connect", onConnect);
  const deferredStamps = new DeferredStamps(time);
  const innermost = attemptStage({
    gate,
    breakers,
    wire,
    time,
    connections: () => connections,
    unread: new UnreadBodies(time, unreadBodyMs),
    deferredStamps,
    onUnreadBody: request => telemetry.unread(request, unreadBodyMs),
  });
  const send = chain.reduce((next, stage) => stage(next), innermost);

  let destroyed: Promise<void> | undefined;
  let rest: Promise<unknown> | undefined;
  const shared = breakerStore ?? store;
  const statusPublisher: StatusPublisher | undefined =
    shared && new StatusPublisher(shared, time, () => hub.snapshot());
  const hub = new HttpHub({
    gate,
    breakers,
    time,
    policy,
    listeners,
    callDeps: {
      send: (...about) => {
        statusPublisher?.scheduleWrite();
        return send(...about);
      },
      time,
      activeRequests,
      finished: (...about) => telemetry.finished(...about),
    },
    defaults: options.defaults,
    retryDeadlineMs: retry.deadlineMs,
    cacheStats: () => cache?.store.stats,
    shutDown: async isForced => {
      // A wire that was handed in belongs to whoever did.
      events.off?.("connect", onConnect);
      if (isForced && dispatcher === undefined) destroyed ??= wire.destroy();
      deferredStamps.stampAll();
      rest ??= Promise.all([closeShared(), cache?.close()]);
      await rest;
      if (dispatcher === undefined) await (destroyed ?? wire.close());
    },
  });
  const closeShared = async () => {
    await statusPublisher?.close();
    await gate.close();
    await breakerStore?.close();
  };
  return hub;
}

interface OpenedCache {
  readonly store: CacheStore;
  readonly close: () => Promise<void>;
}

/** Throws a RangeError for what is no cache. A file that cannot be had makes a cache that keeps nothing, and is told. */
async function openCache(
  kind: HubOptions["cache"],
  time: Time,
  onTrouble: (error: StoreError) => void,
): Promise<OpenedCache | undefined> {
  if (kind === false) return undefined;
  if (kind === undefined || kind === "memory") {
    const store = new MemoryCache();
    return { store, close: async () => store.close() };
  }
  const [, file] = /^sqlite:(.+)$/s.exec(kind) ?? [];
  if (file === undefined) {
    throw new RangeError(`cache must be "memory", "sqlite:<file>" or false, not ${JSON.stringify(kind)}`);
  }
  const store = await SqliteCache.open(file, { time, onTrouble });
  return {
    store,
    close: async () => {
      await store.settled();
      store.close();
    },
  };
}

/** Throws a RangeError that names what is wrong. */
function retryPolicy(options: false | RetryOptions = {}): Required<{ [Key in keyof RetryOptions]: number }> {
  if (options === false) return { ...RETRY, attempts: 1 };
  const policy = { ...RETRY, ...options } as Required<{ [Key in keyof RetryOptions]: number }>;
  if (!(Number.isInteger(policy.attempts) && policy.attempts >= 1))
    throw new RangeError(`retry.attempts must be a whole number from 1, not ${policy.attempts}`);
  for (const key of ["baseMs", "capMs", "deadlineMs"] as const) {
    if (!(policy[key] >= 0)) throw new RangeError(`retry.${key} must be 0 or more, not ${policy[key]}`);
  }
  return policy;
}
