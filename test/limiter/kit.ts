/** Gates and limiters on virtual time, for tests of the limiter and the gate. */
import assert from "node:assert/strict";
import { Gate } from "../../src/gate/gate.ts";
import { RateLimiter } from "../../src/gate/rate-limiter.ts";
import type { EntryRequest } from "../../src/limiter/entry-request.ts";
import type { KeySnapshot } from "../../src/limiter/key-snapshot.ts";
import type { LimiterEvent } from "../../src/limiter/limiter-events.ts";
import type { AcquireRequest } from "../../src/limiter.ts";
import { limitPoliciesFrom } from "../../src/policy/limits.ts";
import type { RatelimitsOptions } from "../../src/policy/ratelimit-schema.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";

export const host = "api.example.org";
export const role = "metadata";

/** A gate, and requests to `host` that record when they were granted. */
export function gateOf(limits: RatelimitsOptions, listener?: (event: LimiterEvent) => void) {
  const time = new FakeTime();
  const gate = new Gate(limitPoliciesFrom(limits, "test"), time, listener === undefined ? {} : { listener });
  const log: (number | string)[] = [];
  /** Waits as long as it takes, releases at once, and logs the time of the grant in ms, or the name of the error. */
  const pass = (entry: Partial<EntryRequest> = {}) =>
    (async () => gate.enter({ host, role, maxWaitMs: Number.POSITIVE_INFINITY, ...entry }))().then(
      grant => {
        grant.release();
        log.push(time.monotonicUs() / 1000);
        return grant;
      },
      error => {
        log.push(error.name);
        return error;
      },
    );
  /** The grant of a request that does not have to wait. */
  const enterNow = (entry: Partial<EntryRequest> = {}) => {
    const grant = gate.enter({ host, role, maxWaitMs: 0, ...entry });
    assert.ok(!(grant instanceof Promise));
    return grant;
  };
  /** The refusal of a request that cannot start now. */
  const refusal = (entry: Partial<EntryRequest> = {}) => {
    const refused = gate.check({ host, role, ...entry });
    assert.ok(refused, "refused");
    return refused;
  };
  return { gate, time, log, pass, enterNow, refusal };
}

/** A limiter, and requests to `host` that record when they were granted. */
export function limiterOf(limits: RatelimitsOptions, time: FakeTime = new FakeTime()) {
  const events: LimiterEvent[] = [];
  const limiter = new RateLimiter(limits, { time, listener: event => events.push(event) });
  const nowMs = () => time.monotonicUs() / 1000;
  const log: (number | string)[] = [];
  /** Acquires in the background, and logs the time of the grant in ms, or the name of the error. */
  const start = (request: Partial<AcquireRequest> = {}) =>
    limiter
      .acquire({ host, ...request })
      .then(grant => {
        log.push(nowMs());
        return grant;
      })
      .catch(error => {
        log.push(error.name);
        return error;
      });
  /** Calls so many hosts once each; every new key may evict old ones. */
  const visit = (count: number) => {
    for (let call = 0; call < count; call += 1) {
      const grant = limiter.tryAcquire({ host: `h${time.monotonicUs()}x${call}.example` });
      assert.ok(grant);
      grant.release();
    }
  };
  return { limiter, time, events, log, start, nowMs, visit };
}

/** Limits of the metadata role without a guard, for every host. */
export function metadataLimits(
  options: NonNullable<NonNullable<RatelimitsOptions["defaults"]>["metadata"]>,
): RatelimitsOptions {
  return { defaults: { metadata: { guard_ms: 0, ...options } } };
}

/** The same limits for the roles metadata and artifact, without a guard, for every host. */
export function roleLimits(options: object, more: object = {}): RatelimitsOptions {
  return {
    defaults: { metadata: { guard_ms: 0, ...options }, artifact: { guard_ms: 0, ...options } },
    ...more,
  };
}

/** A `total` for `host` above two roles, without a guard. */
export function totalLimits(total: object, roles: object = { rates: "99/s" }): RatelimitsOptions {
  return roleLimits(roles, { hosts: { [host]: { total: { guard_ms: 0, ...total } } } });
}

export function keyOf(limiter: RateLimiter, ofRole = "metadata", name = host): KeySnapshot {
  const found = limiter.snapshot().keys.find(entry => entry.key === name && entry.role === ofRole);
  assert.ok(found, `${name} ${ofRole} has a key`);
  return found;
}

/** Whether the limiter has a key of this host, which it may have evicted. */
export function hasKey(limiter: RateLimiter, name = host): boolean {
  return limiter.snapshot().keys.some(entry => entry.key === name);
}

/** How many of so many requests are granted at once. */
export function burst(limiter: RateLimiter, count: number, name = host): number {
  return Array.from({ length: count }, () => limiter.tryAcquire({ host: name })).filter(grant => grant !== undefined)
    .length;
}
