/** What `docstokg report` says of a run, as numbers. Everything in milliseconds, shares from 0 to 1. */
import type { OpenReasonKind } from "../breaker-openings.ts";
import type { CallOutcome } from "../call-outcome.ts";

export interface DelaySummary {
  /** Calls that were sent. */
  readonly count: number;
  readonly p50: number;
  readonly p95: number;
  readonly max: number;
  readonly total: number;
  /** False when there were so many that percentiles are within one per cent only. */
  readonly isExact: boolean;
}

/** The calls of one role to one host. */
export interface HostSummary {
  readonly host: string;
  readonly role: string;
  readonly calls: number;
  readonly outcomes: Readonly<Record<CallOutcome, number>>;
  readonly attempts: number;
  readonly answers429: number;
  readonly answers503: number;
  readonly delayMs: DelaySummary;
  /** How much of the delay was for slots and turns. */
  readonly slotWaitMs: number;
}

/** The budget of one role at one host or group. */
export interface KeySummary {
  readonly key: string;
  readonly role: string;
  /** Grants that cost a unit. */
  readonly acquired: number;
  /** Refused by the limiter. */
  readonly blocked: number;
  readonly aborted: number;
  readonly headSkipped: number;
  /** Where AIMD left it, and the least it was; 1 where it changed nothing. */
  readonly multiplier: number;
  readonly leastMultiplier: number;
}

export interface Ranked {
  readonly host: string;
  readonly value: number;
}

export interface RunSummary {
  readonly runId: string;
  readonly program: string | undefined;
  readonly version: string | undefined;
  /** More than one when the policy was reloaded. */
  readonly configHashes: readonly string[];
  /** Epoch milliseconds of the first and the last event. */
  readonly startedMs: number;
  readonly endedMs: number;
  readonly durationMs: number;
  /** False while it runs, and when it was killed. */
  readonly hasEnded: boolean;
  readonly events: number;
  /** Events that a sink gave up: with any, the numbers below are too small. */
  readonly dropped: number;
  readonly calls: number;
  readonly outcomes: Readonly<Record<CallOutcome, number>>;
  readonly cache: {
    /** Answered without the network, fresh or stale. */
    readonly hits: number;
    readonly stale: number;
    readonly revalidated: number;
    readonly coalesced: number;
    /** Hits out of all calls. */
    readonly hitRate: number;
  };
  readonly throttles: {
    readonly attempts: number;
    readonly answers429: number;
    readonly answers503: number;
    /** Both out of all attempts. */
    readonly rate: number;
  };
  readonly delayMs: DelaySummary;
  readonly limiter: { readonly acquired: number; readonly blocked: number; readonly headSkipped: number };
  readonly breaker: {
    readonly opens: number;
    readonly opensPerHour: number;
    readonly opensByReason: Readonly<Record<OpenReasonKind, number>>;
    /** Calls that a breaker refused; beside `limiter.blocked`. */
    readonly denied: number;
    /** For each of them what a call to its host takes, or what was left of the break if that is less. */
    readonly timeSavedMs: number;
    /** How the first call after an opening went. */
    readonly afterOpen: { readonly succeeded: number; readonly failed: number; readonly successRate: number };
  };
  readonly hosts: readonly HostSummary[];
  readonly keys: readonly KeySummary[];
  readonly topByDelay: readonly Ranked[];
  readonly topByBlocks: readonly Ranked[];
}
