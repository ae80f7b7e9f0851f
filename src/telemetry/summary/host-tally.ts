import type { TelemetryEvent } from "../events.ts";
import { HostRow } from "./host-row.ts";
import { KeyRow } from "./key-row.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";
import type { KeySummary } from "./run-summary.ts";

/** Further hosts and keys are counted in one row. */
const ROWS_MAX = 20_000;

/** Counts events by host and role, and by key and role. */
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
    return Array.from(this.#keys.values(), row => row.summary());
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
