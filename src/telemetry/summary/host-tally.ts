import type { CallOutcome } from "../call-outcome.ts";
import type { CountedMetric, MetricLabels, MetricOf } from "../metrics.ts";
import { HostRow } from "./host-row.ts";
import { KeyRow } from "./key-row.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";

/** Further hosts and keys are counted in one row for each role. */
const ROWS_MAX = 20_000;

/** Records the counts by host and role, and by key and role. */
export class HostTally {
  readonly #hosts = new Map<string, HostRow>();
  readonly #keys = new Map<string, KeyRow>();

  count(name: CountedMetric, { host, role, outcome }: MetricLabels): void {
    switch (name) {
      case "http_requests_total":
        this.#host(host, role).outcomes[outcome as CallOutcome] += 1;
        return;
      case "http_refreshes_total":
        this.#host(host, role).refreshes += 1;
        return;
      case "http_attempts_total":
        this.#host(host, role).attempts += 1;
        return;
      case "http_connect_failures_total":
        this.#host(host, role).connectFailures += 1;
        return;
      case "http_429_total":
        this.#host(host, role).answers429 += 1;
        return;
      case "http_503_total":
        this.#host(host, role).answers503 += 1;
        return;
      case "rate_acquired_total":
        this.#key(host, role).acquired += 1;
        return;
      case "rate_blocked_total":
        this.#key(host, role).blocked += 1;
        return;
      case "rate_aborted_total":
        this.#key(host, role).aborted += 1;
        return;
      case "rate_head_skipped_total":
        this.#key(host, role).headSkipped += 1;
    }
  }

  observe(name: MetricOf<"histogram">, ms: number, { host, role }: MetricLabels): void {
    if (name === "rate_delay_ms") this.#host(host, role).delayMs.add(ms);
    else if (name === "rate_concurrency_wait_ms") this.#host(host, role).slotWaitMs += ms;
  }

  setMultiplier(key: string, role: string, multiplier: number): void {
    this.#key(key, role).setMultiplier(multiplier);
  }

  hosts(): Iterable<HostRow> {
    return this.#hosts.values();
  }

  keys(): Iterable<KeyRow> {
    return this.#keys.values();
  }

  #host(host: string, role: string): HostRow {
    return rowOf(this.#hosts, host, role, (...identity) => new HostRow(...identity));
  }

  #key(key: string, role: string): KeyRow {
    return rowOf(this.#keys, key, role, (...identity) => new KeyRow(...identity));
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
  if (rows.size >= ROWS_MAX && name !== OTHER_HOSTS) return rowOf(rows, OTHER_HOSTS, role, make);
  const made = make(name, role);
  rows.set(key, made);
  return made;
}
