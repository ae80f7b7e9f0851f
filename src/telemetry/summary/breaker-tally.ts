import { cooldownKey, type OpenReasonKind, REASONS } from "../breaker-openings.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import type { CountedMetric, MetricLabels, MetricOf } from "../metrics.ts";
import { Distribution } from "./distribution.ts";
import { Mean } from "./mean.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";
import type { RunSummary } from "./run-summary.ts";

/** Bounds the memory; further hosts are counted together. */
const HOSTS_MAX = 20_000;

/** Counts openings, refusals by breakers, and the first calls after an opening. */
export class BreakerTally {
  readonly #opens = Object.fromEntries(REASONS.map(reason => [reason, 0])) as Record<OpenReasonKind, number>;
  /** Durations of requests that were sent, by host. */
  readonly #durationMs = new Map<string, Mean>();
  readonly #overallDurationMs = new Mean();
  readonly #opensByHost = new Map<string, { opens: number }>();
  #denied = 0;
  /** Remaining open time at each call that a breaker refused, by host. */
  readonly #deniedCalls = new Map<string, Distribution>();
  /** The same from `breaker_before_call`, used when breakers run without a hub and there are no calls. */
  readonly #deniedChecks = new Map<string, Distribution>();
  #hasCalls = false;
  /** End of the last cooldown in epoch ms, by `cooldownKey`, until the first call after it. */
  readonly #cooldownEndMs = new Map<string, number>();
  #succeeded = 0;
  #failed = 0;

  count(name: CountedMetric, { reason, host }: MetricLabels): void {
    if (name === "breaker_open_total") {
      this.#opens[reason as OpenReasonKind] += 1;
      entryOf(this.#opensByHost, host, () => ({ opens: 0 })).opens += 1;
    } else if (name === "breaker_denied_total") this.#denied += 1;
    else if (name === "http_requests_total") this.#hasCalls = true;
  }

  observe(name: MetricOf<"histogram">, ms: number, { host }: MetricLabels): void {
    if (name !== "http_attempt_ms") return;
    this.#overallDurationMs.add(ms);
    entryOf(this.#durationMs, host, () => new Mean()).add(ms);
  }

  /** Counts what no metric contains: the first calls after an opening, and the remaining time of each refusal. */
  take(event: TelemetryEvent): void {
    switch (event.event_type) {
      case "http_request":
        if (event.error === "DOCSTOKG_BREAKER_OPEN" && !event.background)
          deniedAt(this.#deniedCalls, event.final_host).add(event.breaker_open_remaining_ms);
        return;
      case "breaker_before_call":
        if (!event.allowed) deniedAt(this.#deniedChecks, event.host).add(event.remaining_ms);
        return;
      case "breaker_state_change":
        if (event.old === "half_open" && event.from_peer !== true) this.#countTrial(event.new === "closed");
        return;
      case "breaker_cooldown_set": {
        const key = cooldownKey(event);
        if (this.#cooldownEndMs.size < HOSTS_MAX || this.#cooldownEndMs.has(key))
          this.#cooldownEndMs.set(key, event.until);
        return;
      }
      case "breaker_cooldown_ended":
        if (this.#cooldownEndMs.delete(cooldownKey(event)) && event.by === "success") this.#countTrial(true);
        return;
      case "breaker_success":
      case "breaker_failure":
        this.#firstAfterCooldown(event);
    }
  }

  summary(durationMs: number): RunSummary["breaker"] {
    const opens = REASONS.reduce((sum, reason) => sum + this.#opens[reason], 0);
    const refused = this.#hasCalls ? this.#deniedCalls : this.#deniedChecks;
    const perHour = (count: number) => (durationMs > 0 ? (count * 3_600_000) / durationMs : 0);
    const hosts = [...new Set([...this.#opensByHost.keys(), ...refused.keys()])].map(host => {
      const remaining = refused.get(host);
      const hostOpens = this.#opensByHost.get(host)?.opens ?? 0;
      const meanMs = this.#durationMs.get(host)?.value ?? this.#overallDurationMs.value ?? 0;
      return {
        host,
        opens: hostOpens,
        opensPerHour: perHour(hostOpens),
        denied: remaining?.count ?? 0,
        timeSavedMs: remaining?.sumUpTo(meanMs) ?? 0,
      };
    });
    const deniedSum = hosts.reduce((sum, row) => sum + row.denied, 0);
    const timeSavedMs = hosts.reduce((sum, row) => sum + row.timeSavedMs, 0);
    const tried = this.#succeeded + this.#failed;
    return {
      opens,
      opensPerHour: perHour(opens),
      opensByReason: { ...this.#opens },
      denied: this.#hasCalls ? this.#denied : deniedSum,
      timeSavedMs,
      afterOpen: {
        succeeded: this.#succeeded,
        failed: this.#failed,
        successRate: tried === 0 ? 0 : this.#succeeded / tried,
      },
      hosts: hosts.sort((a, b) => b.opens - a.opens || b.denied - a.denied || (a.host < b.host ? -1 : 1)),
    };
  }

  #firstAfterCooldown({ event_type, host, role, ts }: EventOf<"breaker_success"> | EventOf<"breaker_failure">): void {
    // A request that was in flight when a cooldown began is not the first call after it.
    const ended = [cooldownKey({ host }), cooldownKey({ host, role })].filter(
      key => (this.#cooldownEndMs.get(key) ?? Number.POSITIVE_INFINITY) <= ts,
    );
    for (const key of ended) this.#cooldownEndMs.delete(key);
    if (ended.length > 0) this.#countTrial(event_type === "breaker_success");
  }

  #countTrial(hasSucceeded: boolean): void {
    if (hasSucceeded) this.#succeeded += 1;
    else this.#failed += 1;
  }
}

function deniedAt(refused: Map<string, Distribution>, host: string): Distribution {
  return entryOf(refused, host, () => new Distribution());
}

function entryOf<Value>(values: Map<string, Value>, host: string, make: () => Value): Value {
  const name = values.has(host) || values.size < HOSTS_MAX ? host : OTHER_HOSTS;
  const known = values.get(name) ?? make();
  values.set(name, known);
  return known;
}
