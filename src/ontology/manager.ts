import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { Rate } from "../core/limits/rate.ts";
import { canonicalHost } from "../core/text/host.ts";
import { textHash } from "../core/text/text-hash.ts";
import { Gate } from "../gate/gate.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { Listener } from "../listeners.ts";
import { type RoleBudgetPolicy, roleBudgetPolicy } from "../policy/budget-policy.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { NO_AIMD } from "../policy/limits.ts";
import { serviceName, serviceOfName } from "../policy/service-name.ts";
import { lazySqliteStore } from "../stores/open-store.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { appendRateUsage, RATE_USAGE_FILE, RateUsageCounter } from "./rate-usage.ts";
import { checkServiceName, type OntologyRates, type OntologySettings, parseOntologySettings } from "./service-rates.ts";
import { SharedCooldowns } from "./shared-cooldowns.ts";

/** Options of `initManager` and `OntologyManager`. */
export interface OntologyManagerOptions {
  /** The clock and the timers; tests pass `FakeTime`. @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** Receives the events of the rate limiter: grants, refusals, cooldowns. @default no listener */
  readonly listener?: Listener<OntologyEvent> | undefined;
  /** The name of the run in events. @default a random UUID */
  readonly runId?: string | undefined;
}

/** An event of the rate limiter, with the run and the settings that it belongs to. */
export type OntologyEvent = LimiterEvent & {
  /** The run: `runId` of the options. */
  readonly run_id: string;
  /** Sixteen hexadecimal digits; equal settings have equal ones. */
  readonly config_hash: string;
};

/** Options of `acquire`. */
export interface OntologyAcquireOptions {
  /**
   * `block` waits in the queue without a time limit; `fail` never waits and rejects with RateLimitExceeded. This is not
   * the `mode` of the policy (`enforce` or `shadow`), which decides whether a limit is applied.
   * @default "block"
   */
  readonly mode?: "block" | "fail" | undefined;
  /** How many units of every window the request takes: 1 up to the smallest limit of the key. @default 1 */
  readonly weight?: number | undefined;
  /** Aborts the wait: the request leaves the queue, and `acquire` rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Permission for one request, charged to the windows of its key. */
export interface OntologyGrant {
  /** `service:host`, the key whose windows were charged. */
  readonly key: string;
  /** How long the request waited in the queue, in milliseconds. */
  readonly waitedMs: number;
}

/** The gate requires a role. Keys of this module have no roles, so one role serves them all. */
const ROLE = "metadata";
/** The name of the SQLite file in `shared_dir`. */
const SHARED_FILE = "ratelimits.db";
/** The host part of the key when the caller names no host. */
const ANY_HOST = "default";
/** The service part of the key when the caller names no service. */
const NO_SERVICE = "_";

/** Rate limits for keys of the form `service:host`. Each host of a service has its own windows. */
export class OntologyManager {
  readonly #gate: Gate;
  readonly #time: Time;
  readonly #listener: Listener<OntologyEvent> | undefined;
  readonly #runId: string;
  readonly #configHash: string;
  readonly #sharedDir: string | undefined;
  readonly #cooldowns: SharedCooldowns | undefined;
  /** The usage of this process, which `ontofetch rl doctor` shows. */
  readonly #usage = new RateUsageCounter();

  /** @throws ConfigError that lists every value of a wrong type, or else the first invalid rate or service name. */
  constructor(settings: OntologySettings = {}, options: OntologyManagerOptions = {}) {
    const { time = systemTime, listener, runId = randomUUID() } = options;
    const rates = parseOntologySettings(settings);
    const policyOf = (list: readonly Rate[]) => roleBudgetPolicy({ rates: list, guard_ms: rates.guardMs });
    const fallback = policyOf(rates.default);
    const perService = new Map<string, RoleBudgetPolicy>();
    for (const [service, list] of rates.perService) perService.set(service, policyOf(list));
    // The budgets have the names that a hub gives to a service with `per_host`, so this class and `ontofetch` share one
    // count in one `shared_dir`. The budget above the role counts the requests of all roles.
    const routeOf = (text: string) => {
      const key = serviceOfName(text) ?? text;
      const roleBudget = perService.get(key.slice(0, key.indexOf(":"))) ?? fallback;
      const name = serviceName(key);
      return { name, roleBudget, above: [{ name, policy: roleBudget }] };
    };
    const limits: LimitPolicies = {
      aimd: NO_AIMD,
      maxInFlight: Number.POSITIVE_INFINITY,
      routeByName: routeOf,
      route: routeOf,
      serviceRoute: () => undefined,
      hasPaths: () => false,
      placesOf: () => [],
      namedPlaces: () => [],
      isNamed: () => true,
    };
    const store = rates.sharedDir === undefined ? undefined : lazySqliteStore(join(rates.sharedDir, SHARED_FILE), time);
    this.#gate = new Gate(limits, time, {
      listener: event => this.#emit(event),
      store,
      warn: message => process.emitWarning(message, "DocstokgWarning"),
    });
    this.#listener = listener;
    this.#runId = runId;
    this.#configHash = settingsHash(rates);
    this.#time = time;
    this.#sharedDir = rates.sharedDir;
    this.#cooldowns = store && new SharedCooldowns(store, time);
    for (const service of perService.keys()) this.#gate.prepare(keyOf(service, ANY_HOST), ROLE);
  }

  /**
   * Waits until one request to `host` of `service` is permitted.
   * @param service null or undefined for a request of no service, whose keys are `_:host`.
   * @param host without it, the request counts under the key `service:default`.
   * @throws RateLimitExceeded in mode `fail`; the signal's reason after an abort; RangeError for an invalid name or
   * weight.
   */
  async acquire(
    service?: string | null,
    host: string = ANY_HOST,
    { mode = "block", weight = 1, signal }: OntologyAcquireOptions = {},
  ): Promise<OntologyGrant> {
    const key = keyOf(service, host);
    const maxWaitMs = mode === "fail" ? 0 : Number.POSITIVE_INFINITY;
    const cooldownMs = (await this.#cooldowns?.readRemainingMs(hostOf(key))) ?? 0;
    if (cooldownMs > 0) this.#gate.hold(key, ROLE, cooldownMs);
    const { waitedMs } = await this.#gate.enter({ host: key, role: ROLE, weight, signal, maxWaitMs, stamp: "granted" });
    return { key, waitedMs };
  }

  /**
   * Blocks the key for `seconds` from now, as a `Retry-After` asks. A later end replaces an earlier one, never the
   * reverse. In this process the cooldown applies at once. The promise resolves when the processes that share the folder
   * can read it. They apply it to the host, like a Retry-After that `ontofetch` has received.
   * @param key `service:host`, as `acquire` returns it.
   * @throws RangeError for a negative or infinite number of seconds or an invalid key.
   */
  cooldownFor(key: string, seconds: number): Promise<void> {
    // The records that processes share have an end, so a cooldown without one would hold only in this process.
    if (!(seconds >= 0 && Number.isFinite(seconds * 1_000_000)))
      throw new RangeError(`seconds must be a finite number, 0 or more, not ${seconds}`);
    const colon = key.indexOf(":");
    if (colon < 1) throw new RangeError(`invalid key ${JSON.stringify(key)}; expected <service>:<host>`);
    const name = keyOf(key.slice(0, colon), key.slice(colon + 1));
    this.#gate.hold(name, ROLE, seconds * 1000);
    return this.#cooldowns?.publish(hostOf(name), seconds * 1000) ?? Promise.resolve();
  }

  /**
   * Returns leased units to the shared store, closes it, and records the usage for `ontofetch rl doctor`. Without
   * `shared_dir` it does nothing.
   */
  async close(): Promise<void> {
    await this.#gate.close();
    if (this.#sharedDir === undefined) return;
    const at = new Date(this.#time.wallMs()).toISOString();
    const run = { at, pid: process.pid, command: "acquire", keys: this.#usage.keys() };
    await appendRateUsage(join(this.#sharedDir, RATE_USAGE_FILE), run);
  }

  /** Callers know keys as `service:host`, without the prefix of the policy. */
  #emit(event: LimiterEvent): void {
    const named = "key" in event ? { ...event, key: serviceOfName(event.key) ?? event.key } : event;
    this.#usage.listen(named);
    if (this.#listener === undefined) return;
    const configHash = this.#configHash;
    this.#listener({ ...named, run_id: this.#runId, config_hash: configHash }, { configHash });
  }

  /** One entry for the `service:default` key of each configured service, and one for each host that was used. */
  snapshot(): readonly KeySnapshot[] {
    return this.#gate.keySnapshots().map(entry => ({ ...entry, key: serviceOfName(entry.key) ?? entry.key }));
  }
}

function keyOf(service: string | null | undefined, host: string): string {
  if (service !== null && service !== undefined) checkServiceName(service);
  return `${service ?? NO_SERVICE}:${host === ANY_HOST ? host : canonicalHost(host)}`;
}

/** A hash of the limits only: the folder of the store is left out. */
function settingsHash({ default: fallback, perService, guardMs }: OntologyRates): string {
  const services = [...perService].sort(([a], [b]) => (a < b ? -1 : 1));
  return textHash(JSON.stringify([fallback, services, guardMs]));
}

function hostOf(key: string): string {
  return key.slice(key.indexOf(":") + 1);
}
