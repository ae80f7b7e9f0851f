import type { Reason } from "../../harvest/reason.ts";
import type { HubEvent } from "../../http/hub-options.ts";

/** What happened in a run, counted as it happens. */
export class RunCounts {
  done = 0;
  failed = 0;
  bytes = 0;
  /** Done before, their files in place. */
  present = 0;
  /** Failed before, and left alone. */
  failedBefore = 0;
  /** To be done in this run, as far as they are listed. */
  wanted = 0;
  /** Lines of the list that name no work. */
  problems = 0;
  /** Requests that were sent. */
  requests = 0;
  cached = 0;
  /** Times that a request was put off because its host was full or cut off. */
  putOff = 0;
  throttled = 0;
  opened = 0;
  readonly reasons = new Map<Reason, number>();

  readonly listener = (event: HubEvent): void => {
    if (event.event_type === "http_request") {
      this.requests += event.attempts;
      if (event.from_cache || event.coalesced) this.cached += 1;
      if (event.status === 429) this.throttled += 1;
    } else if (event.event_type === "breaker_state_change" && event.new === "open") this.opened += 1;
  };

  settled(state: "done" | "failed", reason: Reason, bytes: number): void {
    this[state] += 1;
    this.bytes += state === "done" && reason === "ok" ? bytes : 0;
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }
}
