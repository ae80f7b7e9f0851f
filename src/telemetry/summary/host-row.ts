import { CALL_OUTCOMES, type CallOutcome } from "../call-outcome.ts";
import { Distribution } from "./distribution.ts";
import type { DelaySummary, HostSummary } from "./run-summary.ts";

/** The counts of one role of one host. */
export class HostRow {
  readonly host: string;
  readonly role: string;
  readonly outcomes = noOutcomes();
  readonly delayMs = new Distribution();
  refreshes = 0;
  attempts = 0;
  connectFailures = 0;
  answers429 = 0;
  answers503 = 0;
  slotWaitMs = 0;

  constructor(host: string, role: string) {
    this.host = host;
    this.role = role;
  }

  get calls(): number {
    return CALL_OUTCOMES.reduce((sum, outcome) => sum + this.outcomes[outcome], 0);
  }

  summary(): HostSummary {
    const { host, role, calls, outcomes, refreshes, attempts, connectFailures, answers429, answers503 } = this;
    return {
      host,
      role,
      calls,
      outcomes: { ...outcomes },
      refreshes,
      attempts,
      connectFailures,
      answers429,
      answers503,
      delayMs: delaySummary(this.delayMs),
      slotWaitMs: this.slotWaitMs,
    };
  }
}

export function noOutcomes(): Record<CallOutcome, number> {
  return Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, 0])) as Record<CallOutcome, number>;
}

export function delaySummary(delay: Distribution): DelaySummary {
  const { count, max, sum, isExact } = delay;
  return { count, p50: delay.percentile(0.5), p95: delay.percentile(0.95), max, total: sum, isExact };
}
