import { ConfigError } from "../errors.ts";
import type { EntryRequest } from "../limiter/entry-request.ts";
import type { Refusal } from "../limiter/grant.ts";
import { type KeySnapshot, keySnapshotOf } from "../limiter/key-snapshot.ts";
import type { LimiterEvent } from "../limiter/limiter-events.ts";
import type { Listener } from "../listeners.ts";
import { type LimitPolicies, limitPoliciesFrom } from "../policy/limits.ts";
import type { RatelimitsOptions } from "../policy/ratelimit-schema.ts";
import type { Role } from "../policy/roles.ts";
import { systemTime } from "../time/system-time.ts";
import type { Time } from "../time/time.ts";
import { Gate } from "./gate.ts";

export interface RateLimiterOptions {
  /** @default the clocks of this machine */
  readonly time?: Time | undefined;
  /** Hears of every grant, refusal and change of pace. One that throws breaks nothing. */
  readonly listener?: Listener<LimiterEvent> | undefined;
}

export interface AcquireRequest
  extends Omit<EntryRequest, "role" | "service" | "resolver" | "timeoutMs" | "stamp" | "onWait" | "maxBreakerWaitMs"> {
  /** @default "metadata" */
  readonly role?: Role | undefined;
}

/** Leave to send one request. */
export interface RateGrant extends Disposable {
  readonly isGranted: true;
  /** The host or group whose budget was drawn on. */
  readonly host: string;
  readonly role: Role;
  readonly waitedMs: number;
  /** Frees its slots. Needed only where `max_concurrent` or `max_inflight` is set. */
  release(): void;
}

/** Leave to send one request, which counts as being written now until it says when it was. */
export interface SendingGrant extends RateGrant {
  /** The request's headers are being written, or have been: this is the instant that counts from now on. */
  written(): void;
}

export type AnsweredRequest = Pick<AcquireRequest, "host" | "role" | "path">;

export interface LimiterSnapshot {
  readonly inFlight: number;
  readonly waiting: number;
  readonly keys: readonly KeySnapshot[];
}

/**
 * Limits how often hosts are called: never more than N in any window of T, first come first served.
 *
 * With `acquire` a grant counts as sent when it is given; with `run` a request counts until it has an answer, so that
 * the law also holds where the server stands, however slow the way there. Where `max_concurrent` or `max_inflight` is set, a grant also holds a slot until
 * `release()`, or the end of its `using` block; neither is set unless you set it.
 */
export class RateLimiter {
  readonly #gate: Gate;
  readonly #time: Time;

  /** `limits` has the shape of `ratelimits.yaml`. Throws a ConfigError that lists everything wrong with it. */
  constructor(limits: RatelimitsOptions = {}, { time = systemTime, listener }: RateLimiterOptions = {}) {
    this.#time = time;
    this.#gate = new Gate(inMemory(limits), time, { listener });
  }

  /**
   * Waits for its turn. Rejects at once with RateLimitExceeded when that would take longer than `maxWaitMs`, or than
   * the policy's `max_delay_ms`; with BusyError when slots stay taken for `maxWaitMs`; with the signal's reason when
   * aborted.
   */
  async acquire(request: AcquireRequest): Promise<RateGrant> {
    return this.#gate.enter(entryOf(request, "granted"));
  }

  /**
   * Waits for its turn, calls `send`, and answers with what it does. Rejects as `acquire` does, or as `send` does.
   *
   * The request counts as being written until `send` has settled, or has called `grant.written()`. A server cannot have
   * seen it later than that, so that never more than N reach it in any window, cold connections and stalls included;
   * the price is that a window also takes as long as an answer.
   */
  async run<Result>(request: AcquireRequest, send: (grant: SendingGrant) => Promise<Result>): Promise<Result> {
    const grant = await this.#gate.enter(entryOf(request, "written"));
    // Not `using`: it costs five times a try on today's Node, for the same.
    try {
      return await send(grant);
    } finally {
      grant.release();
    }
  }

  /** Never waits and never throws a refusal: `isGranted` tells which it is. */
  tryAcquire(request: Omit<AcquireRequest, "maxWaitMs" | "signal">): RateGrant | Refusal {
    return this.#gate.tryEnter(entryOf(request, "granted", 0));
  }

  /** The server said 429 although the windows were kept: the key's guard widens, and its pace may slow down. */
  record429({ host, role = "metadata", path }: AnsweredRequest): void {
    this.#gate.record(host, role, true, path);
  }

  recordSuccess({ host, role = "metadata", path }: AnsweredRequest): void {
    this.#gate.record(host, role, false, path);
  }

  /** Ends the counting windows that are over. Not needed while answers are recorded: they end them too. */
  tickAimd(): void {
    this.#gate.tick();
  }

  /**
   * Goes on under other limits: what was sent still counts, and whoever waits stays in line.
   * Throws a ConfigError and changes nothing when they make no sense.
   */
  reload(limits: RatelimitsOptions): void {
    this.#gate.reload(inMemory(limits));
  }

  snapshot(): LimiterSnapshot {
    const nowUs = this.#time.monotonicUs();
    const keys = Array.from(this.#gate.roleBudgets(), roleBudget => keySnapshotOf(roleBudget, this.#gate, nowUs));
    return { inFlight: this.#gate.inFlight, waiting: this.#gate.waiting, keys };
  }
}

/** Shared state is the hub's: a limiter that was told to share and did not would be worse than none. */
function inMemory(options: RatelimitsOptions): LimitPolicies {
  const limits = limitPoliciesFrom(options, "RateLimiter");
  if (options.backend?.kind !== undefined && options.backend.kind !== "memory") {
    const message = `a RateLimiter keeps its state in memory, it cannot use ${JSON.stringify(options.backend.kind)}`;
    throw new ConfigError([{ where: "RateLimiter", path: "backend.kind", message }]);
  }
  return limits;
}

function entryOf(request: AcquireRequest, stamp: "granted" | "written", maxWaitMs = request.maxWaitMs): EntryRequest {
  const { host, role = "metadata", path, method, weight, signal } = request;
  return { host, role, path, method, weight, signal, maxWaitMs, stamp };
}
