import { join } from "node:path";
import { canonicalHost } from "../core/text/host.ts";
import { Gate } from "../gate/gate.ts";
import { type KeySnapshot, keySnapshotOf } from "../limiter/key-snapshot.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { Listener } from "../listeners.ts";
import { type RoleBudgetPolicy, roleBudgetPolicy } from "../policy/budget-policy.ts";
import { type LimitPolicies, NO_AIMD } from "../policy/limits.ts";
import { lazySqliteStore } from "../stores/open-store.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { checkServiceName, type OntologySettings, parseOntologySettings } from "./service-rates.ts";
import { SharedCooldowns } from "./shared-cooldowns.ts";

export interface OntologyManagerOptions {
  /** @default the clocks of this machine */
  readonly time?: Time | undefined;
  readonly listener?: Listener<LimiterEvent> | undefined;
}

export interface OntologyAcquireOptions {
  /** `block` waits for its turn, however long; `fail` never waits. @default "block" */
  readonly mode?: "block" | "fail" | undefined;
  /** @default 1 */
  readonly weight?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface OntologyGrant {
  /** `service:host`, the key whose windows were charged. */
  readonly key: string;
  readonly waitedMs: number;
}

/** All keys are of one kind here, so that one role serves them. */
const ROLE = "metadata";
/** In the shared folder. */
const SHARED_FILE = "ratelimits.db";
/** The key of a service whose host does not matter. */
const ANY_HOST = "default";

/** The limiter's engine under keys of the form `service:host`, each host of a service with windows of its own. */
export class OntologyManager {
  readonly #gate: Gate;
  readonly #time: Time;
  readonly #cooldowns: SharedCooldowns | undefined;

  constructor(settings: OntologySettings = {}, { time = systemTime, listener }: OntologyManagerOptions = {}) {
    const rates = parseOntologySettings(settings);
    const policyOf = (list: typeof rates.default) => roleBudgetPolicy({ rates: list, guard_ms: rates.guardMs });
    const fallback = policyOf(rates.default);
    const perService = new Map<string, RoleBudgetPolicy>();
    for (const [service, list] of rates.perService) perService.set(service, policyOf(list));
    const routeOf = (key: string) => {
      const roleBudget = perService.get(key.slice(0, key.indexOf(":"))) ?? fallback;
      return { name: key, roleBudget, above: [] };
    };
    const limits: LimitPolicies = {
      aimd: NO_AIMD,
      maxInFlight: Number.POSITIVE_INFINITY,
      routeByName: routeOf,
      route: routeOf,
      hasPaths: () => false,
    };
    this.#time = time;
    const store = rates.sharedDir === undefined ? undefined : lazySqliteStore(join(rates.sharedDir, SHARED_FILE), time);
    this.#gate = new Gate(limits, time, { listener, store });
    this.#cooldowns = store && new SharedCooldowns(store, time, (key, ms) => this.#gate.hold(key, ROLE, ms));
    for (const service of perService.keys()) this.#gate.prepare(keyOf(service, ANY_HOST), ROLE);
  }

  /** Rejects with RateLimitExceeded in fail mode, or with the signal's reason. */
  async acquire(
    service: string,
    host: string = ANY_HOST,
    { mode = "block", weight = 1, signal }: OntologyAcquireOptions = {},
  ): Promise<OntologyGrant> {
    const key = keyOf(service, host);
    const maxWaitMs = mode === "fail" ? 0 : Number.POSITIVE_INFINITY;
    await this.#cooldowns?.refresh(key);
    const { waitedMs } = await this.#gate.enter({ host: key, role: ROLE, weight, signal, maxWaitMs, stamp: "granted" });
    return { key, waitedMs: waitedMs };
  }

  /**
   * Nothing of this key goes for so many seconds: what a `Retry-After` asks for.
   * It is an instant, not an extra wait: who slept it out himself finds it over. It holds here at once; the promise is
   * for those who want to know that the processes of a shared folder have been told.
   */
  cooldownFor(key: string, seconds: number): Promise<void> {
    if (!(seconds >= 0)) throw new RangeError(`seconds must be 0 or more, not ${seconds}`);
    const colon = key.indexOf(":");
    if (colon < 1) throw new RangeError(`${JSON.stringify(key)} is not a key; write <service>:<host>`);
    const name = keyOf(key.slice(0, colon), key.slice(colon + 1));
    this.#gate.hold(name, ROLE, seconds * 1000);
    return this.#cooldowns?.publish(name, seconds * 1000) ?? Promise.resolve();
  }

  /** Gives back what other processes could use. Without a shared folder there is nothing to close. */
  async close(): Promise<void> {
    await this.#gate.close();
  }

  /** The configured services' own keys, whether used or not, and every host that was used. */
  snapshot(): readonly KeySnapshot[] {
    const nowUs = this.#time.monotonicUs();
    return Array.from(this.#gate.roleBudgets(), roleBudget => keySnapshotOf(roleBudget, this.#gate, nowUs));
  }
}

function keyOf(service: string, host: string): string {
  checkServiceName(service);
  return `${service}:${host === ANY_HOST ? host : canonicalHost(host)}`;
}
