import type { SettledState } from "../../harvest/open-works.ts";
import { FAILURE_REASONS, type Reason } from "../../harvest/reason.ts";
import type { HubEvent } from "../../http/hub-options.ts";

/** A limit that a server announced in the run, and that is lower than the policy's. */
export interface LearnedLimit {
  /** Host or service, with its tier or partition if it has one: `api.crossref.org with mailto`. */
  readonly key: string;
  readonly role: string;
  /** The limit of the policy. */
  readonly old: string;
  /** The announced one; of several, the last. */
  readonly new: string;
  /** The family of header fields. */
  readonly source: string;
}

/** A run may call thousands of publishers; more than these are not listed. */
const LEARNED_MAX = 100;

/** The counts of a run, updated while it runs. */
export class RunCounts {
  done = 0;
  failed = 0;
  /** The same work as another one of the list. */
  merged = 0;
  /** Of the works that are done: the file of an earlier run could not be refreshed. */
  notRefreshed = 0;
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
  readonly #learned = new Map<string, LearnedLimit>();

  /** Lower limits that servers have announced, one for each key and kind of limit. */
  get learnedLimits(): readonly LearnedLimit[] {
    return [...this.#learned.values()];
  }

  readonly listener = (event: HubEvent): void => {
    if (event.event_type === "http_attempt") {
      if (event.connection !== "none") this.requests += 1;
      if (event.status === 429) this.throttled += 1;
    } else if (event.event_type === "http_request") {
      if ((event.from_cache || event.coalesced) && !event.background) this.cached += 1;
    } else if (event.event_type === "limit_learned") this.#limitLearned(event);
    else if (event.event_type === "breaker_state_change" && event.new === "open" && !event.from_peer) this.opened += 1;
  };

  #limitLearned({ key, role, what, old, new: announced, source }: LearnedLimit & { readonly what: string }): void {
    // The announced limit has expired. The summary of the run still lists it.
    if (source === "lapsed") return;
    const id = `${key} ${role} ${what}`;
    const known = this.#learned.get(id);
    if (known === undefined && this.#learned.size >= LEARNED_MAX) return;
    this.#learned.set(id, { key, role, old: known?.old ?? old, new: announced, source });
  }

  /** Works that this run has finished, whatever the result. */
  get settledWorks(): number {
    return this.done + this.failed + this.merged;
  }

  countSettled(state: SettledState, reason: Reason, bytes: number): void {
    this[state] += 1;
    // Works that the user has filtered out are no failure.
    if (state === "done" && reason !== "filtered" && FAILURE_REASONS.includes(reason)) this.notRefreshed += 1;
    this.bytes += state === "done" && reason === "ok" ? bytes : 0;
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
  }
}
