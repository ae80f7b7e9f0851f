import { CALL_OUTCOMES, type CallOutcome, callOutcomeOf } from "../call-outcome.ts";
import type { EventOf } from "../events.ts";
import { Distribution } from "./distribution.ts";
import type { DelaySummary, HostSummary } from "./run-summary.ts";

/** Counts the calls of one role to one host. */
export class HostRow {
  readonly host: string;
  readonly role: string;
  readonly outcomes: Record<CallOutcome, number>;
  readonly delay = new Distribution();
  calls = 0;
  attempts = 0;
  answers429 = 0;
  answers503 = 0;
  slotWaitMs = 0;

  constructor(host: string, role: string) {
    this.host = host;
    this.role = role;
    this.outcomes = noOutcomes();
  }

  countCall(event: EventOf<"http_request">): void {
    this.calls += 1;
    this.outcomes[callOutcomeOf(event)] += 1;
    if (event.attempts === 0) return;
    this.attempts += event.attempts;
    this.delay.add(event.rate_delay_ms);
    this.slotWaitMs += event.rate_concurrency_wait_ms;
    // A response that is a failure is counted from its breaker_failure event, one per attempt.
    if (event.breaker_recorded !== "failure" && !event.from_cache) this.countThrottle(event.status);
  }

  countThrottle(status: number | undefined): void {
    if (status === 429) this.answers429 += 1;
    else if (status === 503) this.answers503 += 1;
  }

  summary(): HostSummary {
    const { host, role, calls, outcomes, attempts, answers429, answers503, slotWaitMs } = this;
    const delayMs = delaySummary(this.delay);
    return { host, role, calls, outcomes: { ...outcomes }, attempts, answers429, answers503, delayMs, slotWaitMs };
  }
}

export function noOutcomes(): Record<CallOutcome, number> {
  return Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, 0])) as Record<CallOutcome, number>;
}

export function delaySummary(delay: Distribution): DelaySummary {
  const { count, max, sum, isExact } = delay;
  return { count, p50: delay.percentile(0.5), p95: delay.percentile(0.95), max, total: sum, isExact };
}
