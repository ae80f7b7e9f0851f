/** The numbers of `docstokg report`. Times are in ms, shares are from 0 to 1. */
import type { OpenReasonKind } from "../breaker-openings.ts";
import type { CallOutcome } from "../call-outcome.ts";

/** Waits before attempts, and waits that ended without one, in ms. */
export interface DelaySummary {
  /** Number of attempts, and of waits that ended without one. */
  readonly count: number;
  /** Half of the waits are at most this long. */
  readonly p50: number;
  /** 95 % of the waits are at most this long. */
  readonly p95: number;
  /** The longest wait. */
  readonly max: number;
  /** The sum of all waits. */
  readonly total: number;
  /** False when there are more than 65,536 waits above 0: then percentiles are accurate to 1 %. */
  readonly isExact: boolean;
}

/** The calls and attempts of one role at one host. */
export interface HostSummary {
  /** The canonical host; `(other hosts)` for hosts beyond the first 20,000 rows, one for each host and role. */
  readonly host: string;
  /** `metadata`, `landing` or `artifact`. */
  readonly role: string;
  /** Finished calls that ended at this host: after redirects this may be another host than the one that was called. */
  readonly calls: number;
  /** The same calls by outcome. */
  readonly outcomes: Readonly<Record<CallOutcome, number>>;
  /** Background refreshes of stored responses. `calls` does not include them. */
  readonly refreshes: number;
  /** Requests sent to this host. */
  readonly attempts: number;
  /** Attempts for which no connection was made. `attempts` does not include them. */
  readonly connectFailures: number;
  /** Responses with status 429, every attempt counted. */
  readonly answers429: number;
  /** Responses with status 503, every attempt counted. */
  readonly answers503: number;
  /** Waits before sending. */
  readonly delayMs: DelaySummary;
  /** The part of `delayMs.total` spent waiting for concurrency slots. */
  readonly slotWaitMs: number;
}

/** The rate limits of one role of a host or service. */
export interface KeySummary {
  /** The host or service. */
  readonly key: string;
  /** `metadata`, `landing` or `artifact`. */
  readonly role: string;
  /** Grants that used a unit of a rate limit. */
  readonly acquired: number;
  /** Requests that the limiter refused. */
  readonly blocked: number;
  /** Requests that their callers aborted in the queue. */
  readonly aborted: number;
  /** HEAD requests that the rate limit does not count. */
  readonly headSkipped: number;
  /** The AIMD multiplier at the end; 1 when AIMD changed nothing. */
  readonly multiplier: number;
  /** The lowest AIMD multiplier. */
  readonly leastMultiplier: number;
}

/** A host and the number that it is ranked by. */
export interface Ranked {
  /** The host or service. */
  readonly host: string;
  /** Total wait in ms, or refused requests. */
  readonly value: number;
}

/** The breakers of one host. */
export interface BreakerHostSummary {
  /** The host, service or `resolver <name>`; `(other hosts)` for hosts beyond the first 20,000. */
  readonly host: string;
  /** Circuits of the host that opened, and cooldowns that began. */
  readonly opens: number;
  /** `opens`, divided by the duration of the run in hours. */
  readonly opensPerHour: number;
  /** Calls that a breaker refused. */
  readonly denied: number;
  /** As `breaker.timeSavedMs`, for this host. */
  readonly timeSavedMs: number;
}

/** What enforcing would have done to the requests of one host that shadow mode sent. */
export interface ShadowSummary {
  /** The host or service; `(other hosts)` for hosts beyond the first 20,000. */
  readonly host: string;
  /** Requests that would have waited for a rate limit or a slot. */
  readonly waits: number;
  /** The sum of their estimated waits; a wait for a slot cannot be estimated and counts 0. */
  readonly waitMs: number;
  /** Requests that a rate limit would have refused. */
  readonly limiterRefusals: number;
  /** Calls that an open circuit or a cooldown would have refused. */
  readonly breakerRefusals: number;
}

/** The waits and refusals that one setting decided. */
export interface DecisionSummary {
  /** The setting and where it was set: `10/SECOND (ratelimits.yaml:34)`; `(other settings)` beyond the first 1000. */
  readonly decidedBy: string;
  /** Waits that were mostly for this setting. */
  readonly waits: number;
  /** The total time of the waits in `waits`. */
  readonly waitMs: number;
  /** Calls that it refused. */
  readonly refusals: number;
}

/** The summary of one run. */
export interface RunSummary {
  /** The id of the run. */
  readonly runId: string;
  /** The name of the program; undefined when the start of the run is not in the file. */
  readonly program: string | undefined;
  /** The version of docstokg; undefined when the start of the run is not in the file. */
  readonly version: string | undefined;
  /** Hashes of the policies; more than one when the policy was reloaded. */
  readonly configHashes: readonly string[];
  /** The time of the first event, in epoch ms. */
  readonly startedMs: number;
  /** The time of the last event, in epoch ms. */
  readonly endedMs: number;
  /** From the first to the last event, in ms. */
  readonly durationMs: number;
  /** False while the run goes on, and when it was killed. */
  readonly hasEnded: boolean;
  /** Number of events. */
  readonly events: number;
  /** Events that a sink dropped. Above 0 all counts are too low. */
  readonly dropped: number;
  /** Finished calls of the program. */
  readonly calls: number;
  /** Finished calls by outcome. */
  readonly outcomes: Readonly<Record<CallOutcome, number>>;
  /** Background refreshes of stored responses, which the hub makes itself. `calls` does not include them. */
  readonly refreshes: number;
  /** Attempts for which no connection was made: nothing was sent. */
  readonly connectFailures: number;
  /** How calls were served by the cache. */
  readonly cache: {
    /** Calls answered from the cache without a request, fresh or stale. */
    readonly hits: number;
    /** The hits that were stale. */
    readonly stale: number;
    /** Calls answered from the cache after a request was sent: it failed, or a redirect led to a stored response. */
    readonly afterRequest: number;
    /** Stored responses that the server confirmed (304). */
    readonly revalidated: number;
    /** Calls answered by another identical request in flight. */
    readonly coalesced: number;
    /** `hits` as a share of all calls. */
    readonly hitRate: number;
  };
  /** Responses with status 429 or 503. */
  readonly throttles: {
    /** Requests sent. */
    readonly attempts: number;
    /** Responses with status 429. */
    readonly answers429: number;
    /** Responses with status 503. */
    readonly answers503: number;
    /** Both as a share of all attempts. */
    readonly rate: number;
  };
  /** Waits before sending. */
  readonly delayMs: DelaySummary;
  /** Sums over `keys`. */
  readonly limiter: {
    /** Grants that used a unit of a rate limit. */
    readonly acquired: number;
    /** Requests that the limiter refused. */
    readonly blocked: number;
    /** HEAD requests that the rate limit does not count. */
    readonly headSkipped: number;
  };
  /** Openings, and calls that breakers refused. */
  readonly breaker: {
    /** Circuits that opened, and cooldowns that began. */
    readonly opens: number;
    /** `opens`, divided by the duration of the run in hours. */
    readonly opensPerHour: number;
    /** `opens` by what caused them. */
    readonly opensByReason: Readonly<Record<OpenReasonKind, number>>;
    /** Calls that a breaker refused. `limiter.blocked` does not include them. */
    readonly denied: number;
    /**
     * The time that refused calls did not spend on attempts. Each call counts with the mean duration of an attempt at its
     * host, or with the remaining open time if that is less.
     */
    readonly timeSavedMs: number;
    /** Results of the first calls after an opening. */
    readonly afterOpen: {
      /** Calls that succeeded. */
      readonly succeeded: number;
      /** Calls that failed. */
      readonly failed: number;
      /** `succeeded` as a share of both. */
      readonly successRate: number;
    };
    /** Hosts with openings or refused calls, most openings first. */
    readonly hosts: readonly BreakerHostSummary[];
  };
  /** What enforcing would have done to requests that shadow mode sent, most affected hosts first. */
  readonly shadow: Omit<ShadowSummary, "host"> & {
    /** The same numbers by host. */
    readonly hosts: readonly ShadowSummary[];
  };
  /** Waits and refusals by the setting that decided them, longest total wait first. */
  readonly decisions: readonly DecisionSummary[];
  /** Calls by host and role, most calls first. */
  readonly hosts: readonly HostSummary[];
  /** Rate limits by host or service and role, most requests first. */
  readonly keys: readonly KeySummary[];
  /** The ten hosts with the longest total wait. */
  readonly topByDelay: readonly Ranked[];
  /** The ten hosts or services with the most requests refused by the limiter. */
  readonly topByBlocks: readonly Ranked[];
}
