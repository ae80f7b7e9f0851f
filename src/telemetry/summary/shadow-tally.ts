import type { TelemetryEvent } from "../events.ts";
import { OTHER_HOSTS } from "./other-hosts.ts";
import type { RunSummary, ShadowSummary } from "./run-summary.ts";

/** Bounds the memory; further hosts are counted together. */
const HOSTS_MAX = 20_000;

interface ShadowCounts {
  waits: number;
  waitMs: number;
  limiterRefusals: number;
  breakerRefusals: number;
}

/** Counts what enforcing would have done to the requests that shadow mode sent. */
export class ShadowTally {
  readonly #hosts = new Map<string, ShadowCounts>();

  take(event: TelemetryEvent): void {
    if (event.event_type === "breaker_shadow") this.#at(event.host).breakerRefusals += 1;
    if (event.event_type !== "ratelimit.shadow") return;
    const counts = this.#at(event.key);
    if (event.would === "refuse") counts.limiterRefusals += 1;
    else {
      counts.waits += 1;
      counts.waitMs += event.wait_ms ?? 0;
    }
  }

  summary(): RunSummary["shadow"] {
    const hosts = Array.from(this.#hosts, ([host, counts]): ShadowSummary => ({ host, ...counts }));
    const sum = (read: (row: ShadowSummary) => number) => hosts.reduce((total, row) => total + read(row), 0);
    return {
      waits: sum(({ waits }) => waits),
      waitMs: sum(({ waitMs }) => waitMs),
      limiterRefusals: sum(({ limiterRefusals }) => limiterRefusals),
      breakerRefusals: sum(({ breakerRefusals }) => breakerRefusals),
      hosts: hosts.sort((a, b) => affected(b) - affected(a) || (a.host < b.host ? -1 : 1)),
    };
  }

  #at(host: string): ShadowCounts {
    const name = this.#hosts.has(host) || this.#hosts.size < HOSTS_MAX ? host : OTHER_HOSTS;
    const known = this.#hosts.get(name) ?? { waits: 0, waitMs: 0, limiterRefusals: 0, breakerRefusals: 0 };
    this.#hosts.set(name, known);
    return known;
  }
}

function affected({ waits, limiterRefusals, breakerRefusals }: ShadowSummary): number {
  return waits + limiterRefusals + breakerRefusals;
}
