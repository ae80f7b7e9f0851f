/** Everything observable in a simulation: laws check these facts, and a trace prints them. */
import type { HubEvent } from "../src/http/hub-options.ts";
import type { Role } from "../src/policy/roles.ts";
import type { CallPlan, Fault } from "./plan.ts";

/** One request on the wire. */
export interface WireRequest {
  readonly id: number;
  readonly process: number;
  readonly call: CallPlan;
  /** Number of the attempt of its call, from 1. */
  readonly attempt: number;
  readonly host: string;
  readonly role: Role;
  /** The name of the role budget that it uses: its host, or a partition of it. */
  readonly key: string;
  /** The name of the circuits and cooldowns that apply to it: its host, or a partition of it. */
  readonly breakerUnit: string;
  /** Units that it counts in every window. */
  readonly units: number;
  /** Credits that it was charged when it was granted. */
  readonly credits: number;
  /** Credits that it really uses. */
  readonly usedCredits: number;
  readonly dispatchedUs: number;
  isCold: boolean;
  writtenUs: number | undefined;
  arrivedUs: number | undefined;
  endedUs: number | undefined;
}

/** The role limits at its host that a request uses: those of its role, or of its role in its partition. */
export function budgetOf({ role, key, host }: WireRequest): string {
  return key === host ? role : `${role} of ${key}`;
}

/**
 * Whether the deadline of a request's call, or of one that may have joined it, is over while it was still connecting. The
 * hub gives up such a request without the wire, and counts it as a failure if the connection took most of the deadline.
 */
export function isExpiredUnwritten(
  { call, writtenUs }: WireRequest,
  atUs: number,
  calls: readonly CallPlan[],
): boolean {
  const isExpired = ({ atMs, deadlineMs }: CallPlan) => deadlineMs !== undefined && atUs >= (atMs + deadlineMs) * 1000;
  return writtenUs === undefined && (isExpired(call) || calls.some(one => isSameRequest(one, call) && isExpired(one)));
}

/** Whether one of the calls may wait for the response to the other. */
function isSameRequest(one: CallPlan, other: CallPlan): boolean {
  return (
    one.process === other.process &&
    one.host === other.host &&
    one.role === other.role &&
    one.method === other.method &&
    one.page === other.page
  );
}

export interface ResponseFact {
  readonly kind: "head";
  readonly atUs: number;
  readonly request: WireRequest;
  readonly status: number;
  /** The delay that Retry-After means; undefined when there is no valid one. */
  readonly retryAfterMs: number | undefined;
  /** Until when the response is certainly fresh; undefined when it cannot be stored. */
  readonly freshUntilUs: number | undefined;
  /** Credits that the request has used, if the response says so. */
  readonly usedCredits: number | undefined;
}

export interface KeyFact {
  readonly host: string;
  readonly role: Role;
  readonly used: number;
  readonly inFlight: number;
}

export type SimFact =
  | { readonly kind: "call"; readonly atUs: number; readonly process: number; readonly call: CallPlan }
  | {
      readonly kind: "done";
      readonly atUs: number;
      readonly process: number;
      readonly call: CallPlan;
      readonly status: number | undefined;
      readonly error: string | undefined;
      /** When the same call could start, as the error of a rate limit says. */
      readonly retryAfterMs: number | undefined;
      readonly isFinal: boolean;
    }
  | { readonly kind: "dispatched" | "written" | "arrived"; readonly atUs: number; readonly request: WireRequest }
  | { readonly kind: "rejected"; readonly atUs: number; readonly request: WireRequest; readonly by: string }
  | ResponseFact
  | {
      readonly kind: "ended";
      readonly atUs: number;
      readonly request: WireRequest;
      readonly how: "complete" | "failed" | "dropped";
    }
  | { readonly kind: "event"; readonly atUs: number; readonly process: number; readonly event: HubEvent }
  | { readonly kind: "fault"; readonly atUs: number; readonly fault: Fault; readonly isOver: boolean }
  /** A snapshot of a hub while it works, or an hour after everything ended (`isLast`). */
  | {
      readonly kind: "snapshot";
      readonly atUs: number;
      readonly process: number;
      readonly isLast: boolean;
      readonly calls: number;
      readonly inFlight: number;
      readonly waiting: number;
      readonly timers: number;
      readonly keys: readonly KeyFact[];
    }
  /** A process reloads its policy. Until `isDone` the old or the new limits apply. */
  | {
      readonly kind: "reloaded";
      readonly atUs: number;
      readonly process: number;
      /** Every rate is multiplied by it. */
      readonly factor: number;
      /** Whether the policy has the totals of the hosts. */
      readonly hasTotals: boolean;
      /** Whether partitions have limits of their own, at hosts with `isPerPartition`. */
      readonly isPartitioned: boolean;
      readonly isDone: boolean;
    }
  | { readonly kind: "stuck"; readonly atUs: number; readonly message: string }
  | { readonly kind: "store-snapshot"; readonly atUs: number; readonly pending: number };
