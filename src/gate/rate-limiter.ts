import { ConfigError, type Constraint } from "../errors.ts";
import type { KeySnapshot } from "../limiter/key-snapshot.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { Refusal } from "../limiter/refusal.ts";
import type { Listener } from "../listeners.ts";
import { storeAwayProblems, throwIfAny, unknownOptions } from "../policy/class-options.ts";
import type { LimitPolicies } from "../policy/limit-policies.ts";
import { limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import type { Role } from "../policy/roles.ts";
import { STORE_OPTION, type StoreName, storeAt } from "../stores/open-store.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { type AcquireRequest, entryOf, type ImmediateRequest, immediateEntryOf } from "./acquire-request.ts";
import { Gate } from "./gate.ts";

/** Second argument of `new RateLimiter`. */
export interface RateLimiterOptions {
  /** Source of time and timers; tests pass a `FakeTime`. @default the clocks of this machine */
  readonly time?: Time | undefined;
  /**
   * Receives an event for every grant, refusal, cooldown and change of pace. A listener that throws is reported as a
   * process warning and has no other effect. @default none
   */
  readonly listener?: Listener<LimiterEvent> | undefined;
  /**
   * The store that processes share the limits through, also with hubs that use the same store. It is opened at the first
   * request; a store that can never work rejects requests with a StoreError. Call `close()` at the end. @default "memory"
   */
  readonly store?: StoreName | undefined;
  /**
   * What requests do while the store does not answer: "share" uses this process's share of each limit, "wait" queues
   * them until the store is back, "refuse" fails them at once. @default "share"
   */
  readonly whenStoreAway?: "share" | "wait" | "refuse" | undefined;
  /**
   * The largest number of processes that share the store, 1 or more. A process that has not reached the store yet
   * divides each limit by this number; without it, such a process waits. @default not set
   */
  readonly fleetSize?: number | undefined;
}

const OPTIONS = Object.keys({
  time: 0,
  listener: 0,
  store: 0,
  whenStoreAway: 0,
  fleetSize: 0,
} satisfies Record<keyof RateLimiterOptions, 0>);

/** Permission to send one request. */
export interface RateGrant extends Disposable {
  /** Name of the host or service whose budget was charged; a service is shown as `service <name>`. */
  readonly host: string;
  /** The role whose budget was charged. */
  readonly role: Role;
  /** How long the call waited for the grant, in milliseconds; 0 when it did not wait. */
  readonly waitedMs: number;
  /** The limit that most of the wait was spent on; undefined when no limit delayed the call. */
  readonly waitedFor: Constraint | undefined;
  /**
   * Frees the concurrency slots of the request; later calls have no effect. Needed only where the policy sets
   * `max_concurrent` or `max_inflight`. The end of a `using` block calls it too.
   */
  release(): void;
  /**
   * Returns the units, costs and slots of a request that was not sent after all, so that another one can use them. After
   * `release()`, or `written()` inside `run`, nothing is returned; nor are units of a grant of `acquire` after a
   * reload, which may count them elsewhere. Even spacing (`shape: smooth`) still counts the request.
   */
  giveBack(): void;
  /**
   * Says what the request really used of other units than requests, `{ credits: 25 }`, once its answer is known: the
   * difference to what it was charged is returned or charged now. Later requests wait for a debt, however large it is.
   * Units that are not named stay as they are. May be called again, also after `release()`. Nothing is returned if limits
   * were changed since the request was written: by a reload, by an order for a total, or because the store was lost or
   * is back.
   * @throws RangeError for an amount that is not a whole number of 0 or more, and for a unit that no limit counts
   */
  settle(costs: Readonly<Record<string, number>>): void;
}

/** A grant of `run`: the request counts as written now, at every moment, until `written()` is called. */
export interface SendingGrant extends RateGrant {
  /**
   * Stamps the request: call it when the headers have been written. From then on the windows count it at that instant.
   * Without it the request is stamped when `send` settles.
   */
  written(): void;
}

/** Which budget a server's answer belongs to: the same `host`, `role` and `path` as in the request. */
export type AnsweredRequest = Pick<AcquireRequest, "host" | "role" | "path">;

/** A cooldown of one budget. */
export type CooldownRequest = AnsweredRequest & {
  /** How long nothing is sent, in milliseconds: a finite number above 0. */
  readonly ms: number;
};

/** The state of a `RateLimiter` at one instant. */
export interface LimiterSnapshot {
  /** Grants that hold concurrency slots: granted and not released. */
  readonly inFlight: number;
  /** Requests that are queued. */
  readonly waiting: number;
  /** One entry for each host or service and role that was used and is not evicted yet. */
  readonly keys: readonly KeySnapshot[];
}

/**
 * Limits how often hosts are called: never more than N requests in any window of length T, first in, first out.
 *
 * With `acquire` a request counts from the moment it is granted. With `run` it counts as written now until it has an
 * answer, so that the limit also holds where the server counts, however long connecting takes. Where the policy sets
 * `max_concurrent` or `max_inflight`, a grant also holds a slot until `release()`, or the end of its `using` block.
 * Neither is set by default.
 */
export class RateLimiter {
  readonly #gate: Gate;

  /**
   * @param limits the shape of `ratelimits.yaml`, without `backend`; hosts that it does not name get the built-in
   * defaults
   * @throws ConfigError that lists every problem of `limits`, or of `options`
   */
  constructor(limits: RatelimitsOptions = {}, options: RateLimiterOptions = {}) {
    throwIfAny([...unknownOptions(options, OPTIONS, "RateLimiter"), ...storeAwayProblems(options, "RateLimiter")]);
    const { time = systemTime, listener, store = "memory", whenStoreAway: mode = "share", fleetSize } = options;
    this.#gate = new Gate(withoutBackend(limits), time, {
      listener,
      store: storeAt(store, STORE_OPTION, { env: process.env, time, random: Math.random }),
      awayPolicy: () => ({ mode, fleetSize }),
      warn: message => process.emitWarning(message, "DocstokgWarning"),
    });
  }

  /**
   * Waits until the request may be sent.
   *
   * Rejects at once with RateLimitExceeded if the wait would be longer than `maxWaitMs`, or than the policy's
   * `max_delay_ms` if `maxWaitMs` is not given. Rejects with BusyError if no concurrency slot becomes free within
   * `maxWaitMs`, with the signal's reason if it is aborted, and with a TypeError or RangeError for a bad option.
   */
  async acquire(request: AcquireRequest): Promise<RateGrant> {
    return this.#gate.enter(entryOf(request, "acquire"));
  }

  /**
   * Waits until the request may be sent, calls `send` and returns its result. Rejects as `acquire` does, or as `send`
   * does.
   *
   * The request counts as written now until `send` has settled or has called `grant.written()`. The server cannot have
   * received it later than that, so a cold connection or a stalled event loop never puts more than N requests in a
   * window. The cost: the next window starts only after the answer.
   */
  async run<Result>(request: AcquireRequest, send: (grant: SendingGrant) => Promise<Result>): Promise<Result> {
    const grant = await this.#gate.enter(entryOf(request, "run"));
    // `try` instead of `using`: measured on Node 24, `using` takes five times as long.
    try {
      return await send(grant);
    } finally {
      grant.release();
    }
  }

  /**
   * A grant, or undefined if the request cannot be sent now. Never waits. `check` says when and why. With a store, the
   * first call of a key is refused, because only the store knows what is free: it is asked in the background, and a call
   * within the next second can use its reply. `acquire` with `maxWaitMs: 0` waits for that reply.
   * Throws only for a bad option (TypeError, RangeError).
   */
  tryAcquire(request: ImmediateRequest): RateGrant | undefined {
    return this.#gate.tryEnter(immediateEntryOf(request, "tryAcquire"));
  }

  /**
   * Which limit would refuse the request now, and for how long; undefined if `tryAcquire` would grant it. With a store,
   * it answers by the limits of this process and the last reply of the store. Whether other processes have the slots of
   * a shared `max_concurrent` is known for a second after the store has refused one.
   * Takes nothing, counts nothing and emits no event.
   */
  check(request: ImmediateRequest): Refusal | undefined {
    return this.#gate.check(immediateEntryOf(request, "check"));
  }

  /**
   * Records that the server answered 429 although the limits were kept: the guard of the key widens, a second such 429
   * spaces its requests evenly, and with `aimd.enabled` its pace may slow down. `cooldownFor` also stops the key for a
   * while.
   */
  record429({ host, role = "metadata", path }: AnsweredRequest): void {
    this.#gate.record(host, role, true, path);
  }

  /**
   * Records an answer that was not throttled. After an hour without throttles the guard narrows; with `aimd.enabled`
   * the pace recovers.
   */
  recordSuccess({ host, role = "metadata", path }: AnsweredRequest): void {
    this.#gate.record(host, role, false, path);
  }

  /**
   * Sends nothing of this host and role for a while, for example because the server sent Retry-After. Waiting requests
   * stay queued if they may wait that long. Of two cooldowns the later end counts.
   * @throws RangeError if `ms` is not a finite number above 0
   */
  cooldownFor({ host, role = "metadata", path, ms }: CooldownRequest): void {
    if (!(ms > 0 && ms < Number.POSITIVE_INFINITY))
      throw new RangeError(`cooldownFor: ms must be a finite number greater than 0, got ${ms}`);
    this.#gate.hold(host, role, ms, path);
  }

  /**
   * Ends the AIMD counting windows (`aimd.window_s`) that are over, and adjusts the pace of their keys. Recorded
   * answers do the same; call this only if answers may stop for longer than a window.
   */
  tickAimd(): void {
    this.#gate.tick();
  }

  /**
   * Applies new limits: requests already sent still count, waiting requests stay queued.
   * @throws ConfigError that lists every problem of `limits`; the old limits stay in force
   */
  reload(limits: RatelimitsOptions): void {
    this.#gate.reload(withoutBackend(limits));
  }

  /**
   * Returns all leases to the store and closes the store. Requests that wait, and later ones, reject with a
   * HubClosedError. Without a shared store it does nothing.
   */
  async close(): Promise<void> {
    await this.#gate.close();
  }

  /** The state of every key now. Takes time proportional to the number of keys. */
  snapshot(): LimiterSnapshot {
    const { inFlight, waiting } = this.#gate;
    return { inFlight, waiting, keys: this.#gate.keySnapshots() };
  }
}

/** The store is an option of the class. Ignoring a configured backend would send more than the limits allow. */
function withoutBackend(options: RatelimitsOptions): LimitPolicies {
  const limits = limitPoliciesFrom(options, "RateLimiter");
  if (options.backend?.kind !== undefined && options.backend.kind !== "memory") {
    const kind = JSON.stringify(options.backend.kind);
    const message = `backend ${kind} is not supported by RateLimiter: pass the option store to share limits`;
    throw new ConfigError([{ where: "RateLimiter", path: "backend.kind", message }]);
  }
  return limits;
}
