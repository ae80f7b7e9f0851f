import type { SettledState } from "../../harvest/pipeline.ts";
import type { Reason } from "../../harvest/reason.ts";
import type { HubEvent } from "../../http/hub-options.ts";

/** The counts of a run, updated while it runs. */
export class RunCounts {
  done = 0;
  failed = 0;
  /** The same work as another one of the list. */
  merged = 0;
  bytes = 0;
  /** Already downloaded by an earlier run. */
  present = 0;
  /** Failed in an earlier run, not retried. */
  failedBefore = 0;
  /** To be downloaded in this run, as far as listed. */
  wanted = 0;
  /** Invalid lines of the list. */
  problems = 0;
  /** Requests sent. */
  requests = 0;
  cached = 0;
  /** Requests deferred by a rate limit, an open circuit or a cooldown. */
  deferred = 0;
  throttled = 0;
  opened = 0;
  readonly reasons = new Map<Reason, number>();

  readonly listener = (event: HubEvent): void => {
    if (event.event_type === "http_attempt") {
      if (event.connection !== "none") this.requests += 1;
      if (event.status === 429) this.throttled += 1;
    } else if (event.event_type === "http_request") {
      if ((event.from_cache || event.coalesced) && !event.background) this.cached += 1;
    } else if (event.event_type === "breaker_state_change" && event.new === "open" && !event.from_peer)
      this.opened += 1;
  };

  settled(state: SettledState, reason: Reason, bytes: number): void {
    this[state] += 1;
    this.bytes += state === "done" && reason === "ok" ? bytes : 0;
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }
}
