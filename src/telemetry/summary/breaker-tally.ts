import { type BreakerOpening, BreakerOpenings, type OpenReasonKind, REASONS } from "../breaker-openings.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import { Distribution } from "./distribution.ts";
import { Latency } from "./latency.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";
import type { RunSummary } from "./run-summary.ts";

/** Bounds the memory; further hosts are counted together. */
const HOSTS_MAX = 20_000;

/** Counts openings, refusals by breakers, and the first calls after an opening. */
export class BreakerTally {
  readonly #openings = new BreakerOpenings();
  readonly #opens = Object.fromEntries(REASONS.map(reason => [reason, 0])) as Record<OpenReasonKind, number>;
  readonly #latencies = new Map<string, Latency>();
  readonly #overall = new Latency();
  /** Remaining open time at each call that a breaker refused, by host. */
  readonly #deniedCalls = new Map<string, Distribution>();
  /** The same from `breaker_before_call`, used when breakers run without a hub and there are no calls. */
  readonly #deniedChecks = new Map<string, Distribution>();
  #hasCalls = false;
  /** End of the last cooldown in epoch ms, by host, until the first call after it. */
  readonly #cooldownEnds = new Map<string, number>();
  #succeeded = 0;
  #failed = 0;

  take(event: TelemetryEvent): BreakerOpening | undefined {
    const opening = this.#openings.of(event);
    if (opening !== undefined) this.#opens[opening.reason] += 1;
    switch (event.event_type) {
      case "http_request":
        this.#call(event);
        break;
      case "http_retry":
        for (const latency of this.#latenciesOf(event.host)) latency.addRetryDelay(event.delay_ms);
        break;
      case "breaker_before_call":
        if (!event.allowed) deniedAt(this.#deniedChecks, event.host).add(event.remaining_ms);
        break;
      case "breaker_state_change":
        if (event.old === "half_open") this.#countTrial(event.new === "closed");
        break;
      case "breaker_cooldown_set":
        if (this.#cooldownEnds.size < HOSTS_MAX || this.#cooldownEnds.has(event.host))
          this.#cooldownEnds.set(event.host, event.until);
        break;
      case "breaker_cooldown_ended":
        if (this.#cooldownEnds.delete(event.host) && event.by === "success") this.#countTrial(true);
        break;
      case "breaker_success":
      case "breaker_failure":
        this.#firstAfterCooldown(event);
    }
    return opening;
  }

  summary(durationMs: number): RunSummary["breaker"] {
    const opens = REASONS.reduce((sum, reason) => sum + this.#opens[reason], 0);
    const refused = this.#hasCalls ? this.#deniedCalls : this.#deniedChecks;
    let denied = 0;
    let timeSavedMs = 0;
    for (const [host, remaining] of refused) {
      denied += remaining.count;
      timeSavedMs += remaining.sumUpTo(this.#latencies.get(host)?.meanMs ?? this.#overall.meanMs ?? 0);
    }
    const tried = this.#succeeded + this.#failed;
    return {
      opens,
      opensPerHour: durationMs > 0 ? (opens * 3_600_000) / durationMs : 0,
      opensByReason: { ...this.#opens },
      denied,
      timeSavedMs,
      afterOpen: {
        succeeded: this.#succeeded,
        failed: this.#failed,
        successRate: tried === 0 ? 0 : this.#succeeded / tried,
      },
    };
  }

  #call(event: EventOf<"http_request">): void {
    this.#hasCalls = true;
    if (event.attempts > 0) for (const latency of this.#latenciesOf(event.host)) latency.addCall(event);
    if (event.error === "DOCSTOKG_BREAKER_OPEN")
      deniedAt(this.#deniedCalls, event.host).add(event.breaker_open_remaining_ms);
  }

  #firstAfterCooldown({ event_type, host, ts }: EventOf<"breaker_success"> | EventOf<"breaker_failure">): void {
    const untilMs = this.#cooldownEnds.get(host);
    // A request that was in flight when the cooldown began is not the first call after it.
    if (untilMs === undefined || ts < untilMs) return;
    this.#cooldownEnds.delete(host);
    this.#countTrial(event_type === "breaker_success");
  }

  #countTrial(hasSucceeded: boolean): void {
    if (hasSucceeded) this.#succeeded += 1;
    else this.#failed += 1;
  }

  #latenciesOf(host: string): readonly Latency[] {
    const known = this.#latencies.get(host);
    if (known !== undefined) return [known, this.#overall];
    if (this.#latencies.size >= HOSTS_MAX) return [this.#overall];
    const made = new Latency();
    this.#latencies.set(host, made);
    return [made, this.#overall];
  }
}

function deniedAt(refused: Map<string, Distribution>, host: string): Distribution {
  const name = refused.has(host) || refused.size < HOSTS_MAX ? host : OTHER_HOSTS;
  const known = refused.get(name) ?? new Distribution();
  refused.set(name, known);
  return known;
}
