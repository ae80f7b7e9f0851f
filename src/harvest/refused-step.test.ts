import assert from "node:assert/strict";
import { test } from "node:test";
import { BreakerOpenError, BusyError, type OpenCircuit, RateLimitExceeded } from "../errors.ts";
import type { PipelineTask } from "./pipeline-task.ts";
import { decideRefusedStep, LONG_WAIT_MS } from "./refused-step.ts";
import { Resolution } from "./resolution.ts";
import { arxiv } from "./resolvers/arxiv.ts";
import { crossref } from "./resolvers/crossref.ts";
import type { Resolver } from "./resolvers/resolver.ts";

const CALL = { host: "a.example", role: "metadata" };
const CLOCK = { nowUs: 1_000_000, wallMs: Date.UTC(2026, 10, 16) };

function taskOf(resolver: Resolver): PipelineTask {
  const work = { id: 1, key: "arxiv:2401.00001", ids: { doi: "10.1/a", arxiv: "2401.00001" } };
  const resolution = new Resolution(work, {
    resolvers: [resolver],
    order: () => [resolver],
    pageReader: undefined,
    archive: undefined,
    formats: ["pdf"],
    maxBreakerWaitMs: 0,
    random: () => 0.5,
  });
  const next = resolution.next(0);
  assert.ok("pending" in next);
  return { resolution, pending: next.pending };
}

function rateLimited(retryAfterMs: number): RateLimitExceeded {
  const constraint = { kind: "window", owner: "a.example", limit: "10/HOUR" } as const;
  return new RateLimitExceeded({ ...CALL, constraint, retryAfterMs, maxWaitMs: 0 });
}

function open(
  cooldownRemainingMs: number,
  isTrialRunning = false,
  reason: BreakerOpenError["reason"] = "failures",
): BreakerOpenError {
  const constraint = { kind: "breaker", owner: "a.example", limit: "circuit" } as const;
  return new BreakerOpenError({ ...CALL, constraint, reason, cooldownRemainingMs, isTrialRunning });
}

test("a step waits for a slot while every slot is in use or a probe is in flight", () => {
  const busy = new BusyError({
    ...CALL,
    constraint: { kind: "concurrency", owner: "a.example", limit: "max_concurrent 1" },
    maxWaitMs: 0,
  });
  for (const error of [busy, open(45_000, true)])
    assert.deepEqual(decideRefusedStep(taskOf(crossref), error, CLOCK), { kind: "wait-for-slot", untilUs: 1_250_000 });
});

test("a step is tried before the time of the refusal if a process before it may have ended", () => {
  const wait = { kind: "wait", untilUs: 1_400_000 };
  assert.deepEqual(decideRefusedStep(taskOf(crossref), rateLimited(3000), CLOCK, 400), wait);
  assert.deepEqual(decideRefusedStep(taskOf(crossref), rateLimited(400), CLOCK, 3000), wait);
});

test("a step waits for a short rate limit in its queue, and lets the work try others while a circuit is open", () => {
  assert.deepEqual(decideRefusedStep(taskOf(crossref), rateLimited(LONG_WAIT_MS), CLOCK), {
    kind: "wait",
    untilUs: 31_000_000,
  });
  assert.deepEqual(decideRefusedStep(taskOf(crossref), open(60_000), CLOCK), {
    kind: "circuit-open",
    untilUs: 61_000_000,
    message: "a.example (consecutive failures)",
  });
});

test("the message about an open circuit names its owner, which may be a resolver, and why it is open", () => {
  const messageOf = (details: Partial<OpenCircuit>) => {
    const constraint = { kind: "breaker", owner: "resolver landing_page", limit: "circuit" } as const;
    const circuit = { reason: "failures", cooldownRemainingMs: 1000, ...details } as const;
    const decision = decideRefusedStep(
      taskOf(crossref),
      new BreakerOpenError({ ...CALL, constraint, ...circuit }),
      CLOCK,
    );
    return decision.kind === "circuit-open" ? decision.message : decision.kind;
  };
  assert.deepEqual(
    [
      messageOf({ lastFailure: "HTTP 503" }),
      messageOf({ reason: "slow-calls" }),
      messageOf({ reason: "cli-open:maintenance until 5" }),
    ],
    [
      "resolver landing_page (consecutive failures, the last: HTTP 503)",
      "resolver landing_page (too many slow calls within the rolling window)",
      "resolver landing_page (opened by an operator: maintenance until 5)",
    ],
  );
});

test("a quota that is spent for long is skipped, except at the repository of the work", () => {
  const message = "10/HOUR of a.example is spent, next slot at 2026-11-16T00:01:00.000Z";
  assert.deepEqual(decideRefusedStep(taskOf(crossref), rateLimited(60_000), CLOCK), { kind: "skip", message });
  assert.deepEqual(decideRefusedStep(taskOf(arxiv), rateLimited(60_000), CLOCK), {
    kind: "quota-spent",
    untilUs: 61_000_000,
    message,
  });
});

test("a server that announces a long Retry-After has no quota left, and the message names its host", () => {
  const message = "a.example is in cooldown (its Retry-After), next slot at 2026-11-16T00:01:00.000Z";
  const refused = open(60_000, false, "retry-after");
  assert.deepEqual(decideRefusedStep(taskOf(crossref), refused, CLOCK), { kind: "skip", message });
});
