import type { HubEvent } from "../http/hub-options.ts";

/** What telemetry says of itself, beside what it hears from a hub. */
export type RunEvent =
  | { readonly event_type: "run_started"; readonly program: string; readonly version: string }
  | { readonly event_type: "run_ended" }
  /** A sink was slower than the events came. */
  | { readonly event_type: "telemetry_dropped"; readonly sink: string; readonly dropped: number };

/** Of an event that stands for others, what share of its kind was kept. */
interface Sampled {
  readonly sample_rate?: number;
}

/** Everything that can happen, without its envelope. */
export type EventBody = Exclude<HubEvent, { readonly event_type: "breaker_before_call" }> | SampledEventBody | RunEvent;
type SampledEventBody = Extract<HubEvent, { readonly event_type: "breaker_before_call" }> & Sampled;

/** What every event carries. */
export interface Envelope {
  /** Epoch milliseconds. */
  readonly ts: number;
  readonly run_id: string;
  /** The policy that held; empty before one was loaded, and for a limiter or breaker without a hub. */
  readonly config_hash: string;
}

/** The one closed union that sinks and reports know. */
export type TelemetryEvent = EventBody & Envelope;
export type EventType = EventBody["event_type"];
/** Those members of the union that may be of this type: one of them goes by three names. */
export type EventBodyOf<Type extends EventType, Union = EventBody> = Union extends { readonly event_type: infer Types }
  ? Type extends Types
    ? Union
    : never
  : never;
export type EventOf<Type extends EventType> = EventBodyOf<Type> & Envelope & { readonly event_type: Type };
