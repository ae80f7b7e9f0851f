/** What happens in a world, step by step: the laws judge these, and a trace prints them. */
import type { HubEvent } from "../src/http/hub-options.ts";
import type { Role } from "../src/policy/roles.ts";
import type { CallPlan, Fault } from "./plan.ts";

/** One request on the wire. */
export interface WireRequest {
  readonly id: number;
  readonly process: number;
  readonly call: CallPlan;
  /** 1 for the first of its call. */
  readonly attempt: number;
  readonly host: string;
  readonly role: Role;
  /** What windows count it for. */
  readonly units: number;
  readonly dispatchedUs: number;
  isCold: boolean;
  writtenUs: number | undefined;
  arrivedUs: number | undefined;
  endedUs: number | undefined;
}

export interface ResponseFact {
  readonly kind: "head";
  readonly atUs: number;
  readonly sending: WireRequest;
  readonly status: number;
  /** How long the server means to be left alone; undefined when it asks for nothing that counts. */
  readonly retryAfterMs: number | undefined;
  /** Until when the answer is fresh, whatever happens; undefined when it is not. */
  readonly freshUntilUs: number | undefined;
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
      readonly isFinal: boolean;
    }
  | { readonly kind: "dispatched" | "written" | "arrived"; readonly atUs: number; readonly sending: WireRequest }
  | { readonly kind: "rejected"; readonly atUs: number; readonly sending: WireRequest; readonly by: string }
  | ResponseFact
  | {
      readonly kind: "ended";
      readonly atUs: number;
      readonly sending: WireRequest;
      readonly how: "complete" | "failed" | "dropped";
    }
  | { readonly kind: "event"; readonly atUs: number; readonly process: number; readonly event: HubEvent }
  | { readonly kind: "fault"; readonly atUs: number; readonly fault: Fault; readonly isOver: boolean }
  /** A look at a hub while it works, or when everything is long over. */
  | {
      readonly kind: "look";
      readonly atUs: number;
      readonly process: number;
      readonly isLast: boolean;
      readonly calls: number;
      readonly inFlight: number;
      readonly waiting: number;
      readonly timers: number;
      readonly lanes: readonly KeyFact[];
    }
  /** A process goes on under other rates: from here on either may count, until `isDone`. */
  | {
      readonly kind: "reloaded";
      readonly atUs: number;
      readonly process: number;
      readonly factor: number;
      readonly isDone: boolean;
    }
  | { readonly kind: "stuck"; readonly atUs: number; readonly message: string }
  | { readonly kind: "store-look"; readonly atUs: number; readonly pending: number };
