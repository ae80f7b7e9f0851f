import type { BreakerEvent, CircuitState } from "../breaker/breaker-events.ts";
import { distinctOwners } from "../breaker/breaker-table.ts";
import { type AllowRequest, Breakers } from "../breaker/breakers.ts";
import { operatorReason } from "../breaker/cooldowns.ts";
import type { BreakerDenial } from "../breaker/denial.ts";
import { HostBreaker } from "../breaker/host-breaker.ts";
import {
  circuitStatusOf,
  type HostStatus,
  hostStatusOf,
  orderedStatusOf,
  worseStatus,
} from "../breaker/host-status.ts";
import { orderMs } from "../breaker/order-seconds.ts";
import type { BreakerPermit } from "../breaker/permit.ts";
import type { CallResult } from "../core/breaker/call-result.ts";
import { type Outcome, outcomeOfError, outcomeOfResponse, type ResponseFacts } from "../core/breaker/classify.ts";
import { ConfigError } from "../errors.ts";
import type { Listener } from "../listeners.ts";
import { type BreakerPolicies, breakerPoliciesFrom } from "../policy/breaker-policy.ts";
import type { BreakersOptions } from "../policy/breaker-schema.ts";
import { throwIfAny, unknownOptions } from "../policy/class-options.ts";
import { ROLES } from "../policy/roles.ts";
import { isServiceName } from "../policy/service-name.ts";
import { SharedBreakers } from "../sharing/shared-breakers.ts";
import { STORE_OPTION, type StoreName, storeAt } from "../stores/open-store.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { linkBreakers } from "./registry-breakers.ts";

/** Options of a `BreakerRegistry`; all are optional. */
export interface BreakerRegistryOptions {
  /** The clocks and timers to use. @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** Source of randomness in [0, 1) for jitter and adaptive resets. @default Math.random */
  readonly random?: (() => number) | undefined;
  /** Receives every event from the start; `listen` adds more listeners. @default none */
  readonly listener?: Listener<BreakerEvent> | undefined;
  /**
   * The store that processes share circuits, cooldowns, counted failures and orders through, also with hubs that use the
   * same store. It is opened at the first call. Call `disconnect()` at the end. @default "memory"
   */
  readonly store?: StoreName | undefined;
}

const OPTIONS = Object.keys({ time: 0, random: 0, listener: 0, store: 0 } satisfies Record<
  keyof BreakerRegistryOptions,
  0
>);

/** How a call ended: with a response (`status` and what its headers say) or with an error. */
export interface CallFacts extends Omit<ResponseFacts, "status"> {
  /** The HTTP status of the response. If it is given, `error` is ignored. */
  readonly status?: number | undefined;
  /** The error that the call threw, of any type. */
  readonly error?: unknown;
}

/** A failed call whose permit was not kept. */
export interface FailureReport extends AllowRequest {
  /** The HTTP status of the response. If it is given, `error` is ignored. */
  readonly status?: number | undefined;
  /** The error that the call threw, of any type. */
  readonly error?: unknown;
  /** The wait that the response asked for (Retry-After), in milliseconds: `parseRetryAfterMs` reads the header field. */
  readonly retryAfterMs?: number | undefined;
}

const SUCCESS: CallResult = Object.freeze({ outcome: Object.freeze({ kind: "success" }) });
const CLOSED_STATUS = Object.freeze({ state: "closed", remainingMs: 0 });

/**
 * Circuit breakers for each role of each host, and for each resolver, of this process or of all that share its store.
 * `allow` returns a permit; the caller reports the result of the call to it, or releases it.
 * A cooldown (Retry-After, rolling window, operator) blocks every role of a host.
 *
 * With a store, `run` reads what the other processes know before it decides. The functions that do not wait decide by
 * what this process has read last: call `refresh` before them.
 */
export class BreakerRegistry {
  readonly #breakers: Breakers;
  readonly #time: Time;
  readonly #shared: SharedBreakers | undefined;

  /**
   * @param breakers Same shape as `breakers.yaml`; what it does not name has the built-in value.
   * @throws ConfigError with every problem found in `breakers`, or for an unknown option or an invalid name of a store.
   */
  constructor(breakers: BreakersOptions = {}, options: BreakerRegistryOptions = {}) {
    throwIfAny(unknownOptions(options, OPTIONS, "BreakerRegistry"));
    const { time = systemTime, random = Math.random, listener, store: storeName = "memory" } = options;
    this.#time = time;
    this.#breakers = new Breakers(withoutStore(breakers), time, random);
    linkBreakers(this, this.#breakers);
    if (listener !== undefined) this.#breakers.emitter.add(listener);
    const store = storeAt(storeName, STORE_OPTION, { env: process.env, time, random });
    const warn = (message: string) => process.emitWarning(message, "DocstokgWarning");
    this.#shared = store && new SharedBreakers({ store, breakers: this.#breakers, time, warn });
  }

  /**
   * Reads what the other processes know about the host of a request, so that the next `allow`, `tryAllow` or `check`
   * decides by it. If a circuit is half-open, it also asks them for the permission to make a trial call, which the next
   * `allow` within a second uses. Returns at once without a store, and while the store does not answer. Rejects with a
   * StoreError if the store can never work.
   */
  async refresh(request: AllowRequest): Promise<void> {
    await this.#shared?.refresh(request);
  }

  /**
   * Asks for a permit to make one call.
   * @throws BreakerOpenError, which says why and for how long, if the circuit is open or the host is in cooldown.
   */
  allow(request: AllowRequest): BreakerPermit {
    const answer = this.tryAllow(request);
    if (answer.isAllowed) return answer;
    throw answer.error();
  }

  /** Like `allow`, but returns a denial instead of throwing; `isAllowed` says which it is. */
  tryAllow(request: AllowRequest): BreakerPermit | BreakerDenial {
    this.#shared?.refreshLater(request);
    return this.#breakers.tryAllow(request, this.#shared?.probes);
  }

  /**
   * Waits for the jitter of a trial call, then makes the call with a permit. If `call` resolves, that is a success; if
   * it rejects, its error is classified. A result that `call` reports itself with `permit.report` takes precedence.
   * Rejects with a BreakerOpenError if there is no permit, and with a StoreError if the store can never work.
   */
  run<Result>(request: AllowRequest, call: (permit: BreakerPermit) => Promise<Result>): Promise<Result> {
    if (this.#shared !== undefined) return this.#runShared(this.#shared, request, call);
    // Not an async function: that would cost a third more time in each call.
    try {
      const permit = this.allow(request);
      if (permit.jitterMs > 0)
        return this.#jitter(permit.jitterMs).then(() => {
          this.#checkAfterJitter(permit, request);
          return this.#run(permit, call);
        });
      return this.#run(permit, call);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async #runShared<Result>(
    shared: SharedBreakers,
    request: AllowRequest,
    call: (permit: BreakerPermit) => Promise<Result>,
  ): Promise<Result> {
    for (;;) {
      await shared.refresh(request);
      const answer = this.#breakers.tryAllow(request, shared.probes);
      if (answer.isAllowed) {
        if (answer.jitterMs > 0) {
          await this.#jitter(answer.jitterMs);
          this.#checkAfterJitter(answer, request);
        }
        return this.#run(answer, call);
      }
      // Another call of this process may have used the permission of the peers: they are asked again.
      if (!answer.isProbePending) throw answer.error();
    }
  }

  /** Throws if a cooldown or an order of an operator has begun during the jitter of a trial call. */
  #checkAfterJitter(permit: BreakerPermit, request: AllowRequest): void {
    if (!this.#breakers.isStopped(request)) return;
    permit.release();
    const denial = this.#breakers.check(request);
    if (denial !== undefined) throw denial.error();
  }

  #run<Result>(permit: BreakerPermit, call: (permit: BreakerPermit) => Promise<Result>): Promise<Result> {
    const fail = (error: unknown): never => {
      permit.report({ outcome: this.classify({ error }), error });
      throw error;
    };
    try {
      return Promise.resolve(call(permit)).then(result => {
        permit.report(SUCCESS);
        return result;
      }, fail);
    } catch (error) {
      return fail(error);
    }
  }

  /** Returns why a call would be denied now, or undefined if it would be permitted. Changes nothing. */
  check(request: AllowRequest): BreakerDenial | undefined {
    return this.#breakers.check(request);
  }

  /** Reports a success for a caller that did not keep its permit. It counts for the oldest trial call in flight. */
  onSuccess(request: AllowRequest): void {
    this.#breakers.settleWithoutPermit(request, SUCCESS);
  }

  /** Reports a failed call for a caller that did not keep its permit. `classify` decides whether it is a failure. */
  onFailure({ status, error, retryAfterMs, ...request }: FailureReport): void {
    const outcome = this.classify({ status, error, retryAfterMs });
    this.#breakers.settleWithoutPermit(request, { outcome, status, error, retryAfterMs });
  }

  /** Classifies the end of a call as success, failure or neutral, with the status lists of this registry (law B4). */
  classify(facts: CallFacts): Outcome {
    return facts.status === undefined
      ? outcomeOfError(facts.error)
      : outcomeOfResponse(facts as ResponseFacts, this.#breakers.table.policies.rules);
  }

  /**
   * The state of a host and of each of its roles. A host that was never called is closed. For a host that belongs to a
   * service: the state of the host or of the service, whichever blocks its calls longer.
   * @param path of the URL, for hosts that a policy splits by path. @default the whole host
   * @param partition whose state it is, for hosts with `per: partition`. @default none
   */
  state(host: string, path?: string, partition?: string): HostStatus {
    const statuses = this.#ownersOf(host, path, partition).map(owner => this.#hostStatusOf(owner));
    const [first, ...others] = [...statuses, ...this.#commonOrdersOf(host, path, partition)];
    return others.reduce(worseStatus, first ?? this.#hostStatusOf(new HostBreaker(host)));
  }

  /** State and remaining milliseconds only; cheap for hosts without failures. */
  briefState(host: string, path?: string, partition?: string): Pick<HostStatus, "state" | "remainingMs"> {
    const sole = partition === undefined ? this.#breakers.table.get(host)?.soleOwners : undefined;
    if (sole !== undefined && isClosed(sole.circuit)) return CLOSED_STATUS;
    const owners = this.#ownersOf(host, path, partition);
    return owners.every(isClosed) && this.#commonOrdersOf(host, path, partition).length === 0
      ? CLOSED_STATUS
      : this.state(host, path, partition);
  }

  /** The state of the circuit of a resolver; `closed` for a resolver that was never used. */
  resolverState(resolver: string): CircuitState {
    return this.resolverStatus(resolver).state;
  }

  /** State of the circuit of a resolver, and why and for how long it is open. */
  resolverStatus(resolver: string): Pick<HostStatus, "state" | "reason" | "remainingMs"> {
    return circuitStatusOf(this.#breakers.table.resolver(resolver), this.#time.monotonicUs());
  }

  /** Milliseconds until the host may be called again in every role; 0 if it may be called now. */
  remainingMs(host: string, path?: string): number {
    return this.state(host, path).remainingMs;
  }

  /** The state of every host in memory. Hosts without failures, and hosts unused for an hour, may be evicted. */
  *statuses(): IterableIterator<HostStatus> {
    for (const host of this.#breakers.table.hosts()) yield this.#hostStatusOf(host);
  }

  /**
   * Forces the circuit open: calls are refused. It applies to every role of the host, and ends after `seconds` or with
   * `close`; no success ends it earlier.
   * @param seconds How long the circuit stays open, greater than 0 and at most a year.
   * @param reason Shown in errors, events and tables after `cli-open:`.
   */
  open(host: string, seconds: number, reason = "operator"): void {
    const order = { kind: "open", ms: orderMs(seconds), reason: operatorReason(reason), isReplacing: false } as const;
    this.#breakers.giveOrder({ unit: host }, order);
  }

  /**
   * Closes the circuit: calls flow again. Clears the cooldowns, the failure counts and the learned reset of the host and
   * of the service that it belongs to, and closes the circuit of every role.
   */
  close(host: string): void {
    for (const { name } of this.#ownersOf(host)) this.#breakers.giveOrder({ unit: name }, { kind: "close" });
  }

  /**
   * Replaces the configuration. Open circuits and cooldowns keep their end, also for calls that get other ones: with
   * another `per`.
   * @throws ConfigError with every problem found; then the old configuration stays in use.
   */
  reload(breakers: BreakersOptions): void {
    this.#breakers.reload(withoutStore(breakers));
  }

  /**
   * Publishes pending changes and closes the store. Afterwards the circuits are those of this process alone. Without a
   * store it has no effect.
   */
  async disconnect(): Promise<void> {
    await this.#shared?.close();
  }

  /** Adds a listener for events. Returns a function that removes it. */
  listen(listener: Listener<BreakerEvent>): () => void {
    return this.#breakers.emitter.add(listener);
  }

  #jitter(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#time.setTimer(ms, resolve);
    return promise;
  }

  /** The owners of the circuits and cooldowns of a host, or of a path of it; `service <name>` is one itself. */
  #ownersOf(host: string, path?: string, partition?: string): readonly HostBreaker[] {
    const { table } = this.#breakers;
    if (isServiceName(host)) return [table.find(host) ?? []].flat();
    return distinctOwners(table.ownersOf(host, path, partition));
  }

  /** For a partition, what operators' orders for its host or service do to its calls. Nothing else of these applies to it. */
  #commonOrdersOf(host: string, path?: string, partition?: string): readonly HostStatus[] {
    if (partition === undefined || isServiceName(host)) return [];
    const { common } = this.#breakers.table.ownersOf(host, path, partition);
    const clocks = { monotonicUs: this.#time.monotonicUs(), wallMs: this.#time.wallMs() };
    return common.map(owner => orderedStatusOf(owner, clocks)).filter(({ state }) => state === "open");
  }

  #hostStatusOf(host: HostBreaker): HostStatus {
    const clocks = { monotonicUs: this.#time.monotonicUs(), wallMs: this.#time.wallMs() };
    return hostStatusOf(host, clocks, this.#breakers.table.policies.rollingWindow.windowUs);
  }
}

/** Whether nothing denies its calls in any role. */
function isClosed({ mayHaveCooldown, circuits }: HostBreaker): boolean {
  if (mayHaveCooldown) return false;
  for (const role of ROLES) if (circuits[role]?.isClosed === false) return false;
  return true;
}

/** The store is an option of the class. A configured `cooldown_store` is refused instead of ignored. */
function withoutStore(options: BreakersOptions): BreakerPolicies {
  const policies = breakerPoliciesFrom(options, "BreakerRegistry");
  const backend = options.advanced?.cooldown_store?.backend ?? "none";
  if (backend === "none") return policies;
  const message =
    `backend ${JSON.stringify(backend)} is not supported by BreakerRegistry: ` +
    "pass the option store to share circuits and cooldowns";
  throw new ConfigError([{ where: "BreakerRegistry", path: "advanced.cooldown_store.backend", message }]);
}
