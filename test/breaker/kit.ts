/** A registry on a clock that only the test advances, for the tests of the breakers. */

import type { BreakerEvent } from "../../src/breaker/breaker-events.ts";
import type { AllowRequest } from "../../src/breaker/breakers.ts";
import { outcomeOfResponse } from "../../src/core/breaker/classify.ts";
import { BreakerRegistry } from "../../src/gate/breaker-registry.ts";
import type { BreakersOptions } from "../../src/policy/breaker-schema.ts";
import { FakeTime } from "../../src/testing/fake-time.ts";

export const host = "api.example.org";
/** Without rolling window and adaptive resets, so that only the circuits act. */
export const plain: BreakersOptions = {
  defaults: { fail_max: 5, reset_timeout_s: 60 },
  advanced: { rolling_window: { enabled: false }, adaptive_reset: { enabled: false } },
};

export function setUp(options: BreakersOptions = plain, random: () => number = () => 0) {
  const time = new FakeTime();
  const events: BreakerEvent[] = [];
  const registry = new BreakerRegistry(options, { time, random, listener: event => events.push(event) });
  const answer = (status: number, request: Partial<AllowRequest> = {}, retryAfterMs?: number) =>
    registry
      .allow({ host, ...request })
      .report({ outcome: outcomeOfResponse({ status, retryAfterMs }), status, retryAfterMs });
  const answers = (status: number, times: number, request: Partial<AllowRequest> = {}) => {
    for (let call = 0; call < times; call += 1) answer(status, request);
  };
  const isAllowed = (request: Partial<AllowRequest> = {}) => registry.check({ host, ...request }) === undefined;
  return { time, events, registry, answer, answers, isAllowed };
}
