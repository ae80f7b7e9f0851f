import { commonName } from "../../policy/partition-name.ts";
import { cooldownKey, type OpenReasonKind, REASONS } from "../breaker-openings.ts";
import type { EventOf, TelemetryEvent } from "../events.ts";
import type { CountedMetric, MetricLabels, MetricOf } from "../metrics.ts";
import { Distribution } from "./distribution.ts";
import { Mean } from "./mean.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";
import type { RunSummary } from "./run-summary.ts";

/** Bounds the memory; further hosts are counted together. */
const HOSTS_MAX = 20_000;

/** The last cooldown of an owner. It is kept until the first call after it has ended. Times are in epoch ms. */
interface LastCooldown {
  /** When it was set, or last extended. */
  readonly sinceMs: number;
  readonly endMs: number;
}

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
  #hasAttempts = false;
  /** By `cooldownKey`, until the first call after it. */
  readonly #cooldowns = new Map<string, LastCooldown>();
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
        if (this.#cooldowns.size < HOSTS_MAX || this.#cooldowns.has(key))
          this.#cooldowns.set(key, { sinceMs: event.ts, endMs: event.until });
        return;
      }
      case "breaker_cooldown_ended":
        if (this.#cooldowns.delete(cooldownKey(event)) && event.by === "success") this.#countTrial(true);
        return;
      case "http_attempt":
        this.#takeAttempt(event);
        return;
      case "breaker_success":
      case "breaker_failure":
        // Without a hub, nothing says when the call was sent.
        if (!this.#hasAttempts) this.#takeResult([event.host], event, event.ts, event.event_type === "breaker_success");
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

  #takeAttempt(event: EventOf<"http_attempt">): void {
    this.#hasAttempts = true;
    const { breaker_recorded: recorded, ts, elapsed_ms } = event;
    if (recorded !== "success" && recorded !== "failure") return;
    this.#takeResult(cooldownOwners(event), event, ts - elapsed_ms, recorded === "success");
  }

  /** A request that was sent before a cooldown began is not the first call after it, however late its result comes. */
  #takeResult(
    owners: readonly string[],
    { role, ts }: Pick<EventOf<"http_attempt">, "role" | "ts">,
    sentMs: number,
    hasSucceeded: boolean,
  ): void {
    const keys = new Set(owners.flatMap(host => [cooldownKey({ host }), cooldownKey({ host, role })]));
    const ended = [...keys].filter(key => {
      const cooldown = this.#cooldowns.get(key);
      return cooldown !== undefined && cooldown.endMs <= ts && cooldown.sinceMs < sentMs;
    });
    for (const key of ended) this.#cooldowns.delete(key);
    if (ended.length > 0) this.#countTrial(hasSucceeded);
  }

  #countTrial(hasSucceeded: boolean): void {
    if (hasSucceeded) this.#succeeded += 1;
    else this.#failed += 1;
  }
}

/** The names of the cooldowns that can hold back an attempt. */
function cooldownOwners(event: EventOf<"http_attempt">): readonly string[] {
  const { host, key, partition, resolver, cooldown_key } = event;
  // Files of earlier versions do not name the owner; for most attempts it is one of these.
  const owners =
    cooldown_key === undefined
      ? [key, ...(partition === undefined ? [] : [`${host}#${partition}`])]
      : // An order of an operator holds for all partitions.
        [cooldown_key, commonName(cooldown_key)];
  return [host, ...owners, ...(resolver === undefined ? [] : [`resolver ${resolver}`])];
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
