import { CALL_OUTCOMES, type CallOutcome, callOutcomeOf } from "../call-outcome.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import { Distribution } from "./distribution.ts";
import type { DelaySummary, HostSummary, KeySummary } from "./run-summary.ts";

/** Rows beyond these are taken together. */
const ROWS_MAX = 20_000;
const OTHERS = "(other hosts)";

/** The calls of one role to one host. */
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
    // Those that a breaker counts as failures are told by it, for each attempt.
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

/** The budget of one role at one host or group. */
class KeyRow {
  readonly key: string;
  readonly role: string;
  acquired = 0;
  blocked = 0;
  aborted = 0;
  headSkipped = 0;
  multiplier = 1;
  leastMultiplier = 1;

  constructor(key: string, role: string) {
    this.key = key;
    this.role = role;
  }

  countAcquire({ outcome, weight }: EventOf<"ratelimit.acquire">): void {
    if (outcome === "refused") this.blocked += 1;
    else if (outcome === "aborted") this.aborted += 1;
    else if (weight > 0) this.acquired += 1;
  }

  setMultiplier(multiplier: number): void {
    this.multiplier = multiplier;
    this.leastMultiplier = Math.min(this.leastMultiplier, multiplier);
  }

  summary(): KeySummary {
    const { key, role, acquired, blocked, aborted, headSkipped, multiplier, leastMultiplier } = this;
    return { key, role, acquired, blocked, aborted, headSkipped, multiplier, leastMultiplier };
  }
}

/** Everything that is told by host and role. */
export class HostTally {
  readonly #hosts = new Map<string, HostRow>();
  readonly #keys = new Map<string, KeyRow>();

  take(event: TelemetryEvent): void {
    switch (event.event_type) {
      case "http_request":
        this.#host(event.host, event.role).countCall(event);
        return;
      case "breaker_failure":
        this.#host(event.host, event.role).countThrottle(event.status);
        return;
      case "ratelimit.acquire":
        this.#key(event.key, event.role).countAcquire(event);
        return;
      case "rate_head_skipped":
        this.#key(event.host, event.role).headSkipped += 1;
        return;
      case "aimd_adjust":
        if (typeof event.new === "number") this.#key(event.host, event.role).setMultiplier(event.new);
    }
  }

  hosts(): readonly HostRow[] {
    return [...this.#hosts.values()];
  }

  keySummaries(): readonly KeySummary[] {
    return Array.from(this.#keys.values(), lane => lane.summary());
  }

  #host(host: string, role: string): HostRow {
    return rowOf(this.#hosts, host, role, (name, of) => new HostRow(name, of));
  }

  #key(key: string, role: string): KeyRow {
    return rowOf(this.#keys, key, role, (name, of) => new KeyRow(name, of));
  }
}

function rowOf<Row>(
  rows: Map<string, Row>,
  name: string,
  role: string,
  make: (name: string, role: string) => Row,
): Row {
  const key = `${name} ${role}`;
  const known = rows.get(key);
  if (known !== undefined) return known;
  if (rows.size >= ROWS_MAX && name !== OTHERS) return rowOf(rows, OTHERS, role, make);
  const made = make(name, role);
  rows.set(key, made);
  return made;
}

export function noOutcomes(): Record<CallOutcome, number> {
  return Object.fromEntries(CALL_OUTCOMES.map(outcome => [outcome, 0])) as Record<CallOutcome, number>;
}

export function delaySummary(delay: Distribution): DelaySummary {
  const { count, max, sum, isExact } = delay;
  return { count, p50: delay.percentile(0.5), p95: delay.percentile(0.95), max, total: sum, isExact };
}
