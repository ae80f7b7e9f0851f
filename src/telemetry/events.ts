import type { HubEvent } from "../http/hub-options.ts";

/** The events of telemetry itself. */
export type RunEvent =
  /** The first event of a run. */
  | {
      readonly event_type: "run_started";
      /** Name of the program. */
      readonly program: string;
      /** Version of docstokg. */
      readonly version: string;
    }
  /** The last event of a run; absent if the process was killed. */
  | { readonly event_type: "run_ended" }
  /** A sink has dropped events: it was slower than the events, or a write failed. */
  | {
      readonly event_type: "telemetry_dropped";
      /** Id of the sink: its name, or `name-2`, `name-3` for further sinks of the same name. */
      readonly sink: string;
      /** Number of events that it has dropped. */
      readonly dropped: number;
    };

/** Every event, without its envelope. */
export type EventBody =
  | Exclude<HubEvent, { readonly event_type: "breaker_before_call" }>
  | (Extract<HubEvent, { readonly event_type: "breaker_before_call" }> & {
      /** Recorded share of the events of this type, above 0 and below 1; absent when all are recorded. */
      readonly sample_rate?: number;
    })
  | RunEvent;

/** The fields of every event. */
export interface Envelope {
  /** When the event happened, in epoch ms. */
  readonly ts: number;
  /** The `runId` of the telemetry. */
  readonly run_id: string;
  /** A hash of the policy in force; empty before it is loaded, and for a limiter or breaker without a hub. */
  readonly config_hash: string;
}

/** An event as sinks and readers get it: a union by `event_type`. */
export type TelemetryEvent = EventBody & Envelope;
/** The name of an event. */
export type EventType = EventBody["event_type"];
/** The members of `Union` whose `event_type` can be `Type`. */
export type EventBodyOf<Type extends EventType, Union = EventBody> = Union extends { readonly event_type: infer Types }
  ? Type extends Types
    ? Union
    : never
  : never;
/** The events of one type. */
export type EventOf<Type extends EventType> = EventBodyOf<Type> & Envelope & { readonly event_type: Type };
